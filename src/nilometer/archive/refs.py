"""What RUN and GROUP mean on the command line: `latest`, else a tag, else an id, else the beginning of exactly one."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Literal

from nilometer.core.errors import SpecError

from .database import Database
from .protocol import Ref

LATEST = "latest"

_CANDIDATES = 6

_RUNS = "SELECT id FROM run WHERE {} ORDER BY started_wall_ns DESC, id LIMIT ?"
_GROUPS = (
    "SELECT id FROM run_group WHERE {} AND EXISTS (SELECT 1 FROM run WHERE run_group = run_group.id)"
    " ORDER BY started_wall_ns DESC, id LIMIT ?"
)
_SELECT: dict[Literal["run", "group"], str] = {"run": _RUNS, "group": _GROUPS}
_NEWEST_OF_A_GROUP = (
    "SELECT run_group FROM run WHERE EXISTS (SELECT 1 FROM run_group WHERE id = run.run_group)"
    " ORDER BY started_wall_ns DESC, id LIMIT 1"
)
_NEWEST = (
    "SELECT run.id, run_group.id FROM run LEFT JOIN run_group ON run_group.id = run.run_group"
    " ORDER BY run.started_wall_ns DESC, run.id LIMIT 1"
)


def resolve(db: Database, ref: str) -> str:
    """The id of a run. Slugs `run_unknown`, `run_ambiguous` with the candidates, `run_is_group`."""
    found = _select(db, "run", "1 = 1", (1,)) if ref == LATEST else _found(db, ref)
    chosen = _only([one for one in found if one.kind == "run"] or found, ref)
    if chosen.kind == "group":
        raise SpecError("run_is_group", run=ref, group=chosen.id)
    return chosen.id


def resolve_group(db: Database, ref: str) -> str:
    """The id of a group that has runs. Slugs `group_unknown`, `run_ambiguous`."""
    if ref == LATEST:
        found = [Ref("group", group) for (group,) in db.rows(_NEWEST_OF_A_GROUP)]
    else:
        found = [one for one in _found(db, ref) if one.kind == "group"]
    if not found:
        raise SpecError("group_unknown", group=ref)
    return _only(found, ref).id


def resolve_either(db: Database, ref: str) -> Ref:
    """A run or a group; `latest`: the newest run's group where it has one. Slugs `run_unknown`, `run_ambiguous`."""
    return _only(_newest(db) if ref == LATEST else _found(db, ref), ref)


def _newest(db: Database) -> list[Ref]:
    return [Ref("run", run) if group is None else Ref("group", group) for run, group in db.rows(_NEWEST)]


def _found(db: Database, ref: str) -> list[Ref]:
    """What bears this tag, else this id, else all that begin so: of either kind the newest few, the runs first."""
    for run, group in db.rows("SELECT run, run_group FROM tag WHERE name = ?", (ref,)):
        return [Ref("run", run) if group is None else Ref("group", group)]
    whole = [one for kind in _SELECT for one in _select(db, kind, "id = ?", (ref, 1))]
    if whole or not ref:
        return whole
    begun = (ref, ref + chr(sys.maxunicode), _CANDIDATES)
    return [one for kind in _SELECT for one in _select(db, kind, "id >= ? AND id < ?", begun)]


def _select(db: Database, kind: Literal["run", "group"], where: str, params: tuple[object, ...]) -> list[Ref]:
    return [Ref(kind, found) for (found,) in db.rows(_SELECT[kind].format(where), params)]


def _only(found: Sequence[Ref], ref: str) -> Ref:
    if not found:
        raise SpecError("run_unknown", run=ref)
    if len(found) > 1:
        more = ", ..." if len(found) >= _CANDIDATES else ""
        raise SpecError("run_ambiguous", run=ref, candidates=", ".join(one.id for one in found[:_CANDIDATES]) + more)
    return found[0]
