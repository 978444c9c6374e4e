"""A Run as one row of the table `run` and back. The packed columns of its Health go to `telemetry_segment` instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from nilometer.core.environment import Environment
from nilometer.core.errors import SpecError
from nilometer.core.finding import Finding
from nilometer.core.run import FORMAT, Health, Phases, Run
from nilometer.core.spec import Spec
from nilometer.core.summary import Summary

from .database import Database, insert
from .protocol import RunRow

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
COLUMNS = (*SAME, *RENAMED.values(), *JSON, "started_wall_ns", "service", "records")
"""All columns of the table."""
INSERT = insert("run", COLUMNS, "ON CONFLICT (id) DO NOTHING")
HEALTH_COLUMNS = ("at", "wall_offset", "lag_max", "in_flight", "cpu")


class _Load(msgspec.Struct, frozen=True):
    concurrency: int | None = None
    rate_per_s: float | None = None
    arrivals: str | None = None


class _Asked(msgspec.Struct, frozen=True):
    """What a list shows of a Spec; reads any later one too."""

    target: str | None = None
    model: str | None = None
    load: _Load = _Load()


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
    row |= {"started_wall_ns": run.phases.started_wall_ns, "service": run.spec.labels.service}
    to_run(row, {})
    return row


def values(row: Mapping[str, Any]) -> Sequence[Any]:
    """What INSERT wants of a whole row."""
    return [row[name] for name in COLUMNS]


def select(db: Database, run_id: str) -> dict[str, Any]:
    """The row of one run. Slug `run_unknown`."""
    found = db.rows(f"SELECT {', '.join(COLUMNS)} FROM run WHERE id = ?", (run_id,))
    if not found:
        raise SpecError("run_unknown", run=run_id)
    return dict(zip(COLUMNS, found[0], strict=True))


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


def to_list_row(row: Mapping[str, Any], tags: list[str]) -> RunRow:
    """A row as `listing.py` selects it, with the run's tags. A spec that cannot be read does not hide the run."""
    try:
        asked = msgspec.json.decode(row["spec"], type=_Asked)
    except msgspec.MsgspecError:
        asked = _Asked()
    fields = {name: row[name] for name in row if name not in ("run_group", "spec")}
    return RunRow(
        target=asked.target,
        model=asked.model,
        concurrency=asked.load.concurrency,
        rate_per_s=asked.load.rate_per_s,
        arrivals=asked.load.arrivals,
        group=row["run_group"],
        tags=tags,
        **fields,
    )
