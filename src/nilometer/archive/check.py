"""Reads everything in the archive and says what is wrong with it; changes nothing."""

from __future__ import annotations

from collections.abc import Iterator

from nilometer.core.errors import ArchiveError, SpecError
from nilometer.metrics.figures import Figure, figures

from . import remarks, rows
from .database import Database
from .protocol import Checked
from .reading import read_records, read_run, read_telemetry, whole

_MOST_FILE_PROBLEMS = 10


def check(db: Database) -> Checked:
    """The database by its own check, groups, notes and tags, then every run: its parts, each segment, what was
    seen beside it, the counts, the index of figures."""
    problems = [ArchiveError("archive_damaged", path=db.place, detail=line) for line in db.damage(_MOST_FILE_PROBLEMS)]
    problems += _groups(db)
    runs = db.rows("SELECT id, records FROM run ORDER BY started_wall_ns, id")
    total = gone = 0
    for run_id, expected in runs:
        try:
            with db.snapshot():
                total += _check_run(db, run_id, expected)
        except ArchiveError as fault:
            problems.append(fault)
        except SpecError:
            gone += 1  # somebody has removed it meanwhile
    return Checked(len(runs) - gone, total, problems)


def _groups(db: Database) -> Iterator[ArchiveError]:
    """Groups that are none, and what people said that is no text."""
    for row in db.rows(f"SELECT {', '.join(rows.GROUP)} FROM run_group ORDER BY started_wall_ns, id"):
        try:
            rows.to_group(row)
        except ArchiveError as fault:
            yield fault
    for number, at, text in db.rows("SELECT id, written_wall_ns, text FROM note ORDER BY id"):
        if not remarks.is_note(at, text):
            yield ArchiveError("archive_damaged", path=db.place, detail=f"note {number} is none")
    for (name,) in db.rows("SELECT name FROM tag"):
        if not isinstance(name, str):
            yield ArchiveError("archive_damaged", path=db.place, detail=f"tag {name!r} is none")


def _check_run(db: Database, run_id: str, expected: int) -> int:
    """Reads all of it and returns the number of its records. Slugs `run_damaged`, `run_newer`."""
    run = read_run(db, run_id)
    with whole(run_id):
        rows.require_copies(rows.select(db, run_id))
    stored = db.rows("SELECT scope, metric, stat, value FROM summary_value WHERE run = ?", (run_id,))
    if {Figure(*row) for row in stored} != set(figures(run.summary)):
        raise ArchiveError("run_damaged", run=run_id, detail="the index of figures does not agree with the summary")
    read_telemetry(db, run_id)
    return sum(len(segment) for segment in read_records(db, run_id, expected))
