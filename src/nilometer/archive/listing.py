"""The rows of a list: what each run was, and its key figures."""

from __future__ import annotations

import sqlite3
from typing import Any

from nilometer.core.errors import SpecError

from .protocol import RunRow
from .rows import to_list_row

_ROWS = """
SELECT id, started_wall_ns, verdict, origin, tool, records, service, run_group, level, spec,
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
_ONLY = " WHERE (?1 IS NULL OR service = ?1) AND (?2 IS NULL OR run_group = ?2)"
_NEWEST_FIRST = " ORDER BY started_wall_ns DESC, rowid DESC LIMIT ?3"


def newest(db: sqlite3.Connection, limit: int, service: str | None, group: str | None) -> list[RunRow]:
    """The newest runs first; only of one service, only of one group."""
    found = _select(db, _ROWS + _ONLY + _NEWEST_FIRST, (service, group, limit))
    return [to_list_row(row, _tags(db, row["id"])) for row in found]


def one(db: sqlite3.Connection, run_id: str) -> RunRow:
    """One run as a list shows it. Slug `run_unknown`."""
    for row in _select(db, _ROWS + " WHERE id = ?", (run_id,)):
        return to_list_row(row, _tags(db, run_id))
    raise SpecError("run_unknown", run=run_id)


def _select(db: sqlite3.Connection, sql: str, params: tuple[object, ...]) -> list[dict[str, Any]]:
    cursor = db.execute(sql, params)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def _tags(db: sqlite3.Connection, run_id: str) -> list[str]:
    return [name for (name,) in db.execute("SELECT name FROM tag WHERE run = ? ORDER BY name", (run_id,))]
