"""The schema by numbers: what version a database file is, whether we may touch it, and the way up to ours.

Each step is one transaction with its version number inside, so that two processes may open a fresh or an old archive at
once, and a crash leaves it at a whole version. A file that is newer, or another program's, is refused untouched.
"""

from __future__ import annotations

import sqlite3
import time
from functools import cache
from importlib import resources
from pathlib import Path

from nilometer.core.errors import ArchiveError

from .faults import primary_code

APPLICATION_ID = 0x4E494C4F
"""PRAGMA application_id of our files: "NILO"."""

_RETRY_S = 0.02


@cache
def migrations() -> tuple[str, ...]:
    """The scripts in order: the n-th leads from version n - 1 to n."""
    folder = resources.files(__package__).joinpath("schema")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    if [int(name[:4]) for name in names] != list(range(1, len(names) + 1)):
        raise RuntimeError(f"migrations are not numbered 1, 2, ...: {names}")
    return tuple(folder.joinpath(name).read_text("utf-8") for name in names)


def bring_up(db: sqlite3.Connection, path: Path, busy_s: float) -> None:
    """Lead the database to our version, creating it where it is empty. Slugs `archive_newer`, `archive_unreadable`."""
    if _version(db, path) == 0:
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")
        _switch_to_wal(db, busy_s)
    while _version(db, path) < len(migrations()):
        db.execute("BEGIN IMMEDIATE")
        try:
            _step(db, path)
            db.execute("COMMIT")
        finally:
            if db.in_transaction:
                db.execute("ROLLBACK")


def _version(db: sqlite3.Connection, path: Path) -> int:
    """Read in one transaction, or another process's first step would show half."""
    alone = not db.in_transaction
    if alone:
        db.execute("BEGIN")
    (version,) = db.execute("PRAGMA user_version").fetchone()
    (owner,) = db.execute("PRAGMA application_id").fetchone()
    (objects,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if alone:
        db.execute("COMMIT")
    if (version or objects) and owner != APPLICATION_ID:
        raise ArchiveError("archive_unreadable", path=str(path), detail="a database of another program")
    if version > len(migrations()):
        raise ArchiveError("archive_newer", path=str(path), found=version, known=len(migrations()))
    return int(version)


def _step(db: sqlite3.Connection, path: Path) -> None:
    """One migration; asked again under the lock, because another process may have been first."""
    version = _version(db, path)
    if version >= len(migrations()):
        return
    for statement in statements(migrations()[version]):
        db.execute(statement)
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {version + 1}")


def statements(script: str) -> list[str]:
    """The statements of a script one by one: `executescript` would commit before the first."""
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


def _switch_to_wal(db: sqlite3.Connection, busy_s: float) -> None:
    """WAL is kept in the file. While two processes switch at once SQLite reports busy without waiting; so we wait."""
    deadline_s = time.monotonic() + busy_s
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as fault:
            if primary_code(fault) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline_s:
                raise
            time.sleep(_RETRY_S)
