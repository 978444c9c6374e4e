"""The workload file: one TOML that says what it is, one JSON line a request beside it; written whole or not at all."""

from __future__ import annotations

import hashlib
import math
import os
import tomllib
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Any

import msgspec
import tomli_w

from nilometer.core.errors import DataError, SpecError
from nilometer.workload.entry import NS_PER_S, Entry, Head, Row, Workload, in_order

from .lines import Stream
from .row import FAULTS, Broken, Got, blocks, broken, length

FORMAT = 1
_ENCODER = msgspec.json.Encoder()
_BUFFER_ROWS = 4096


def data_path(path: Path) -> Path:
    """Where the rows of a workload file lie. Refuses `workload_name` one that is not called `.toml`."""
    if path.suffix != ".toml":
        raise SpecError("workload_name", file=str(path))
    return path.with_suffix(".jsonl")


def refuse_taken(path: Path, sources: Iterable[Path]) -> None:
    """Refuse, before anything is written, to write a workload over what is none of its own.

    SpecError `workload_over_source` where a file of it is one of `sources`, by whatever name; `workload_taken` where
    one is there that is not of the workload to be replaced.
    """
    data = data_path(path)
    sources = list(sources)
    for place in (data, path):
        if place.exists() and any(source.exists() and place.samefile(source) for source in sources):
            raise SpecError("workload_over_source", file=str(place))
    for place, own in ((path, _stated), (data, read_head)):
        if place.exists() and not _is_of(data, path, own):
            raise SpecError("workload_taken", file=str(place))


def _is_of(data: Path, path: Path, read: Callable[[Path], Head]) -> bool:
    try:
        return read(path).data == data.name
    except DataError:
        return False


def write_workload(path: Path, rows: Iterable[Row], **facts: Any) -> Head:
    """Write both files; `facts` are the fields of the Head that the rows do not give. Refuses `file_unwritable`."""
    data = data_path(path)
    parts = [place.with_name(f"{place.name}.{os.getpid()}.part") for place in (data, path)]
    try:
        with parts[0].open("wb") as file:
            digest, number = encoded(file.write, rows)
        head = Head(nilometer_workload=FORMAT, name=path.stem, data=data.name, sha256=digest, rows=number, **facts)
        parts[1].write_text(tomli_w.dumps(_plain(head)), "utf-8")
        parts[0].replace(data)
        parts[1].replace(path)
    except OSError as fault:
        raise SpecError("file_unwritable", file=str(path), detail=fault.strerror or str(fault)) from None
    finally:
        for part in parts:
            with suppress(OSError):
                part.unlink(missing_ok=True)
    return head


def encoded(write: Callable[[bytes], object], rows: Iterable[Row]) -> tuple[str, int]:
    """Hand the rows to `write` as the data file has them; (their hash, how many)."""
    digest = hashlib.sha256()
    held: list[Row] = []
    number = 0

    def flush() -> None:
        block = _ENCODER.encode_lines(held)
        digest.update(block)
        write(block)
        held.clear()

    for row in rows:
        held.append(row)
        number += 1
        if len(held) >= _BUFFER_ROWS:
            flush()
    flush()
    return digest.hexdigest(), number


def _plain(head: Head) -> dict[str, Any]:
    table: dict[str, Any] = msgspec.to_builtins(head)
    return {key: value for key, value in table.items() if value is not None}


def read_head(path: Path) -> Head:
    """What the file says of itself, its data file checked against it. Refuses `file_unreadable`, `workload_wrong`."""
    head = _stated(path)
    digest = hashlib.sha256()
    data = path.with_name(head.data)
    try:
        if not S_ISREG(data.stat().st_mode):
            raise DataError("file_piped", file=str(data))
        with data.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    except OSError as fault:
        raise DataError("file_unreadable", file=str(data), detail=fault.strerror or str(fault)) from None
    if digest.hexdigest() != head.sha256:
        raise DataError("workload_changed", file=str(data))
    return head


