"""Records as one segment of bytes and back, exactly: a None stays None, an empty column stays empty.

Codec `columns-1`: every field a column over the records of the segment; a field that no record of the segment sets is
left out. Stamps are kept as their distance to `sent_ns`; `seq` and `sent_ns` as their distance to the record before;
frame stamps as the gap to the frame before (`frames.py`).
Codec `json-1`: the records as JSON under zstd, for the rare segment that columns cannot hold, such as a server that
claims 10^30 tokens. Both are read for ever; a change of either gets a new name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from nilometer.core.record import Record

from . import frames
from .columns import (
    RAW_LIMIT_BYTES,
    Bytes,
    Columns,
    DamagedError,
    Ints,
    fold,
    ints,
    pack,
    squeeze,
    texts,
    unfold,
    unpack,
    unsqueeze,
    untexts,
)

COLUMNS = "columns-1"
JSON = "json-1"

SEGMENT_WEIGHT_BYTES = 6 << 20
"""A segment is closed when its records weigh this much, so that it stays below 8 MB even where nothing compresses."""

CHAINED = ("seq", "sent_ns")
FROM_SENT = (
    "due_ns",
    "sent_end_ns",
    "first_byte_ns",
    "first_token_ns",
    "first_answer_ns",
    "last_token_ns",
    "end_ns",
)
PLAIN = (
    "connect_ns",
    "tls_ns",
    "status",
    "prompt_tokens",
    "cached_tokens",
    "output_tokens",
    "reasoning_tokens",
    "choices",
    "hidden_tokens",
    "asked_input",
    "asked_output",
    "turn",
    "target",
    "worker",
    "connection",
    "new_connection",
    "refill_ns",
)
TEXTS = (
    "id",
    "phase",
    "outcome",
    "error",
    "error_detail",
    "finish_reason",
    "native_finish_reason",
    "token_source",
    "scenario",
    "conversation",
    "server_request_id",
    "stamp_source",
    "text",
    "reasoning",
    "tool_arguments",
)
FLAGS = ("hidden_tokens", "new_connection")
FLOAT = "retry_after_s"
SERVER = "server"

_DEFAULTS = {field.name: field.default for field in msgspec.structs.fields(Record)}


def batches(records: Iterable[Record]) -> Iterator[list[Record]]:
    """Cut a stream of records where a segment is full; holds one segment at a time."""
    batch: list[Record] = []
    weight = 0
    for record in records:
        batch.append(record)
        weight += _weight(record)
        if weight >= SEGMENT_WEIGHT_BYTES:
            yield batch
            batch, weight = [], 0
    if batch:
        yield batch


def _weight(record: Record) -> int:
    kept = sum(len(text) for text in (record.text, record.reasoning, record.tool_arguments) if text)
    return 256 + frames.weight(record.frames) + kept


def encode(records: Sequence[Record]) -> tuple[str, bytes]:
    """The codec's name and the bytes. Raises TooLargeError; UnicodeEncodeError or TypeError for an impossible value."""
    if not all(frames.regular(record.frames) for record in records):
        return JSON, squeeze(msgspec.json.encode(records))
    try:
        return COLUMNS, pack(_columns(records))
    except OverflowError:
        return JSON, squeeze(msgspec.json.encode(records))


def decode(codec: str, blob: bytes) -> list[Record]:
    """The records of a segment, validated. Raises DamagedError."""
    try:
        if codec == JSON:
            return msgspec.json.decode(unsqueeze(blob), type=list[Record])
        if codec == COLUMNS:
            return _records(unpack(blob))
    except (msgspec.MsgspecError, KeyError, ValueError, IndexError, TypeError, OverflowError) as fault:
        raise DamagedError(f"{codec}: {fault}") from None
    raise DamagedError(f"unknown codec {codec}")


def _columns(records: Sequence[Record]) -> Columns:
    columns: Columns = {"records": np.array([len(records)], dtype=np.int64)}
    sent = _optional_ints([record.sent_ns for record in records])
    for name in (*CHAINED, *FROM_SENT, *PLAIN):
        values = [getattr(record, name) for record in records]
        if _is_set(name, values):
            columns |= _int_columns(name, values, sent)
    for name in TEXTS:
        values = [getattr(record, name) for record in records]
        if _is_set(name, values):
            columns |= texts(name, values)
    columns |= _server_columns([record.server for record in records])
    columns |= _float_columns([record.retry_after_s for record in records])
    return columns | frames.encode([record.frames for record in records], sent)


