"""The archive in one SQLite file: WAL, so that readers never wait for a writer, and writers wait for each other.

A run is written in one transaction. Its segments are made before that transaction begins and wait in a spool, so that
the lock is held for the copying alone, however long the records take to come.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from nilometer.core.errors import ArchiveError, SpecError
from nilometer.core.group import Group
from nilometer.core.record import Record
from nilometer.core.run import Run
from nilometer.metrics.figures import figures

from . import codec, listing, refs, rows, segments
from .check import check
from .columns import TooLargeError
from .faults import mapped
from .migrate import bring_up
from .protocol import Checked, Ref, RunRow
from .reading import read_records, read_run
from .seal import seal_group, seal_run
from .spool import Spool

BUSY_S = 30.0
"""How long a writer waits for another one."""

_INSERT_RUN = """
INSERT INTO run (id, format, definitions, started_wall_ns, service, origin, tool, tool_version, verdict, run_group,
    role, level, run_order, parent, condition_hash, records, spec, environment, phases, health, summary, findings)
VALUES (:id, :format, :definitions, :started_wall_ns, :service, :origin, :tool, :tool_version, :verdict, :run_group,
    :role, :level, :run_order, :parent, :condition_hash, :records, :spec, :environment, :phases, :health, :summary,
    :findings)
