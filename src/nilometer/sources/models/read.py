"""One way in: what a person wrote - a name, a path, an address - to the model it means."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from nilometer.core.errors import DataError
from nilometer.plan.model.parameters import parameters
from nilometer.plan.model.shape import Shape

from . import known, safetensors
from .config import read_config
from .gguf import read_gguf
from .opened import open_file
from .served import Served

Origin = Literal["known", "config", "gguf", "safetensors", "server"]
_FILES = (".json", ".gguf", ".safetensors")


class Read(msgspec.Struct, frozen=True, kw_only=True):
    """What was found. `shape` is None only of a server whose model is not known."""

    shape: Shape | None
    origin: Origin
    source: str
    """The row, file or address."""
    weight_bytes: int | None = None
    """What its files really hold; None where there are none to look at."""
    formats: Mapping[str, int] = {}
    """The same by format."""
    precision: str | None = None
    """A name of `precision.PRECISIONS` that name, config or header gives; None = as published, `shape.dtype`."""
    precision_from: Literal["name", "config", "header", "server"] | None = None
    published: int | None = None
    """The published number of parameters, draft layers included."""
    served: Served | None = None


def read_model(
    text: str, *, headers: Mapping[str, str] | None = None, insecure: bool = False, proxy: str | None = None
) -> Read:
    """The model that a name (`llama-3.1-8b`), a path (config.json, a folder, .gguf, .safetensors, an index) or the
    address of a running server means. A file that is there goes before a name.

    DataError: `plan_model_unknown`, and those of the readers. SpecError `target_url`, TargetError of `read_server`.
    """
    if "://" in text:
        from .server import read_server  # noqa: PLC0415 - a name or a file needs no connection

        return _server(read_server(text, headers=headers, insecure=insecure, proxy=proxy))
    path = Path(text)
    try:
        there = path.exists()
    except (OSError, ValueError):
        there = False
    if there:
        return _folder(path) if path.is_dir() else _file(path)
    if text.lower().endswith(_FILES) or text.startswith(("/", "./", "../", "~")):
        raise DataError("file_unreadable", file=text[:400], detail="ENOENT")
    return _known(text)


def read_started(text: str) -> Read:
    """The model that an engine was started with, maybe on another machine: where its file is not here, by its name.

    DataErrors as of `read_model`.
    """
    try:
        return read_model(text)
    except DataError as fault:
        if fault.slug != "file_unreadable":
            raise
    return _known(re.split(r"[\\/]", text.rstrip("/\\"))[-1].removesuffix(".gguf"))


def _known(name: str) -> Read:
    found = known.look_up(name)
    return Read(
        shape=known.shape_of_row(found.row),
        origin="known",
        source=found.row.source,
        precision=found.precision,
        precision_from="name" if found.precision else None,
        published=found.row.published,
    )


def _file(path: Path) -> Read:
    suffix = path.suffix.lower()
    if suffix == ".gguf":
        return _gguf(path)
    if suffix == ".safetensors":
        return _checkpoint(path.parent, safetensors.read_file(path), path)
    if path.name == safetensors.INDEX or path.name.endswith(".safetensors.index.json"):
        return _checkpoint(path.parent, safetensors.read_index(path), path)
    if suffix == ".json":
        return _config(path)
    with open_file(path) as file:
        magic = file.read(4)
    if magic == b"GGUF":
        return _gguf(path)
    raise DataError("model_file_not", file=str(path), kind="config.json, .gguf, .safetensors")


def _folder(path: Path) -> Read:
    if (path / "config.json").exists():
        weights = safetensors.read_weights(path)
        return _config(path / "config.json") if weights is None else _checkpoint(path, weights, path)
    files = sorted(path.glob("*.gguf"))
    if files:
        return _gguf(files[0])
    raise DataError("model_folder_empty", file=str(path))


def _config(path: Path) -> Read:
    shape, precision = read_config(path)
    return Read(
        shape=shape,
        origin="config",
        source=str(path),
        precision=precision,
        precision_from="config" if precision else None,
    )


def _checkpoint(folder: Path, weights: Mapping[str, int], source: Path) -> Read:
    config = folder / "config.json"
    if not config.exists():
        raise DataError("model_config_missing", file=str(source), config=str(config))
    found = _config(config)
    _check_bytes(sum(weights.values()), found, source)
    plain = found.precision is None
    precision = safetensors.plain_precision(weights) if plain else found.precision
    return msgspec.structs.replace(
        found,
        origin="safetensors",
        source=str(source),
        weight_bytes=sum(weights.values()),
        formats=weights,
        precision=precision,
        precision_from="header" if plain and precision else found.precision_from,
    )


_LEAST_BITS, _MOST_BITS = 1, 64
"""Of a parameter, of any format there is."""


def _check_bytes(held: int, found: Read, source: Path) -> None:
    """Refuses files that cannot be the weights of such a model: parts of them, an adapter, another model's."""
    count = 0 if found.shape is None else parameters(found.shape)
    if not _LEAST_BITS * count <= 8 * held <= _MOST_BITS * count:
        raise DataError("model_weights_unlike", file=str(source), bytes=held, config=found.source, parameters=count)


def _gguf(path: Path) -> Read:
    found = read_gguf(path)
    return Read(
        shape=found.shape,
        origin="gguf",
        source=str(path),
        weight_bytes=sum(found.formats.values()),
        formats=found.formats,
        precision=found.precision,
        precision_from="header" if found.precision else None,
    )


def _server(served: Served) -> Read:
    """By the file it has loaded where that is one of this machine, else by the name it gives its model."""
    found = _of_server(served)
    if found is None:
        return Read(shape=None, origin="server", source=served.url, weight_bytes=served.weight_bytes, served=served)
    return msgspec.structs.replace(
        found,
        origin="server",
        source=served.url,
        weight_bytes=served.weight_bytes or found.weight_bytes,
        served=served,
    )


def _of_server(served: Served) -> Read | None:
    if served.local and served.path and served.path.endswith(".gguf") and Path(served.path).is_file():
        try:
            return _gguf(Path(served.path))
        except DataError:
            pass
    for name in (served.root, served.id, served.path):
        if not name:
            continue
        word = re.split(r"[\\/]", name)[-1] if name == served.path else name
        try:
            return _known(word.removesuffix(".gguf"))
        except DataError:
            continue
    return None