def _is_set(name: str, values: Sequence[object]) -> bool:
    """Whether any record differs from the field's default (which NODEFAULT, a required field's, always does)."""
    default = _DEFAULTS[name]
    return any(value != default for value in values)


def _optional_ints(values: Sequence[int | None]) -> Ints:
    return ints(0 if value is None else value for value in values)


def _int_columns(name: str, values: Sequence[int | None], sent: Ints) -> Columns:
    numbers = _optional_ints(values)
    columns: Columns = {}
    present = np.fromiter((value is not None for value in values), dtype=np.bool_, count=len(values))
    if not present.all():
        columns[f"{name}.present"] = np.packbits(present)
    columns[name] = fold(_relative(name, numbers, present, sent))
    return columns


def _relative(name: str, numbers: Ints, present: npt.NDArray[np.bool_], sent: Ints) -> Ints:
    """Wraps around at 64 bits, both here and back: exact for every number."""
    if name in CHAINED:
        return np.diff(numbers, prepend=0)
    if name in FROM_SENT:
        return np.where(present, numbers - sent, 0)
    return numbers


def _server_columns(values: Sequence[Mapping[str, object] | None]) -> Columns:
    if all(value is None for value in values):
        return {}
    return texts(SERVER, [None if value is None else msgspec.json.encode(value).decode() for value in values])


def _float_columns(values: Sequence[float | None]) -> Columns:
    if all(value is None for value in values):
        return {}
    return {
        f"{FLOAT}.present": np.packbits([value is not None for value in values]),
        FLOAT: np.array([0.0 if value is None else value for value in values], dtype=np.float64),
    }


def _records(columns: Columns) -> list[Record]:
    n = int(columns.pop("records")[0])
    if not 0 <= n <= RAW_LIMIT_BYTES // 8:
        raise DamagedError(f"{n} records in one segment")
    values: dict[str, Sequence[object]] = {}
    sent: Ints = np.zeros(n, dtype=np.int64)
    for name in (*CHAINED, *FROM_SENT, *PLAIN):
        if name in columns:
            numbers, present = _absolute(name, columns, sent, n)
            sent = numbers if name == "sent_ns" else sent
            values[name] = _with_none(numbers.tolist(), present)
    for name in (*TEXTS, SERVER):
        if f"{name}.sizes" in columns:
            values[name] = untexts(name, columns)
            del columns[f"{name}.sizes"], columns[f"{name}.utf8"]
    values |= _floats(columns, n) | _typed(values)
    values["frames"] = frames.decode(columns, sent)
    _refuse_the_unknown(columns, values, n)
    names = tuple(values)
    rows = [dict(zip(names, row, strict=True)) for row in zip(*values.values(), strict=True)]
    return msgspec.convert(rows, type=list[Record])


def _absolute(name: str, columns: Columns, sent: Ints, n: int) -> tuple[Ints, Bytes | None]:
    numbers = unfold(columns.pop(name))
    bits = columns.pop(f"{name}.present", None)
    present = None if bits is None else np.unpackbits(bits, count=n)
    if name in CHAINED:
        return np.cumsum(numbers), present
    return (numbers + sent if name in FROM_SENT else numbers), present


def _with_none(values: list[Any], present: Bytes | None) -> list[Any]:
    if present is None:
        return values
    return [value if there else None for value, there in zip(values, present.tolist(), strict=True)]


def _floats(columns: Columns, n: int) -> dict[str, Sequence[object]]:
    if FLOAT not in columns:
        return {}
    present = np.unpackbits(columns.pop(f"{FLOAT}.present"), count=n)
    return {FLOAT: _with_none(columns.pop(FLOAT).tolist(), present)}


def _typed(values: Mapping[str, Sequence[object]]) -> dict[str, Sequence[object]]:
    """The columns whose stored form is not the field's own: yes or no, and the server's own words."""
    typed: dict[str, Sequence[object]] = {name: [bool(v) for v in values[name]] for name in FLAGS if name in values}
    if SERVER in values:
        typed[SERVER] = [None if text is None else msgspec.json.decode(str(text)) for text in values[SERVER]]
    return typed


def _refuse_the_unknown(columns: Columns, values: Mapping[str, Sequence[object]], n: int) -> None:
    if columns:
        raise DamagedError(f"unknown columns {sorted(columns)}")
    odd = [name for name, column in values.items() if len(column) != n]
    if odd:
        raise DamagedError(f"columns of another length {odd}")
