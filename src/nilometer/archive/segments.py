"""The segments of one run in the database: written from a spool, read one at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nilometer.core.record import Record

from . import codec, series
from .columns import DamagedError
from .database import Database, insert
from .spool import Part, Spool

WORKER = "worker"
"""Telemetry source: what the load worker saw of itself."""


RECORDS = insert("record_segment", ("run", *Part._fields))
SERIES = insert("telemetry_segment", ("run", "source", "n", "codec", "blob"))


def write_records(db: Database, run_id: str, spool: Spool) -> None:
    """Copy all parts of the spool into the open transaction."""
    for part in spool.parts():
        db.execute(RECORDS, (run_id, *part))


def read_records(db: Database, run_id: str) -> Iterator[list[Record]]:
    """The records segment by segment. Raises DamagedError; that all segments came is for the caller to count."""
    n = 0
    while parts := _parts(db, run_id, n):
        names, numbers, counts, blobs = zip(*parts, strict=True)
        records = codec.decode(names[0], b"".join(blobs))
        if list(numbers) != list(range(len(parts))) or set(counts) != {len(records)}:
            raise DamagedError(f"segment {n} does not hold the records it should")
        yield records
        n += 1


def _parts(db: Database, run_id: str, n: int) -> list[tuple[str, int, int, bytes]]:
    return db.rows(
        "SELECT codec, part, records, blob FROM record_segment WHERE run = ? AND n = ? ORDER BY part", (run_id, n)
    )


def write_series(db: Database, run_id: str, columns: Mapping[str, bytes]) -> None:
    """Write packed columns over time."""
    rows = [(run_id, WORKER, n, series.SERIES, blob) for n, blob in enumerate(series.encode(columns))]
    db.execute_many(SERIES, rows)


def read_series(db: Database, run_id: str) -> dict[str, bytes]:
    """The packed columns by name; those that were empty are left out. Raises DamagedError."""
    found = db.rows(
        "SELECT n, codec, blob FROM telemetry_segment WHERE run = ? AND source = ? ORDER BY n", (run_id, WORKER)
    )
    if [n for n, _, _ in found] != list(range(len(found))):
        raise DamagedError("a segment of telemetry is missing")
    return series.decode({name for _, name, _ in found}, [blob for _, _, blob in found])
