"""What a file asks: a workload file as it is, the texts of any other source without a workload file between."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nilometer.core.errors import DataError
from nilometer.workload.entry import Entry, Head, Workload, is_prompt

from .making import least_ns, made
from .reading import Reading
from .sniff import sniff
from .sorting import in_time
from .workload_file import FORMAT, encoded, read_workload

_STRUCTURED = (".csv", ".json", ".jsonl", ".gz", ".zst")


def read_asked(path: Path) -> Workload:
    """The requests of `path`, with the hash that `workload make --keep-text` gives the same rows.

    Refuses as `read_workload` does; of other sources every row that cannot be read, and `prompts_without_text` one
    that does not say what was asked.
    """
    if path.suffix == ".toml":
        return read_workload(path)
    reading = _opened(path)
    entries: list[Entry] = []
    for batch in reading.batches():
        entries += batch.rows()
        _refuse(reading, path, entries[len(entries) - batch.size :])
    _refuse(reading, path, ())
    made_of, facts = made(reading, "kept", in_time(entries), least_ns(entries))
    rows = tuple(made_of)
    digest, number = encoded(len, rows)
    head = Head(nilometer_workload=FORMAT, name=path.stem, data=path.name, sha256=digest, rows=number, **facts)
    return Workload(head, rows)


def _refuse(reading: Reading, path: Path, entries: Sequence[Entry]) -> None:
    """As soon as it is read: what cannot be read, and what does not say what was asked."""
    if reading.problems:
        raise reading.problems[0].error(path)
    silent = next((entry.line for entry in entries if not is_prompt(entry.parts)), None)
    if silent is not None:
        raise DataError("prompts_without_text", file=str(path), line=silent)


def _opened(path: Path) -> Reading:
    """By its format; what has none and no structure in its name is text, a prompt a line."""
    try:
        return Reading(path)
    except DataError as fault:
        if fault.slug != "format_unknown" or path.suffix in _STRUCTURED or sniff(path).layout not in ("text", "csv"):
            raise
        return Reading(path, name="text")