"""
_INSERT_FIGURE = "INSERT INTO summary_value (run, scope, metric, stat, value) VALUES (?, ?, ?, ?, ?)"
_PUT_GROUP = """
INSERT INTO run_group (id, type, started_wall_ns, spec, parent) VALUES (:id, :type, :started_wall_ns, :spec, :parent)
ON CONFLICT (id) DO UPDATE SET type = :type, started_wall_ns = :started_wall_ns, spec = :spec, parent = :parent
"""


class SqliteArchive:
    """An `Archive` on one file; one object is for one thread. Slugs of opening: see `migrate.bring_up`, `faults`."""

    def __init__(self, path: Path, busy_s: float = BUSY_S) -> None:
        self._path = path
        with mapped(path):
            _create_private(path)
            self._db = sqlite3.connect(path, timeout=busy_s, isolation_level=None)
        try:
            with mapped(path):
                bring_up(self._db, path, busy_s)
                self._db.execute("PRAGMA foreign_keys = ON")
                self._db.execute("PRAGMA synchronous = FULL")  # a journal is dropped once its run is here
                self._db.execute("PRAGMA journal_size_limit = 16000000")
        except BaseException:
            self._db.close()
            raise

    def __enter__(self) -> SqliteArchive:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._db.close()

    def put(self, run: Run, records: Iterable[Record]) -> None:
        """All or nothing. Slugs `run_exists`, `run_unstorable` for a value that no archive can hold."""
        sealed = seal_run(run)
        with _storable(run.id):
            row = rows.from_run(sealed)
        with Spool(self._path.parent) as spool:
            self._fill(spool, run.id, records)
            with self._writing() as db, _storable(run.id):
                if db.execute("SELECT 1 FROM run WHERE id = ?", (run.id,)).fetchone():
                    raise ArchiveError("run_exists", run=run.id, path=str(self._path))
                db.execute(_INSERT_RUN, row | {"records": spool.records})
                db.executemany(_INSERT_FIGURE, [(run.id, *figure) for figure in figures(sealed.summary)])
                segments.write_series(db, run.id, rows.health_columns(sealed.health))
                segments.write_records(db, run.id, spool)

    def _fill(self, spool: Spool, run_id: str, records: Iterable[Record]) -> None:
        for batch in codec.batches(records):
            with _storable(run_id):
                name, blob = codec.encode(batch)
            with mapped(self._path):
                spool.add(name, len(batch), blob)

    def put_group(self, group: Group) -> None:
        """Store a group, or replace the one of its id."""
        sealed = seal_group(group)
        with self._writing() as db, _storable(group.id):
            db.execute(_PUT_GROUP, msgspec.structs.asdict(sealed))

    def get(self, run_id: str) -> Run:
        """The run as it was put. Slugs `run_unknown`, `run_newer`, `run_damaged`."""
        with mapped(self._path):
            return read_run(self._db, run_id)

    def get_group(self, group_id: str) -> Group:
        """The group as it was put. Slug `group_unknown`."""
        with mapped(self._path):
            query = "SELECT id, type, started_wall_ns, spec, parent FROM run_group WHERE id = ?"
            found = self._db.execute(query, (group_id,)).fetchone()
        if found is None:
            raise SpecError("group_unknown", group=group_id)
        return msgspec.convert(
            dict(zip(("id", "type", "started_wall_ns", "spec", "parent"), found, strict=True)), Group
        )

    def records(self, run_id: str) -> Iterator[Record]:
        """The records as they were put, lazily. Slugs `run_unknown` at once, `run_damaged` while reading."""
        return self._records(run_id, self.row(run_id).records)

    def _records(self, run_id: str, expected: int) -> Iterator[Record]:
        with mapped(self._path):
            for segment in read_records(self._db, run_id, expected):
                yield from segment

    def find(self, group: str, level: str | None = None) -> list[Run]:
        """The runs of a group by their order, of one level or all."""
        query = (
            "SELECT id FROM run WHERE run_group = ? AND (?2 IS NULL OR level = ?2) ORDER BY run_order, started_wall_ns"
        )
        with mapped(self._path):
            found = self._db.execute(query, (group, level)).fetchall()
        return [self.get(run_id) for (run_id,) in found]

    def list_runs(self, limit: int = 50, *, service: str | None = None, group: str | None = None) -> list[RunRow]:
        """The newest runs first; only of one service, only of one group."""
        with mapped(self._path):
            return listing.newest(self._db, limit, service, group)

    def row(self, run_id: str) -> RunRow:
        """One run as a list shows it. Slug `run_unknown`."""
        with mapped(self._path):
            return listing.one(self._db, run_id)

    def resolve(self, ref: str) -> str:
        """What a RUN of the command line means. Slugs `run_unknown`, `run_ambiguous`, `run_is_group`."""
        with mapped(self._path):
            return refs.resolve(self._db, ref)

    def resolve_group(self, ref: str) -> str:
        """What a GROUP of the command line means. Slugs `group_unknown`, `run_ambiguous`."""
        with mapped(self._path):
            return refs.resolve_group(self._db, ref)

    def resolve_either(self, ref: str) -> Ref:
        """What a RUN or GROUP of the command line means. Slugs `run_unknown`, `run_ambiguous`."""
        with mapped(self._path):
            return refs.resolve_either(self._db, ref)

    def tag(self, name: str, run_id: str) -> None:
        """Let `name` mean this run from now on. Slug `run_unknown`."""
        with self._writing() as db:
            listing.one(db, run_id)
            db.execute("INSERT OR REPLACE INTO tag (name, run) VALUES (?, ?)", (name, run_id))

    def remove(self, run_id: str) -> None:
        """Remove a run and all that belongs to it, and its group if that is empty then; gives the room back."""
        with self._writing() as db:
            group = listing.one(db, run_id).group
            db.execute("DELETE FROM run WHERE id = ?", (run_id,))
            empty = "DELETE FROM run_group WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM run WHERE run_group = ?1)"
            db.execute(empty, (group,))
        with mapped(self._path):
            self._db.executescript("PRAGMA incremental_vacuum")  # steps once a page; execute() would step once

    def check(self) -> Checked:
        """Read everything there is; changes nothing."""
        with mapped(self._path):
            return check(self._db, self._path)

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: whole if the block ends well, else nothing."""
        with mapped(self._path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            finally:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")


def _create_private(path: Path) -> None:
    """An empty file for its owner alone, before SQLite would make one for everybody.

    Only a new file is opened here: to open and close one that is in use would drop this process's locks on it.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


@contextmanager
def _storable(run_id: str) -> Iterator[None]:
    """Text that is no Unicode, numbers beyond 64 bits, a required figure that is none: refused before it is written."""
    try:
        yield
    except (TypeError, OverflowError, UnicodeEncodeError, TooLargeError, msgspec.MsgspecError) as fault:
        raise ArchiveError("run_unstorable", run=run_id, detail=str(fault)) from None
