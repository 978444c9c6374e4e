"""Requests as a Parquet file, for analysis elsewhere. Needs pyarrow, which is an extra and imported only here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import IO, TYPE_CHECKING, Any

import msgspec

from nilometer.core.errors import SpecError
from nilometer.core.record import Record
from nilometer.core.run import Run

from .csv_rows import RECORDS, Value, record_row

if TYPE_CHECKING:
    from types import ModuleType

_BATCH = 20_000
"""Rows held at a time."""
_FLOATS = ("ttft_ms", "ttfa_ms", "tpot_ms", "e2e_ms", "retry_after_s")
_FLAGS = ("hidden_tokens", "new_connection")


def write(sink: IO[bytes], runs: Iterable[tuple[Run, Iterable[Record]]]) -> None:
    """All requests in the columns of `csv_rows.RECORDS`. Slug `parquet_missing` where pyarrow is not installed."""
    arrow, parquet = libraries()
    schema = arrow.schema([(name, _type(name, arrow)) for name in RECORDS])
    with parquet.ParquetWriter(sink, schema, compression="zstd") as writer:
        for rows in _batches(runs):
            writer.write_table(arrow.Table.from_pylist(rows, schema=schema))


def libraries() -> tuple[ModuleType, ModuleType]:
    """pyarrow and its Parquet part. Slug `parquet_missing`."""
    try:
        import pyarrow  # noqa: PLC0415 - an extra
        import pyarrow.parquet  # noqa: PLC0415
    except ImportError:
        raise SpecError("parquet_missing") from None
    return pyarrow, pyarrow.parquet


def _type(name: str, arrow: Any) -> object:
    if name in _FLOATS:
        return arrow.float64()
    if name in _FLAGS:
        return arrow.bool_()
    return arrow.string() if name in _TEXTS else arrow.int64()


def _batches(runs: Iterable[tuple[Run, Iterable[Record]]]) -> Iterator[list[dict[str, Value]]]:
    rows = (_fitting(record_row(run, record)) for run, records in runs for record in records)
    while batch := list(islice(rows, _BATCH)):
        yield batch


def _fitting(row: dict[str, Value]) -> dict[str, Value]:
    """A count beyond 64 bits, which only a broken server states, is left out."""
    return {name: None if isinstance(value, int) and abs(value) >= 2**63 else value for name, value in row.items()}


def _text_fields() -> frozenset[str]:
    """Those whose type in a Record is a text or one of a list of words."""
    named = {field.name: str(field.type) for field in msgspec.structs.fields(Record)}
    return frozenset({"run", *(name for name, kind in named.items() if "str" in kind or "Literal" in kind)})


_TEXTS = _text_fields()
