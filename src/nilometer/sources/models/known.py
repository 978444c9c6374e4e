"""The table of known models: facts of their configs, and their published number of parameters; names in any spelling.

`known.csv` is read by the readers of configs. A row is in it only if the parameters they count are the published ones,
or if its note says that no count was found. A fact that could not be read anywhere is left empty and thus unknown, and
the note says why.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import msgspec

from nilometer.core.errors import DataError
from nilometer.plan.model.shape import Shape

from .architectures import shape_of
from .fields import Fields
from .quantisation import split_precision

NEAR = 3
_COLUMNS = {
    "type": "model_type",
    "layers": "num_hidden_layers",
    "hidden": "hidden_size",
    "heads": "num_attention_heads",
    "kv_heads": "num_key_value_heads",
    "head_dim": "head_dim",
    "intermediate": "intermediate_size",
    "vocab": "vocab_size",
    "max_context": "max_position_embeddings",
}
_INNER = re.compile(r"-(instruct|chat|it|base|thinking|reasoning)(?=-)")
_VARIANTS = re.compile(r"[-_.:](instruct|it|chat|hf|base|pt|text|qat|thinking|reasoning|latest|gguf|mlx|onnx|-)$")
"""What a name may say of tuning and packing; a version or date is another model, often with another context."""


class Known(msgspec.Struct, frozen=True):
    """One row, as it stands; its facts are read when they are asked for."""

    cells: Mapping[str, str]

    @property
    def name(self) -> str:
        return self.cells["name"]

    @property
    def aliases(self) -> Sequence[str]:
        return self.cells["aliases"].split()

    @property
    def dtype(self) -> str:
        """The precision of its files."""
        return self.cells["dtype"]

    @property
    def published(self) -> int | None:
        """Parameters in its files; None where no count was found."""
        return int(self.cells["published"]) if self.cells["published"] else None

    @property
    def published_source(self) -> str:
        return self.cells["published_source"]

    @property
    def source(self) -> str:
        """Where its facts are from."""
        return self.cells["source"]

    @property
    def note(self) -> str:
        return self.cells["note"]

    @property
    def facts(self) -> Mapping[str, object]:
        """The fields of its config."""
        cells = self.cells
        found: dict[str, object] = {field: _value(cells[name]) for name, field in _COLUMNS.items() if cells[name]}
        found["tie_word_embeddings"] = cells["tied"] == "1"
        for pair in filter(None, cells["more"].split(";")):
            path, _, text = pair.partition("=")
            outer, _, inner = path.rpartition(".")
            target = found if not outer else found.setdefault(outer, {})
            if isinstance(target, dict):
                target[inner] = _value(text)
        return found


@cache
def table() -> tuple[Known, ...]:
    """All rows."""
    text = Path(__file__).with_name("known.csv").read_text("utf-8")
    return tuple(map(Known, csv.DictReader(text.splitlines())))


def _value(text: str) -> object:
    """A number, yes or no, a list (`a*3,b` stands for a, a, a, b), or the text itself."""
    if text in {"true", "false"}:
        return text == "true"
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    if re.fullmatch(r"-?\d+\.\d+", text):
        return float(text)
    if "," in text:
        return [one for part in text.split(",") for one in _repeated(part)]
    return text


def _repeated(part: str) -> Sequence[object]:
    word, _, times = part.partition("*")
    return [_value(word)] * (int(times) if times else 1)


def shape_of_row(row: Known) -> Shape:
    """Its shape."""
    shape = shape_of(Fields(row.facts, row.name), row.name)
    return msgspec.structs.replace(shape, dtype=row.dtype, source=row.source)


class Found(msgspec.Struct, frozen=True):
    """A row, and the precision that the name asked for has in it."""

    row: Known
    precision: str | None


def look_up(name: str) -> Found:
    """The row that a name means, with or without organisation, variant and precision.

    DataError `plan_model_unknown`, with the nearest names.
    """
    index = _index()
    for word, precision in _spellings(name):
        row = index.get(word)
        if row is not None:
            return Found(row, precision)
    import difflib  # noqa: PLC0415 - only for a name that is not there

    near = difflib.get_close_matches(_bare(split_precision(name)[0]), index, n=4 * NEAR, cutoff=0.5)
    names = list(dict.fromkeys(index[word].name for word in near))[:NEAR]
    raise DataError("plan_model_unknown", name=name[:200], near=", ".join(names) or "-")


def _spellings(name: str) -> Iterator[tuple[str, str | None]]:
    """Ever shorter ways to write a name, with the precision taken out of each."""
    rest, precision = split_precision(name)
    yield name.strip().lower(), None
    yield name.strip().lower().rpartition("/")[2], None
    word = rest.strip().lower().rpartition("/")[2]
    while word:
        yield word, precision
        yield _INNER.sub("", word), precision
        shorter = _VARIANTS.sub("", word)
        if shorter == word:
            break
        word = shorter
    yield _bare(rest), precision


def _bare(name: str) -> str:
    """Without organisation, variants, and the maker's name before it."""
    word = name.strip().lower().rpartition("/")[2].replace("_", "-")
    word = re.sub(r"^(meta|nvidia|google|mistralai|microsoft)-", "", word)
    while (shorter := _VARIANTS.sub("", word)) != word:
        word = shorter
    return _INNER.sub("", word)


@cache
def _index() -> Mapping[str, Known]:
    """Spelling -> row; a row's own name goes before the spellings of others."""
    found: dict[str, Known] = {}
    rows = table()
    for of in (lambda row: (row.name.lower(), row.name.lower().rpartition("/")[2]), lambda row: row.aliases):
        for row in rows:
            for word in of(row):
                found.setdefault(word, row)
    for row in rows:
        found.setdefault(_bare(row.name), row)
    return found
