"""A Run as one row of the table `run` and back. The packed columns of its Health go to `telemetry_segment` instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from nilometer.core.environment import Environment
from nilometer.core.errors import ArchiveError, SpecError
from nilometer.core.finding import Finding
from nilometer.core.group import Group
from nilometer.core.run import FORMAT, Health, Phases, Run, is_id
from nilometer.core.spec import Spec
from nilometer.core.summary import Summary
from nilometer.metrics.figures import Figure

from .database import Database, insert

SAME = (
    "id",
    "format",
    "definitions",
    "origin",
    "tool",
    "tool_version",
    "verdict",
    "role",
    "level",
    "parent",
    "condition_hash",
)
"""Fields of the Run that are columns of the same name."""
RENAMED = {"group": "run_group", "order": "run_order"}
"""Fields whose names are words of SQL."""
JSON: dict[str, Any] = {
    "spec": Spec,
    "environment": Environment,
    "phases": Phases,
    "health": Health,
    "summary": Summary,
    "findings": list[Finding],
}
"""Fields that are JSON text."""
SEARCHED = (
    "target",
    "model",
    "service",
    "service_version",
    "model_version",
    "quantisation",
    "concurrency",
    "rate_per_s",
    "arrivals",
)
"""Copies of what the spec says, to search and chart by."""
COLUMNS = (*SAME, *RENAMED.values(), *JSON, "started_wall_ns", *SEARCHED, "records")
"""All columns of the table."""
CONCLUDED = ("definitions", "verdict", "summary", "findings")
"""What is made anew when the definitions rise."""
RESUMMARISE = f"UPDATE run SET {', '.join(f'{name} = ?' for name in CONCLUDED)} WHERE id = ? AND definitions < ?"
INSERT = insert("run", COLUMNS, "ON CONFLICT (id) DO NOTHING")
GROUP = ("id", "type", "started_wall_ns", "spec", "parent")
"""The columns of a group, which are its fields."""
PUT_GROUP = insert(
    "run_group",
    GROUP,
    "ON CONFLICT (id) DO UPDATE SET type = excluded.type, started_wall_ns = excluded.started_wall_ns,"
    " spec = excluded.spec, parent = excluded.parent",
)
NEW_GROUP = insert("run_group", GROUP, "ON CONFLICT (id) DO NOTHING")
_FILL = f"UPDATE run SET {', '.join(f'{name} = ?' for name in SEARCHED)} WHERE id = ?"
FIGURES = insert("summary_value", ("run", *Figure._fields))
HEALTH_COLUMNS = ("at", "wall_offset", "lag_max", "in_flight", "cpu")


class _Load(msgspec.Struct, frozen=True):
    concurrency: int | None = None
    rate_per_s: float | None = None
    arrivals: str | None = None


class _Labels(msgspec.Struct, frozen=True):
    service: str | None = None
    service_version: str | None = None
    model_version: str | None = None
    quantisation: str | None = None


class _Asked(msgspec.Struct, frozen=True):
    """What is searched by of a Spec; reads any later one too."""

    target: str | None = None
    model: str | None = None
    load: _Load = _Load()
    labels: _Labels = _Labels()


class _Row(msgspec.Struct, frozen=True, kw_only=True):
    """What each column may hold: a database keeps a text where a number belongs, and says nothing."""

    id: str
    format: int
    definitions: int
    origin: str
    tool: str
    tool_version: str
    verdict: str
    role: str | None
    level: str | None
    parent: str | None
    condition_hash: str | None
    run_group: str | None
    run_order: int | None
    spec: str
    environment: str
    phases: str
    health: str
    summary: str
    findings: str
    started_wall_ns: int
    target: str | None
    model: str | None
    service: str | None
    service_version: str | None
    model_version: str | None
    quantisation: str | None
    concurrency: int | None
    rate_per_s: float | None
    arrivals: str | None
    records: int


class NewerFormatError(Exception):
    """The run is in a format this version does not know."""

    def __init__(self, found: int, known: int) -> None:
        super().__init__(found, known)
        self.found = found
        self.known = known


def from_run(run: Run) -> dict[str, Any]:
    """Column -> value, but for the number of records.

    Raises TypeError, OverflowError or UnicodeEncodeError for what JSON cannot hold, and msgspec.ValidationError where
    it would not be read back: a required figure that is no number.
    """
    row: dict[str, Any] = {name: getattr(run, name) for name in SAME}
    row |= {column: getattr(run, name) for name, column in RENAMED.items()}
    slim = replace(run, health=replace(run.health, **dict.fromkeys(HEALTH_COLUMNS, b"")))
    row |= {name: msgspec.json.encode(getattr(slim, name)).decode() for name in JSON}
    row |= {"started_wall_ns": run.phases.started_wall_ns, **searched(row["spec"])}
    to_run(row, {})
    return row


def searched(spec: str) -> dict[str, Any]:
    """The columns to search by, out of the JSON of a spec: all None where that cannot be read."""
    try:
        asked = msgspec.json.decode(spec, type=_Asked)
    except msgspec.MsgspecError:
        asked = _Asked()
    tree: dict[str, Any] = msgspec.to_builtins(asked)
    parts: dict[str, Any] = tree.pop("load") | tree.pop("labels")
    return parts | tree


def fill_searched(db: Database) -> None:
    """Fill those columns of all runs that are there, a thousand at a time."""
    after = ""
    while found := db.rows("SELECT id, spec FROM run WHERE id > ? ORDER BY id LIMIT 1000", (after,)):
        after = found[-1][0]
        told = [(searched(spec), run_id) for run_id, spec in found]
        db.execute_many(_FILL, [(*(columns[name] for name in SEARCHED), run_id) for columns, run_id in told])


def values(row: Mapping[str, Any]) -> Sequence[Any]:
    """What INSERT wants of a whole row."""
    return [row[name] for name in COLUMNS]


def select(db: Database, run_id: str) -> dict[str, Any]:
    """The row of one run, each column of its kind. Slug `run_unknown`; raises msgspec.ValidationError, ValueError."""
    found = db.rows(f"SELECT {', '.join(COLUMNS)} FROM run WHERE id = ?", (run_id,))
    if not found:
        raise SpecError("run_unknown", run=run_id)
    row = dict(zip(COLUMNS, found[0], strict=True))
    msgspec.convert(row, _Row)
    if not is_id(row["id"]):
        raise ValueError(f"{row['id'][:40]!r} is no id")
    return row


def require_copies(row: Mapping[str, Any]) -> None:
    """Refuse a row whose columns to sort and search by say another thing than the run itself: ValueError."""
    told = searched(row["spec"])
    odd = [name for name in SEARCHED if row[name] != told[name]]
    if row["started_wall_ns"] != msgspec.json.decode(row["phases"], type=Phases).started_wall_ns:
        odd.append("started_wall_ns")
    if odd:
        raise ValueError(f"columns that do not agree with the run: {', '.join(odd)}")


def to_group(row: Sequence[Any]) -> Group:
    """A group of these columns. Slug `group_damaged`."""
    told = dict(zip(GROUP, row, strict=True))
    try:
        group = msgspec.convert(told, Group)
    except msgspec.ValidationError as fault:
        raise ArchiveError("group_damaged", group=str(told["id"])[:40], detail=str(fault)) from None
    if not is_id(group.id):
        raise ArchiveError("group_damaged", group=group.id[:40], detail="its name is no id")
    return group


def health_columns(health: Health) -> dict[str, bytes]:
    """The packed columns by name."""
    return {name: getattr(health, name) for name in HEALTH_COLUMNS}


def to_run(row: Mapping[str, Any], health: Mapping[str, bytes]) -> Run:
    """The inverse of `from_run`. Raises NewerFormatError, msgspec.MsgspecError, ValueError."""
    if row["format"] > FORMAT:
        raise NewerFormatError(row["format"], FORMAT)
    fields: dict[str, Any] = {name: row[name] for name in SAME}
    fields |= {name: row[column] for name, column in RENAMED.items()}
    fields |= {name: msgspec.json.decode(row[name], type=kind) for name, kind in JSON.items()}
    fields["health"] = replace(fields["health"], **_known(health))
    return msgspec.convert(fields, Run)


def _known(health: Mapping[str, bytes]) -> Mapping[str, bytes]:
    odd = set(health) - set(HEALTH_COLUMNS)
    if odd:
        raise ValueError(f"unknown columns {sorted(odd)}")
    return health
