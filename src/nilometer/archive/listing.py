"""The rows of a list: what each run was, and its key figures."""

from __future__ import annotations

from nilometer.core.errors import SpecError

from .database import Database, Values
from .protocol import RunRow
from .rows import to_list_row

_COLUMNS = ("id", "started_wall_ns", "verdict", "origin", "records", "service", "run_group", "level", "spec")
_KEY_FIGURES = ("ttft_p95_ms", "tpot_p95_ms", "e2e_p95_ms", "output_tokens_per_s")
_ROWS = f"""
SELECT {", ".join(_COLUMNS)},
    (SELECT value FROM summary_value
      WHERE run = run.id AND scope = 'latency_ms' AND metric = 'ttft' AND stat = 'p95') AS ttft_p95_ms,
    (SELECT value FROM summary_value
      WHERE run = run.id AND scope = 'latency_ms' AND metric = 'tpot' AND stat = 'p95') AS tpot_p95_ms,
    (SELECT value FROM summary_value
      WHERE run = run.id AND scope = 'latency_ms' AND metric = 'e2e' AND stat = 'p95') AS e2e_p95_ms,
    (SELECT value FROM summary_value
      WHERE run = run.id AND scope = 'throughput' AND metric = 'output_tokens_per_s' AND stat = 'value')
      AS output_tokens_per_s
FROM run
"""
_NEWEST_FIRST = " ORDER BY started_wall_ns DESC, id LIMIT ?"


def newest(db: Database, limit: int, service: str | None, group: str | None) -> list[RunRow]:
    """The newest runs first; only of one service, only of one group."""
    only = {"service": service, "run_group": group}
    asked = {column: value for column, value in only.items() if value is not None}
    where = " WHERE " + " AND ".join(f"{column} = ?" for column in asked) if asked else ""
    return _select(db, where + _NEWEST_FIRST, (*asked.values(), limit))


def one(db: Database, run_id: str) -> RunRow:
    """One run as a list shows it. Slug `run_unknown`."""
    for row in _select(db, " WHERE id = ?", (run_id,)):
        return row
    raise SpecError("run_unknown", run=run_id)


def _select(db: Database, which: str, values: Values) -> list[RunRow]:
    rows = [dict(zip((*_COLUMNS, *_KEY_FIGURES), row, strict=True)) for row in db.rows(_ROWS + which, values)]
    return [to_list_row(row, _tags(db, row["id"])) for row in rows]


def _tags(db: Database, run_id: str) -> list[str]:
    return sorted(name for (name,) in db.rows("SELECT name FROM tag WHERE run = ?", (run_id,)))
