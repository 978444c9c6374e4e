"""The segments of one run in the database: written from a spool, read one at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nilometer.core.record import Record
from nilometer.core.telemetry import Telemetry

from . import codec, looks, series
from .columns import DamagedError
from .database import Database, insert
from .spool import Part, Spool

WORKER = "worker"
"""Telemetry source: what the load worker saw of itself."""
METRICS = "metrics"
"""What the server's metrics page told."""
HOST = "host"
"""What was seen of the server's machine."""


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


def write_telemetry(db: Database, run_id: str, telemetry: Telemetry) -> None:
    """Write what was seen beside the records."""
    rows = [(run_id, METRICS, n, looks.LOOKS, blob) for n, blob in enumerate(looks.encode(telemetry.looks))]
    db.execute_many(SERIES, rows)
    write_series(db, run_id, HOST, telemetry.host)


def read_telemetry(db: Database, run_id: str) -> Telemetry:
    """What was seen beside the records. Raises DamagedError."""
    codecs, blobs = _segments(db, run_id, METRICS)
    return Telemetry(looks=looks.decode(codecs, blobs), host=read_series(db, run_id, HOST))


def write_series(db: Database, run_id: str, source: str, columns: Mapping[str, bytes]) -> None:
    """Write packed columns over time."""
    rows = [(run_id, source, n, series.SERIES, blob) for n, blob in enumerate(series.encode(columns))]
    db.execute_many(SERIES, rows)


def read_series(db: Database, run_id: str, source: str) -> dict[str, bytes]:
    """The packed columns by name; those that were empty are left out. Raises DamagedError."""
    return series.decode(*_segments(db, run_id, source))


def _segments(db: Database, run_id: str, source: str) -> tuple[set[str], list[bytes]]:
    """The codecs of a source's segments, and the segments in order."""
    found = db.rows(
        "SELECT n, codec, blob FROM telemetry_segment WHERE run = ? AND source = ? ORDER BY n", (run_id, source)
    )
    if [n for n, _, _ in found] != list(range(len(found))):
        raise DamagedError("a segment of telemetry is missing")
    return {name for _, name, _ in found}, [blob for _, _, blob in found]
