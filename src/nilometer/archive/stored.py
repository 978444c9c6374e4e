"""The archive on any `Database`: what every store promises, in the SQL that they share.

A run is written in one transaction. Its segments are made before that transaction begins and wait in a spool, so that
the lock is held for the copying alone, however long the records take to come.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Self

from nilometer.core.errors import ArchiveError, SpecError
from nilometer.core.group import Group
from nilometer.core.record import Record
from nilometer.core.run import Run
from nilometer.core.telemetry import NOTHING, Telemetry
from nilometer.metrics.figures import figures

from . import codec, listing, refs, remarks, retention, rows, segments
from .check import check
from .database import Database
from .faults import mapped_files
from .migrate import known_version
from .protocol import ALL, Checked, Filter, Lot, Note, Place, Point, Ref, Remarks, RunRow
from .reading import read_records, read_run, read_telemetry
from .seal import seal_group, seal_run
from .spool import Spool
from .storable import storable


class StoredArchive:
    """An `Archive` on an open database, which it closes; one object is for one thread."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.place = db.place

    def holding(self, name: str) -> Database:  # noqa: ARG002 - a host looks among its guests
        """The database that holds the run or group of this id."""
        return self.db

    def _meant(self, ref: str) -> tuple[Database, str]:
        """Where to look for what a word of the command line means, and the word to look for."""
        return self.db, ref

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.db.close()

    def put(self, run: Run, records: Iterable[Record], telemetry: Telemetry = NOTHING) -> None:
        """All or nothing. Slugs `run_exists`, `run_unstorable` for a value that no archive can hold."""
        sealed = seal_run(run)
        with storable(run.id):
            row = rows.from_run(sealed)
        with Spool(self.db.spool_folder) as spool:
            self._fill(spool, run.id, records)
            with self._writing(), storable(run.id):
                if not self.db.execute(rows.INSERT, rows.values(row | {"records": spool.records})):
                    raise ArchiveError("run_exists", run=run.id, path=self.place)
                self.db.execute_many(rows.FIGURES, [(run.id, *figure) for figure in figures(sealed.summary)])
                segments.write_series(self.db, run.id, segments.WORKER, rows.health_columns(sealed.health))
                segments.write_telemetry(self.db, run.id, telemetry)
                segments.write_records(self.db, run.id, spool)

    def _fill(self, spool: Spool, run_id: str, records: Iterable[Record]) -> None:
        for batch in codec.batches(records):
            with storable(run_id):
                name, blob = codec.encode(batch)
            with mapped_files(self.place):
                spool.add(name, len(batch), blob)

    def put_group(self, group: Group) -> None:
        """Store a group, or replace the one of its id."""
        sealed = seal_group(group)
        with self._writing(), storable(group.id):
            self.db.execute(rows.PUT_GROUP, [getattr(sealed, name) for name in rows.GROUP])

    def get(self, run_id: str) -> Run:
        """The run as it was put. Slugs `run_unknown`, `run_newer`, `run_damaged`."""
        db = self.holding(run_id)
        with db.snapshot():
            return read_run(db, run_id)

    def get_group(self, group_id: str) -> Group:
        """The group as it was put. Slugs `group_unknown`, `group_damaged`."""
        query = f"SELECT {', '.join(rows.GROUP)} FROM run_group WHERE id = ?"
        found = self.holding(group_id).rows(query, (group_id,))
        if not found:
            raise SpecError("group_unknown", group=group_id)
        return rows.to_group(found[0])

    def records(self, run_id: str) -> Iterator[Record]:
        """The records as they were put, lazily. Slugs `run_unknown` at once, `run_damaged` while reading."""
        return self._records(run_id, self.row(run_id).records)

    def _records(self, run_id: str, expected: int) -> Iterator[Record]:
        for segment in read_records(self.holding(run_id), run_id, expected):
            yield from segment

    def telemetry(self, run_id: str) -> Telemetry:
        """What was seen beside the records, as it was put. Slugs `run_unknown`, `run_damaged`."""
        self.row(run_id)
        return read_telemetry(self.holding(run_id), run_id)

    def find(self, group: str, level: str | None = None) -> list[Run]:
        """The runs of a group by their order, of one level or all."""
        of_level, values = ("", (group,)) if level is None else (" AND level = ?", (group, level))
        query = (
            f"SELECT id FROM run WHERE run_group = ?{of_level} ORDER BY COALESCE(run_order, -1), started_wall_ns, id"
        )
        return [self.get(run_id) for (run_id,) in self.holding(group).rows(query, values)]

    def list_runs(self, limit: int = 50, only: Filter = ALL) -> list[RunRow]:
        """The newest runs first, only those meant."""
        return listing.newest(self.db, limit, only)

    def series(self, figures: Sequence[Place], only: Filter = ALL) -> list[Point]:
        """All runs meant, the oldest first, each with these figures."""
        return listing.series(self.db, figures, only)

    def row(self, run_id: str) -> RunRow:
        """One run as a list shows it. Slug `run_unknown`."""
        return listing.one(self.holding(run_id), run_id)

    def resolve(self, ref: str) -> str:
        """What a RUN of the command line means. Slugs `run_unknown`, `run_ambiguous`, `run_is_group`."""
        return refs.resolve(*self._meant(ref))

    def resolve_group(self, ref: str) -> str:
        """What a GROUP of the command line means. Slugs `group_unknown`, `run_ambiguous`."""
        return refs.resolve_group(*self._meant(ref))

    def resolve_either(self, ref: str) -> Ref:
        """What a RUN or GROUP of the command line means. Slugs `run_unknown`, `run_ambiguous`."""
        return refs.resolve_either(*self._meant(ref))

    def tag(self, name: str, run_id: str) -> Ref | None:
        """Let `name` mean this run from now on. Slugs `run_unknown`, `tag_invalid`."""
        with self._writing(), storable(run_id):
            return remarks.set_tag(self.db, name, Ref("run", run_id))

    def tag_group(self, name: str, group_id: str) -> Ref | None:
        """Let `name` mean this group from now on. Slugs `group_unknown`, `tag_invalid`."""
        with self._writing(), storable(group_id):
            return remarks.set_tag(self.db, name, Ref("group", group_id))

    def untag(self, name: str) -> Ref:
        """Let `name` mean nothing. Slug `tag_unknown`."""
        with self._writing():
            return remarks.drop_tag(self.db, name)

    def note(self, of: Ref, note: Note) -> None:
        """Keep a note about a run or a group. Slugs `run_unknown`, `group_unknown`."""
        with self._writing(), storable(of.id):
            remarks.add_note(self.db, of, note)

    def remarks(self, of: Ref) -> Remarks:
        """Its tags by their names, its notes by their times."""
        return remarks.remarks(self.holding(of.id), of)

    def remove(self, run_id: str) -> None:
        """Remove a run and all that belongs to it, and its group if that is empty then; gives the room back."""
        with self._writing():
            retention.remove(self.db, run_id, listing.one(self.db, run_id).group)
        self.db.shrink()

    def outdated(self, definitions: int) -> list[str]:
        """The runs of older definitions, the oldest first."""
        query = "SELECT id FROM run WHERE definitions < ? ORDER BY started_wall_ns, id"
        return [run_id for (run_id,) in self.db.rows(query, (definitions,))]

    def resummarise(self, run: Run) -> bool:
        """Keep its summary, findings and verdict where they are by newer definitions."""
        with storable(run.id):
            row = rows.from_run(seal_run(run))
        with self._writing(), storable(run.id):
            if not self.db.execute(rows.RESUMMARISE, [row[name] for name in (*rows.CONCLUDED, "id", "definitions")]):
                return False
            self.db.execute("DELETE FROM summary_value WHERE run = ?", (run.id,))
            self.db.execute_many(rows.FIGURES, [(run.id, *figure) for figure in figures(run.summary)])
            return True

    def lots(
        self,
        *,
        keep: int = 0,
        before_wall_ns: int | None = None,
        service: str | None = None,
        records_only: bool = False,
    ) -> list[Lot]:
        """What may go, the oldest first; changes nothing."""
        with self.db.snapshot():
            return retention.lots(
                self.db, keep=keep, before_wall_ns=before_wall_ns, service=service, records_only=records_only
            )

    def prune(self, lots: Iterable[Lot], *, records_only: bool = False) -> list[Lot]:
        """Let them go, each whole or not at all; those that went."""
        drop = retention.drop_records if records_only else retention.drop
        gone = []
        for lot in lots:
            with self._writing():
                if drop(self.db, lot):
                    gone.append(lot)
        self.db.shrink()
        return gone

    def check(self) -> Checked:
        """Read everything there is; changes nothing."""
        return check(self.db)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """A transaction; slug `archive_newer` where a newer nilometer has migrated the archive since it was opened."""
        with self.db.transaction():
            known_version(self.db)
            yield