HEAD_MOST_BYTES = 1 << 20
"""A head takes a few hundred bytes."""


def _head_text(path: Path) -> str:
    """The whole of a file that is short: what has no end, or is a data set itself, is not read to its end."""
    mode = path.stat().st_mode
    if not S_ISREG(mode) and not S_ISDIR(mode):
        raise DataError("file_piped", file=str(path))
    with path.open("rb") as file:
        data = file.read(HEAD_MOST_BYTES + 1)
    if len(data) > HEAD_MOST_BYTES:
        raise DataError("workload_wrong", file=str(path), detail=f"> {HEAD_MOST_BYTES} B")
    return data.decode("utf-8")


def _stated(path: Path) -> Head:
    """What the file says of itself, its data file unseen."""
    try:
        head = msgspec.convert(tomllib.loads(_head_text(path)), Head)
    except OSError as fault:
        raise DataError("file_unreadable", file=str(path), detail=fault.strerror or str(fault)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError, msgspec.ValidationError) as fault:
        raise DataError("workload_wrong", file=str(path), detail=str(fault)[:200]) from None
    if head.nilometer_workload != FORMAT:
        raise DataError("workload_newer", file=str(path), found=head.nilometer_workload, known=FORMAT)
    if Path(head.data).name != head.data or head.data in (".", "..", ""):
        raise DataError("workload_wrong", file=str(path), detail=f"data = {head.data[:80]!r}")
    if head.block_tokens is not None and head.block_tokens < 1:
        raise DataError("workload_wrong", file=str(path), detail=f"block_tokens = {head.block_tokens}")
    return head


def read_workload(path: Path) -> Workload:
    """The whole file as a value, its rows in order of time. Refuses as `read_head` does, and broken rows by line.

    A row of lengths and an offset takes 192 bytes of memory (measured), one of text also its text: the rows are asked
    again and again, so they stay. Of a trace of 27 million rows that is 5 GB; take a sample of it.
    """
    head = read_head(path)
    data = path.with_name(head.data)
    decoder = msgspec.json.Decoder(Row)
    rows = []
    for line, text in Stream(data).lines():
        try:
            row = decoder.decode(text or b"")
            _refuse_impossible(row)
        except FAULTS as fault:
            told = broken(fault)
            raise DataError(told.slug, file=str(data), line=line, detail=told.detail) from None
        rows.append(row)
    if len(rows) != head.rows:
        raise DataError("workload_wrong", file=str(path), detail=f"rows = {head.rows}, {len(rows)} in {head.data}")
    return Workload(head, tuple(in_order(rows, lambda row: row.offset_s)))


def _refuse_impossible(row: Row) -> None:
    """Refuse a length, an id or an offset that cannot be."""
    length(row.input_tokens, "input_tokens")
    length(row.output_tokens, "output_tokens")
    length(row.turns, "turns")
    for part in row.parts:
        length(part.tokens, "parts.tokens")
    if row.hash_ids:
        blocks(row.hash_ids)
    if row.offset_s is not None and not (math.isfinite(row.offset_s) and 0 <= row.offset_s < 4e9):
        raise Broken("stamp_wrong", f"offset_s: {row.offset_s}")


def entry(row: Row, line: int) -> Entry:
    """The row as any other source gives it. Refuses a length, an id or an offset that cannot be."""
    _refuse_impossible(row)
    return Entry(
        line=line,
        at_ns=None if row.offset_s is None else round(row.offset_s * NS_PER_S),
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        turns=row.turns,
        parts=row.parts,
        hash_ids=row.hash_ids,
        session=row.session,
        scenario=row.scenario,
        custom_id=row.custom_id,
        guessed_input=row.guessed_input,
        guessed_output=row.guessed_output,
    )


def read(row: Row, line: int) -> tuple[Got, ...]:
    """The reader of the table of formats."""
    return (entry(row, line),)
