"""Which runs are meant and what is told of each: the rows of a list with their key figures, the points of a history."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from nilometer.core.errors import SpecError

from .database import Database, Values
from .protocol import Filter, Place, Point, RunRow
from .rows import RENAMED

_KEY_FIGURES: Mapping[str, Place] = {
    "ttft_p95_ms": ("latency_ms", "ttft", "p95"),
    "tpot_p95_ms": ("latency_ms", "tpot", "p95"),
    "e2e_p95_ms": ("latency_ms", "e2e", "p95"),
    "output_tokens_per_s": ("throughput", "output_tokens_per_s", "value"),
}
_OF_A_ROW = [field for field in RunRow.__struct_fields__ if field not in (*_KEY_FIGURES, "tags", "notes")]
_OF_A_POINT = [field for field in Point.__struct_fields__ if field != "figures"]
"""Fields that are columns."""
_FIGURE = "(SELECT value FROM summary_value WHERE run = run.id AND scope = ? AND metric = ? AND stat = ?)"
_CONDITIONS: Mapping[str, str] = {
    "service": "service = ?",
    "model": r"lower(model) LIKE ? ESCAPE '\'",
    "group": "run_group = ?",
    "tag": "(id IN (SELECT run FROM tag WHERE name = ?) OR run_group IN (SELECT run_group FROM tag WHERE name = ?))",
    "verdict": "verdict = ?",
    "origin": "origin = ?",
    "since_ns": "started_wall_ns >= ?",
    "until_ns": "started_wall_ns < ?",
}
"""Field of a Filter -> what must hold; the same value for each of its marks."""
_NEWEST_FIRST = "ORDER BY run.started_wall_ns DESC, run.id"


_Told = TypeVar("_Told", RunRow, Point)
_INSTEAD: Mapping[str, object] = {
    "id": "?",
    "started_wall_ns": 0,
    "verdict": "inadmissible",
    "origin": "imported",
    "tool": "?",
    "records": 0,
    "definitions": 0,
    "figures": (),
}
"""What stands for a value of the wrong kind, where it cannot be left out."""


def newest(db: Database, limit: int, only: Filter) -> list[RunRow]:
    """The newest runs first. The index `run_search` chooses them; only those chosen are read."""
    where, values = meant(only)
    chosen = f"SELECT id FROM run{where} {_NEWEST_FIRST} LIMIT ?"
    return _rows(db, f"JOIN ({chosen}) AS chosen ON chosen.id = run.id {_NEWEST_FIRST}", chosen, (*values, limit))


def one(db: Database, run_id: str) -> RunRow:
    """One run as a list shows it. Slug `run_unknown`."""
    for row in _rows(db, "WHERE run.id = ?", "?", (run_id,)):
        return row
    raise SpecError("run_unknown", run=run_id)


def series(db: Database, figures: Sequence[Place], only: Filter) -> list[Point]:
    """All runs meant, the oldest first, each with these figures."""
    where, values = meant(only)
    query = f"{_select(_OF_A_POINT, figures)}{where} ORDER BY started_wall_ns, id"
    asked = [name for place in figures for name in place]
    n = len(_OF_A_POINT)
    return [
        _told(Point, {**dict(zip(_OF_A_POINT, row[:n], strict=True)), "figures": row[n:]})
        for row in db.rows(query, (*asked, *values))
    ]


def meant(only: Filter) -> tuple[str, Values]:
    """The WHERE of a filter, empty where all runs are meant, and its values."""
    asked = {name: value for name in _CONDITIONS if (value := getattr(only, name)) is not None}
    if only.model is not None:
        asked["model"] = f"%{_literal(only.model.lower())}%"
    conditions = [_CONDITIONS[name] for name in asked]
    values = [value for name, value in asked.items() for _ in range(_CONDITIONS[name].count("?"))]
    return " WHERE " + " AND ".join(conditions) if conditions else "", values


def _literal(text: str) -> str:
    """A text in which LIKE sees nothing but itself."""
    return text.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")


def _select(fields: Iterable[str], figures: Sequence[Place]) -> str:
    columns = [f"run.{RENAMED.get(field, field)}" for field in fields]
    return f"SELECT {', '.join([*columns, *(_FIGURE for _ in figures)])} FROM run"


def _rows(db: Database, which: str, ids: str, values: Values) -> list[RunRow]:
    """The rows of `which` runs; `ids` says the same as a query of their ids, for their tags. Both take `values`."""
    fields = (*_OF_A_ROW, *_KEY_FIGURES)
    asked = [name for place in _KEY_FIGURES.values() for name in place]
    query = f"{_select(_OF_A_ROW, list(_KEY_FIGURES.values()))} {which}"
    rows = [dict(zip(fields, row, strict=True)) for row in db.rows(query, (*asked, *values))]
    tags = defaultdict(list)
    for run, name in db.rows(f"SELECT run, name FROM tag WHERE run IN ({ids})", values) if rows else ():
        tags[run].append(name)
    notes = Counter(run for (run,) in db.rows(f"SELECT run FROM note WHERE run IN ({ids})", values) if rows)
    return [_told(RunRow, {**row, "tags": sorted(tags[row["id"]]), "notes": notes[row["id"]]}) for row in rows]


def _told(kind: type[_Told], row: dict[str, Any]) -> _Told:
    """A row for the screen. One that rotted loses what is of the wrong kind, and hides none of the others; that it is
    damaged a check says."""
    try:
        return msgspec.convert(row, kind)
    except msgspec.ValidationError:
        kept = {field.name: _kept(field, row[field.name]) for field in msgspec.structs.fields(kind)}
        return kind(**kept)


def _kept(field: msgspec.structs.FieldInfo, value: object) -> Any:
    try:
        return msgspec.convert(value, field.type)
    except msgspec.ValidationError:
        return _INSTEAD.get(field.name)
