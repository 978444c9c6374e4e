"""Reads everything in the archive and says what is wrong with it; changes nothing."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from nilometer.core.errors import ArchiveError
from nilometer.metrics.figures import Figure, figures

from .protocol import Checked
from .reading import read_records, read_run

_MOST_FILE_PROBLEMS = 10


def check(db: sqlite3.Connection, path: Path) -> Checked:
    """The file by SQLite's own check, then every run: its parts, each segment, the counts, the index of figures."""
    problems = _check_file(db, path)
    runs = db.execute("SELECT id, records FROM run ORDER BY started_wall_ns").fetchall()
    total = 0
    for run_id, expected in runs:
        try:
            total += _check_run(db, run_id, expected)
        except ArchiveError as fault:
            problems.append(fault)
    return Checked(len(runs), total, problems)


def _check_file(db: sqlite3.Connection, path: Path) -> list[ArchiveError]:
    told = [line for (line,) in db.execute(f"PRAGMA integrity_check({_MOST_FILE_PROBLEMS})") if line != "ok"]
    strays = db.execute("PRAGMA foreign_key_check").fetchmany(_MOST_FILE_PROBLEMS)
    told += [f"{table} row {row} belongs to nothing in {parent}" for table, row, parent, _ in strays]
    return [ArchiveError("archive_damaged", path=str(path), detail=line) for line in told]


def _check_run(db: sqlite3.Connection, run_id: str, expected: int) -> int:
    """Reads all of it and returns the number of its records. Slugs `run_damaged`, `run_newer`."""
    run = read_run(db, run_id)
    stored = db.execute("SELECT scope, metric, stat, value FROM summary_value WHERE run = ?", (run_id,))
    if {Figure(*row) for row in stored} != set(figures(run.summary)):
        raise ArchiveError("run_damaged", run=run_id, detail="the index of figures does not agree with the summary")
    return sum(len(segment) for segment in read_records(db, run_id, expected))
