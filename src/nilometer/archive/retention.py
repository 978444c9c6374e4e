"""What may go and how it goes: lots of runs, each a group with all its runs, or a run alone.

Nothing goes that has a tag, or is in a lot with something that has one.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from .database import Database
from .protocol import Lot, Ref
from .remarks import touch

_AT_ONCE = 500
"""Names in one question."""
_TEXTS = ("spec", "environment", "phases", "health", "summary", "findings")
_TAGGED = "SELECT 1 FROM tag WHERE run = ? OR run_group = (SELECT run_group FROM run WHERE id = ?)"


class Kept(NamedTuple):
    """A run as far as it matters here."""

    id: str
    group: str | None
    started_wall_ns: int
    service: str | None
    records: int


def lots(
    db: Database, *, keep: int = 0, before_wall_ns: int | None = None, service: str | None = None, records_only: bool
) -> list[Lot]:
    """What `choose` finds in the archive, the oldest first, with the bytes that go; of records only, where some are."""
    runs = [_kept(*row) for row in db.rows("SELECT id, run_group, started_wall_ns, service, records FROM run")]
    tagged = {name for row in db.rows("SELECT run, run_group FROM tag") for name in row if name is not None}
    chosen = choose(runs, tagged, keep=keep, before_wall_ns=before_wall_ns, service=service)
    if records_only:
        chosen = [lot for lot in chosen if lot.records]
    sizes = _sizes(db, [run for lot in chosen for run in lot.runs], records_only=records_only)
    return [replace(lot, size_bytes=sum(sizes[run] for run in lot.runs)) for lot in chosen]


def _kept(run: str, group: str | None, started_wall_ns: object, service: str | None, records: object) -> Kept:
    """What cannot be dated is not old."""
    at = started_wall_ns if isinstance(started_wall_ns, int) else sys.maxsize
    return Kept(run, group, at, service, records if isinstance(records, int) else 0)


def choose(
    runs: Iterable[Kept],
    tagged: set[str],
    *,
    keep: int = 0,
    before_wall_ns: int | None = None,
    service: str | None = None,
) -> list[Lot]:
    """The lots that may go, the oldest first: all of whose runs are older, and of the service if one is named, beyond
    the newest `keep` of each service. A lot is of the service of its newest run."""
    together = defaultdict(list)
    for run in runs:
        together[run.group or run.id].append(run)
    seen: Counter[str | None] = Counter()
    gone = []
    for held in sorted(together.values(), key=_newest, reverse=True):
        newest = max(held, key=lambda run: run.started_wall_ns)
        seen[newest.service] += 1
        names = {name for run in held for name in (run.id, run.group)}
        young = before_wall_ns is not None and newest.started_wall_ns >= before_wall_ns
        other = service is not None and any(run.service != service for run in held)
        if not (young or other or names & tagged or seen[newest.service] <= keep):
            gone.append(_lot(held, newest))
    return gone[::-1]


def _newest(runs: Sequence[Kept]) -> tuple[int, str]:
    """When a lot is from; by their names where two are of the same moment."""
    return max((run.started_wall_ns, run.id) for run in runs)


def _lot(held: Sequence[Kept], newest: Kept) -> Lot:
    ordered = sorted(held, key=lambda run: run.started_wall_ns)
    return Lot(
        group=newest.group,
        runs=[run.id for run in ordered],
        newest_wall_ns=newest.started_wall_ns,
        service=newest.service,
        records=sum(run.records for run in held),
    )


def _sizes(db: Database, runs: Sequence[str], *, records_only: bool) -> Counter[str]:
    """Run -> what its rows hold, in bytes of segments and characters of text."""
    found: Counter[str] = Counter()
    for some in _portions(runs):
        marks = ", ".join("?" for _ in some)
        questions = [f"SELECT run, sum(length(blob)) FROM record_segment WHERE run IN ({marks}) GROUP BY run"]
        if not records_only:
            texts = " + ".join(f"length({name})" for name in _TEXTS)
            questions += [
                f"SELECT run, sum(length(blob)) FROM telemetry_segment WHERE run IN ({marks}) GROUP BY run",
                f"SELECT id, {texts} FROM run WHERE id IN ({marks})",
            ]
        for question in questions:
            for run, size in db.rows(question, some):
                found[run] += int(size)
    return found


def _portions(runs: Sequence[str]) -> Iterator[Sequence[str]]:
    return (runs[start : start + _AT_ONCE] for start in range(0, len(runs), _AT_ONCE))


def drop_records(db: Database, lot: Lot) -> bool:
    """Remove the records of its runs, which stay; whether it was done: not where somebody has tagged it meanwhile."""
    if not _free(db, lot):
        return False
    for run in lot.runs:
        db.execute("DELETE FROM record_segment WHERE run = ?", (run,))
        db.execute("UPDATE run SET records = 0 WHERE id = ?", (run,))
    return True


def drop(db: Database, lot: Lot) -> bool:
    """Remove its runs with all that belongs to them, and its group if that is empty then; whether it was done."""
    if not _free(db, lot):
        return False
    for run in lot.runs:
        remove(db, run, lot.group)
    return True


def _free(db: Database, lot: Lot) -> bool:
    """Whether nothing of it has a tag; nobody gives it one until this transaction ends."""
    if lot.group is not None:
        touch(db, Ref("group", lot.group))
    for run in lot.runs:
        touch(db, Ref("run", run))
    return not any(db.rows(_TAGGED, (run, run)) for run in lot.runs)


def remove(db: Database, run: str, group: str | None) -> None:
    """The group's row is written to first, so that two who remove its last runs wait for each other."""
    db.execute("UPDATE run_group SET parent = parent WHERE id = ?", (group,))
    db.execute("DELETE FROM run WHERE id = ?", (run,))
    empty = "DELETE FROM run_group WHERE id = ? AND NOT EXISTS (SELECT 1 FROM run WHERE run_group = run_group.id)"
    db.execute(empty, (group,))
