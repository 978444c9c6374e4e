"""An archive in one SQLite file: WAL, so that readers never wait for a writer, and writers wait for each other."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from nilometer.core.errors import ArchiveError

from .database import Row, UnstorableError, Values
from .faults import mapped, primary_code
from .migrate import bring_up
from .stored import StoredArchive

APPLICATION_ID = 0x4E494C4F
"""PRAGMA application_id of our files: "NILO"."""
BUSY_S = 30.0
"""How long a writer waits for another one."""
_RETRY_S = 0.02


class SqliteArchive(StoredArchive):
    """An `Archive` on one file, made where there is none. Slugs of opening: see `migrate.bring_up`, `faults`."""

    def __init__(self, path: Path, busy_s: float = BUSY_S) -> None:
        super().__init__(Sqlite(path, busy_s))


class Sqlite:
    """The `Database` in a file."""

    def __init__(self, path: Path, busy_s: float = BUSY_S) -> None:
        self.place = str(path)
        self.spool_folder: Path | None = path.parent
        self._path = path
        self._busy_s = busy_s
        with mapped(path):
            _create_private(path)
            self.connection = sqlite3.connect(path, timeout=busy_s, isolation_level=None)
        try:
            self._set_up()
        except BaseException:
            self.connection.close()
            raise

    def _set_up(self) -> None:
        if self.version() == 0:
            self._prepare()
        bring_up(self)
        with mapped(self._path):
            self.connection.execute("PRAGMA foreign_keys = ON")
            self.connection.execute("PRAGMA synchronous = FULL")  # a journal is dropped once its run is here
            self.connection.execute("PRAGMA journal_size_limit = 16000000")

    def _prepare(self) -> None:
        """WAL is kept in the file. While two processes switch at once SQLite reports busy without waiting; so we do."""
        deadline_s = time.monotonic() + self._busy_s
        with mapped(self._path):
            self.connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            while True:
                try:
                    self.connection.execute("PRAGMA journal_mode = WAL")
                    return
                except sqlite3.OperationalError as fault:
                    if primary_code(fault) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline_s:
                        raise
                    time.sleep(_RETRY_S)

    def execute(self, statement: str, values: Values = ()) -> int:
        with mapped(self._path), _storable():
            return self.connection.execute(statement, values).rowcount

    def execute_many(self, statement: str, rows: Iterable[Values]) -> None:
        with mapped(self._path), _storable():
            self.connection.executemany(statement, rows)

    def rows(self, query: str, values: Values = ()) -> list[Row]:
        try:
            with mapped(self._path):
                return self.connection.execute(query, values).fetchall()
        except UnicodeEncodeError:
            return []

    @contextmanager
    def _between(self, begin: str) -> Iterator[None]:
        with mapped(self._path):
            self.connection.execute(begin)
        try:
            yield
            with mapped(self._path):
                self.connection.execute("COMMIT")
        finally:
            if self.connection.in_transaction:
                with mapped(self._path):
                    self.connection.execute("ROLLBACK")

    def transaction(self) -> AbstractContextManager[None]:
        return self._between("BEGIN IMMEDIATE")

    def migration(self) -> AbstractContextManager[None]:
        return self._between("BEGIN IMMEDIATE")

    def snapshot(self) -> AbstractContextManager[None]:
        return self._between("BEGIN")

    def version(self) -> int:
        """Read in one transaction, or another process's first step would show half."""
        if not self.connection.in_transaction:
            with self.snapshot():
                return self.version()
        with mapped(self._path):
            (version,) = self.connection.execute("PRAGMA user_version").fetchone()
            (owner,) = self.connection.execute("PRAGMA application_id").fetchone()
            (objects,) = self.connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if (version or objects) and owner != APPLICATION_ID:
            raise ArchiveError("archive_unreadable", path=self.place, detail="a database of another program")
        return int(version)

    def apply(self, statement: str) -> None:
        self.execute(statement)

    def set_version(self, version: int) -> None:
        self.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        self.execute(f"PRAGMA user_version = {version}")

    def damage(self, most: int) -> list[str]:
        """By SQLite's own check, and rows that belong to nothing."""
        told = [line for (line,) in self.rows(f"PRAGMA integrity_check({most})") if line != "ok"]
        try:
            strays = self.rows("PRAGMA foreign_key_check")[:most]
        except ArchiveError as fault:
            return told or [str(fault.params["detail"])]
        return told + [f"{table} row {row} belongs to nothing in {parent}" for table, row, parent, _ in strays]

    def to_one_file(self) -> None:
        """Leave nothing in a file beside it, and no room unused."""
        with mapped(self._path):
            self.connection.execute("PRAGMA journal_mode = DELETE")
            self.connection.execute("VACUUM")

    def shrink(self) -> None:
        with mapped(self._path):
            self.connection.executescript("PRAGMA incremental_vacuum")  # steps once a page; execute() would step once

    def close(self) -> None:
        self.connection.close()


@contextmanager
def _storable() -> Iterator[None]:
    """What Python's module refuses before SQLite sees it."""
    try:
        yield
    except (OverflowError, UnicodeEncodeError) as fault:
        raise UnstorableError(str(fault)) from None


def _create_private(path: Path) -> None:
    """An empty file for its owner alone, before SQLite would make one for everybody.

    Only a new file is opened here: to open and close one that is in use would drop this process's locks on it.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
