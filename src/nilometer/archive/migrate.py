"""The schema by numbers: what version a database is, whether we may touch it, and the way up to ours.

Each step is one transaction with its version number inside, so that two processes may open a fresh or an old archive at
once, and a crash leaves it at a whole version. One that is newer, or another program's, is refused untouched.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import cache
from importlib import resources

from nilometer.core.errors import ArchiveError

from .database import Database
from .rows import fill_searched

FILLS: dict[int, Callable[[Database], None]] = {2: fill_searched}
"""Version -> what fills the columns that its script has added."""


@cache
def migrations() -> tuple[str, ...]:
    """The scripts in order: the n-th leads from version n - 1 to n."""
    folder = resources.files(__package__).joinpath("schema")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    if [int(name[:4]) for name in names] != list(range(1, len(names) + 1)):
        raise RuntimeError(f"migrations are not numbered 1, 2, ...: {names}")
    return tuple(folder.joinpath(name).read_text("utf-8") for name in names)


def bring_up(db: Database) -> None:
    """Lead the database to our version, creating it where it is empty. Slug `archive_newer`, those of `Database`."""
    while known_version(db) < len(migrations()):
        with db.migration():
            _step(db)


def known_version(db: Database) -> int:
    """The version of the database, which is none that we do not know: slugs `archive_newer`, `archive_unreadable`."""
    version = db.version()
    if version < 0:
        raise ArchiveError("archive_unreadable", path=db.place, detail=f"schema {version}")
    if version > len(migrations()):
        raise ArchiveError("archive_newer", path=db.place, found=version, known=len(migrations()))
    return version


def _step(db: Database) -> None:
    """One migration; asked again under the lock, because another process may have been first."""
    version = known_version(db)
    if version >= len(migrations()):
        return
    for statement in statements(migrations()[version]):
        db.apply(statement)
    fill = FILLS.get(version + 1)
    if fill is not None:
        fill(db)
    db.set_version(version + 1)


def statements(script: str) -> list[str]:
    """The statements of a script one by one: none of the databases takes several in the midst of a transaction."""
    found: list[str] = []
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            found.append(pending.strip())
            pending = ""
    if pending.strip():
        raise RuntimeError(f"a migration ends inside a statement: {pending.strip()[:80]}")
    return found
