"""A run read back out of the database, or the reason why it cannot be."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from nilometer.core.errors import ArchiveError
from nilometer.core.record import Record
from nilometer.core.run import Run
from nilometer.core.telemetry import Telemetry

from . import rows, segments
from .columns import DamagedError
from .database import Database


def read_run(db: Database, run_id: str) -> Run:
    """The run as it was put. Slugs `run_unknown`, `run_newer`, `run_damaged`."""
    with whole(run_id):
        return rows.to_run(rows.select(db, run_id), segments.read_series(db, run_id, segments.WORKER))


def read_records(db: Database, run_id: str, expected: int) -> Iterator[list[Record]]:
    """Its records segment by segment. Slug `run_damaged`, also where they are not as many as `expected`."""
    seen = 0
    with whole(run_id):
        for segment in segments.read_records(db, run_id):
            seen += len(segment)
            yield segment
        if seen != expected:
            raise DamagedError(f"{seen} records of {expected}")


def read_telemetry(db: Database, run_id: str) -> Telemetry:
    """What was seen beside its records. Slug `run_damaged`."""
    with whole(run_id):
        return segments.read_telemetry(db, run_id)


@contextmanager
def whole(run_id: str) -> Iterator[None]:
    """What cannot be read back as a run gets a slug; a rotten page too, which concerns the runs on it alone."""
    try:
        yield
    except rows.NewerFormatError as fault:
        raise ArchiveError("run_newer", run=run_id, found=fault.found, known=fault.known) from None
    except (DamagedError, msgspec.MsgspecError, ValueError) as fault:
        raise ArchiveError("run_damaged", run=run_id, detail=str(fault)) from None
    except ArchiveError as fault:
        if fault.slug != "archive_unreadable":
            raise
        raise ArchiveError("run_damaged", run=run_id, detail=str(fault.params["detail"])) from None
