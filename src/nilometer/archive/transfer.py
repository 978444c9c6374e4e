"""Runs and groups from one archive into another, row by row, as they are: whatever their format, nothing is made anew.

What is there already stays as it is, so that a transfer that was cut off goes on where it ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nilometer.core.errors import ArchiveError, SpecError

from . import remarks, rows
from .columns import DamagedError
from .database import Database
from .migrate import known_version
from .protocol import Ref
from .reading import whole
from .segments import RECORDS, SERIES
from .storable import storable

_FIGURES = "SELECT run, scope, metric, stat, value FROM summary_value WHERE run = ?"
_TELEMETRY = "SELECT run, source, n, codec, blob FROM telemetry_segment WHERE run = ?"
_PARTS = "SELECT n, part FROM record_segment WHERE run = ? ORDER BY n, part"
_PART = "SELECT run, n, part, codec, records, blob FROM record_segment WHERE run = ? AND n = ? AND part = ?"


_OF_ONE = ("run_damaged", "group_damaged", "run_unstorable")
"""Slugs of what is amiss with one run or group, and keeps no other from being copied."""


class Moved(NamedTuple):
    """A run or a group that was looked at: `new` where it was not there, `fault` where it could not be read.

    `taken` are its tags that mean something else there, and stay so.
    """

    of: Ref
    new: bool = False
    fault: ArchiveError | None = None
    taken: tuple[str, ...] = ()


def everything(source: Database, target: Database) -> Iterator[Moved]:
    """Copy all there is, with tags and notes: the runs, the oldest first, then the groups."""
    for (run_id,) in source.rows("SELECT id FROM run ORDER BY started_wall_ns, id"):
        try:
            yield run(source, target, run_id)
        except ArchiveError as fault:
            if fault.slug not in _OF_ONE:
                raise
            yield Moved(Ref("run", run_id), fault=fault)
        except SpecError as fault:
            if fault.slug != "run_unknown":  # somebody has removed it since it was listed
                raise
    for (group_id,) in source.rows("SELECT id FROM run_group ORDER BY started_wall_ns, id"):
        try:
            yield group(source, target, group_id)
        except ArchiveError as fault:
            if fault.slug not in _OF_ONE:
                raise
            yield Moved(Ref("group", group_id), fault=fault)


def run(source: Database, target: Database, run_id: str, *, tags: bool = True) -> Moved:
    """Copy a run with its records and notes, all or nothing. Slugs `run_unknown`, `run_damaged`, `run_unstorable`."""
    of = Ref("run", run_id)
    with source.snapshot(), target.transaction(), storable(run_id):
        known_version(target)
        with whole(run_id):
            row = rows.select(source, run_id)
            new = bool(target.execute(rows.INSERT, rows.values(row)))
            if new:
                target.execute_many(rows.FIGURES, source.rows(_FIGURES, (run_id,)))
                target.execute_many(SERIES, source.rows(_TELEMETRY, (run_id,)))
                _copy_records(source, target, run_id, row["records"])
        return Moved(of, new, taken=_copy_remarks(source, target, of, tags=tags))


def group(source: Database, target: Database, group_id: str, *, tags: bool = True) -> Moved:
    """Copy a group without its runs, but with its notes. Slugs `group_damaged`, `run_unstorable`."""
    of = Ref("group", group_id)
    with source.snapshot(), target.transaction(), storable(group_id):
        known_version(target)
        found = source.rows(f"SELECT {', '.join(rows.GROUP)} FROM run_group WHERE id = ?", (group_id,))
        for row in found:
            rows.to_group(row)
        new = bool(found) and bool(target.execute(rows.NEW_GROUP, found[0]))
        return Moved(of, new, taken=_copy_remarks(source, target, of, tags=tags))


def _copy_records(source: Database, target: Database, run_id: str, expected: int) -> None:
    """A part at a time. Raises DamagedError where there are not as many as there should be."""
    seen = 0
    for n, part in source.rows(_PARTS, (run_id,)):
        (row,) = source.rows(_PART, (run_id, n, part))
        target.execute(RECORDS, row)
        seen += row[4] if part == 0 else 0
    if seen != expected:
        raise DamagedError(f"{seen} records of {expected}")


def _copy_remarks(source: Database, target: Database, of: Ref, *, tags: bool) -> tuple[str, ...]:
    """Notes that are not there yet, and tags whose names are free; those that are not."""
    said, known = remarks.remarks(source, of), remarks.remarks(target, of)
    for note in said.notes:
        if note not in known.notes:
            remarks.add_note(target, of, note)
    taken = []
    for name in said.tags if tags else ():
        before = remarks.tagged(target, name)
        if before is None and not remarks.is_other_id(target, name, of):
            remarks.keep_tag(target, name, of)
        elif before != of:
            taken.append(name)
    return tuple(taken)
