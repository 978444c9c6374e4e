"""An archive in which also the runs of exported files are found: a file is a guest of it while it is open.

Where a RUN or GROUP of the command line is the path of such a file, what it holds can be read as if it were here. It is
not stored: what is written about it, and what is listed, is of the archive alone.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from . import bundle
from .address import EXPORTED
from .database import Database
from .stored import StoredArchive


class HostArchive(StoredArchive):
    """A `StoredArchive` whose `resolve`, `resolve_group` and `resolve_either` take the path of an exported file."""

    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self._open = ExitStack()
        self._guests: dict[str, Database] = {}
        self._files: dict[str, str] = {}

    def __exit__(self, *exc_info: object) -> None:
        with self._open:
            super().__exit__(*exc_info)

    def holding(self, name: str) -> Database:
        return self._guests.get(name, self.db)

    def _meant(self, ref: str) -> tuple[Database, str]:
        """Slugs of a file that is named: those of `bundle.opened`."""
        if not ref.endswith(EXPORTED):
            return super()._meant(ref)
        if ref not in self._files:
            self._invite(ref)
        return self._guests[self._files[ref]], self._files[ref]

    def _invite(self, ref: str) -> None:
        path = Path(ref).expanduser()
        db = self._open.enter_context(bundle.opened(path))
        self._files[ref] = bundle.held(db, path).id
        names = [*db.rows("SELECT id FROM run"), *db.rows("SELECT id FROM run_group")]
        self._guests.update((name, db) for (name,) in names)
