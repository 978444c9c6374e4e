"""The seam between the archive and its databases: what one must do for all the rest of this room to stand on it.

Every statement is written once, in the SQL that all of them speak, with `?` for a value: upserts by ON CONFLICT, order
by columns of ours, no row numbers. What a database reports is an ArchiveError by the time it leaves here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

Values = Sequence[object]
Row = tuple[Any, ...]


class UnstorableError(Exception):
    """A value that the database cannot hold: text that is no Unicode, a number beyond 64 bits."""


class Database(Protocol):
    """An open database; one object is for one thread.

    Slugs of whatever it does: `archive_locked`, `archive_full`, `archive_unwritable`, `archive_unreadable`,
    `archive_lost`, `archive_failed`.
    """

    place: str
    """How errors and screens name it, without secrets."""
    spool_folder: Path | None
    """Where segments wait until they are written; None: where temporary files lie."""

    def execute(self, statement: str, values: Values = ()) -> int:
        """Do it, and return how many rows it concerned. Raises UnstorableError. Only within a transaction."""
        ...

    def execute_many(self, statement: str, rows: Iterable[Values]) -> None:
        """The same for each row."""

    def rows(self, query: str, values: Values = ()) -> list[Row]:
        """All rows that it finds: none by a text that is no Unicode."""
        ...

    def transaction(self) -> AbstractContextManager[None]:
        """What the block writes is there whole if it ends well, else none of it. Not to be nested."""
        ...

    def snapshot(self) -> AbstractContextManager[None]:
        """What the block reads is of one moment. Not to be nested."""
        ...

    def migration(self) -> AbstractContextManager[None]:
        """A transaction in which no other process migrates."""
        ...

    def version(self) -> int:
        """The schema that it has, 0 where it is empty. Slug `archive_unreadable` where it is another program's."""
        ...

    def apply(self, statement: str) -> None:
        """Do one statement of the schema, which is written in SQLite's words."""

    def set_version(self, version: int) -> None:
        """Note the schema that it has now."""

    def damage(self, most: int) -> list[str]:
        """What its own check of itself finds, without the runs."""
        ...

    def shrink(self) -> None:
        """Give back the room of what was removed, where it does not do so by itself."""

    def close(self) -> None:
        """Let it go."""


def insert(table: str, columns: Sequence[str], otherwise: str = "") -> str:
    """The statement that puts a row of these columns into a table; `otherwise` is what follows its values."""
    marks = ", ".join("?" for _ in columns)
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks}) {otherwise}".rstrip()
