"""A run, or a group with its runs, as one file: a small archive that holds nothing else, in the schema of the day.

So whatever reads archives reads it, for ever. One that is read is never written to, not even to migrate it, but a copy
of it is. It may come from a stranger: what is no table or index is refused before anything of it is done.
"""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from nilometer.core.errors import ArchiveError, DataError, SpecError
from nilometer.core.run import is_id

from . import transfer
from .check import check
from .database import Database
from .faults import mapped
from .protocol import Ref
from .sqlite import APPLICATION_ID, Sqlite
from .transfer import Moved


def export(source: Database, of: Ref, path: Path, *, force: bool = False) -> int:
    """Write a new file; how many runs it holds. Tags stay behind: they are names in their archive, notes come along.

    `force`: in place of one that is there. Slugs `file_exists`, `file_unwritable`, those of reading and of writing.
    """
    if os.path.lexists(path) and not force:
        raise SpecError("file_exists", file=str(path))
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        raise SpecError(
            "file_unwritable", file=str(path), detail=os.strerror(errno.EISDIR if path.is_dir() else errno.ENXIO)
        )
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.open("xb").close()
        part.chmod(0o600)
    except OSError as fault:
        raise SpecError("file_unwritable", file=str(path), detail=fault.strerror or str(fault)) from None
    try:
        with closing(Sqlite(part)) as target:
            runs = list(_copied(source, target, of))
            target.to_one_file()
        part.replace(path)
    finally:
        for left in (part, *path.parent.glob(f"{part.name}-*")):
            left.unlink(missing_ok=True)
    return len(runs)


def _copied(source: Database, target: Database, of: Ref, *, tags: bool = False) -> Iterator[Moved]:
    """Its runs in their order; their group behind them."""
    if of.kind == "run":
        yield transfer.run(source, target, of.id, tags=tags)
        return
    ordered = "SELECT id FROM run WHERE run_group = ? ORDER BY started_wall_ns, id"
    for (run_id,) in source.rows(ordered, (of.id,)):
        yield transfer.run(source, target, run_id, tags=tags)
    transfer.group(source, target, of.id, tags=tags)


def import_into(target: Database, *paths: Path) -> list[Moved]:
    """Their runs into an archive, when all of every file was read and nothing was amiss. Slugs as `opened`,
    `run_newer`."""
    with ExitStack() as stack:
        sources = [stack.enter_context(opened(path)) for path in paths]
        found = [(source, _whole(source, path)) for source, path in zip(sources, paths, strict=True)]
        return [moved for source, of in found for moved in _copied(source, target, of)]


def _whole(db: Database, path: Path) -> Ref:
    """What the file holds, when all of it was read. Slugs `export_unreadable`, `run_newer`."""
    try:
        for fault in check(db).problems:
            raise fault
        return held(db, path)
    except ArchiveError as fault:
        raise fault if fault.slug == "run_newer" else _unreadable(path, fault) from None


@contextmanager
def opened(path: Path) -> Iterator[Database]:
    """A copy of the file as a database, gone afterwards.

    Slugs `file_unreadable`, `export_unreadable` for what is none or is damaged, `export_newer`.
    """
    with tempfile.TemporaryDirectory(prefix="nilo-") as folder:
        copy = Path(folder) / path.name
        try:
            shutil.copyfile(path, copy)
        except OSError as fault:
            raise DataError("file_unreadable", file=str(path), detail=fault.strerror or str(fault)) from None
        with closing(_open(copy, path)) as db:
            yield db


def _open(copy: Path, path: Path) -> Database:
    try:
        _refuse_what_acts(copy, path)
        return Sqlite(copy)
    except ArchiveError as fault:
        if fault.slug == "archive_newer":
            raise DataError("export_newer", file=str(path)) from None
        raise _unreadable(path, fault) from None


def _refuse_what_acts(copy: Path, path: Path) -> None:
    """No triggers and no views, which would be done with what is asked for; no file of any other program."""
    with mapped(copy), closing(sqlite3.connect(f"{copy.as_uri()}?mode=ro&immutable=1", uri=True)) as db:
        (owner,) = db.execute("PRAGMA application_id").fetchone()
        (acting,) = db.execute("SELECT count(*) FROM sqlite_master WHERE type NOT IN ('table', 'index')").fetchone()
    if owner != APPLICATION_ID or acting:
        raise DataError("export_unreadable", file=str(path), detail="a database of another program")


def held(db: Database, path: Path) -> Ref:
    """What the file holds: a group, else one run. Slug `export_unreadable` for any other archive."""
    groups, runs = db.rows("SELECT id FROM run_group"), db.rows("SELECT id, run_group FROM run")
    if not all(isinstance(name, str) and is_id(name) for name, *_ in (*groups, *runs)):
        raise DataError("export_unreadable", file=str(path), detail="a name that is no id")
    if len(groups) == 1 and {(group,) for _, group in runs} == {*groups}:
        return Ref("group", groups[0][0])
    if len(runs) == 1 and not groups:
        return Ref("run", runs[0][0])
    raise DataError("export_unreadable", file=str(path), detail=f"{len(runs)} runs, {len(groups)} groups")


def _unreadable(path: Path, fault: ArchiveError) -> DataError:
    return DataError("export_unreadable", file=str(path), detail=fault.params.get("detail", fault.slug))
