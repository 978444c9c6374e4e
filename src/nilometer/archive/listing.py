"""Runs found and named: the rows of a list, and what a RUN of the command line means."""

from __future__ import annotations

import sqlite3
from typing import Any

from nilometer.core.errors import SpecError

from .protocol import RunRow
from .rows import to_list_row

LATEST = "latest"

_CANDIDATES = 6

_ROWS = """
SELECT id, started_wall_ns, verdict, origin, records, service, run_group, level, spec,
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


def resolve(db: sqlite3.Connection, ref: str) -> str:
    """`latest`, else a tag, else an id, else the beginning of exactly one.

    Slugs `run_unknown`, `run_ambiguous` with the candidates, `run_is_group` for a tag or id of a group.
    """
    if ref == LATEST:
        found = _ids(db, "SELECT id FROM run ORDER BY started_wall_ns DESC, rowid DESC LIMIT 1", ())
        return _only(found, ref)
    tagged = db.execute("SELECT run, run_group FROM tag WHERE name = ?", (ref,)).fetchone()
    if tagged is not None:
        return _run_of(tagged, ref)
    if _ids(db, "SELECT id FROM run WHERE id = ?", (ref,)):
        return ref
    begins = "SELECT id FROM run WHERE substr(id, 1, ?) = ? ORDER BY started_wall_ns DESC LIMIT ?"
    found = _ids(db, begins, (len(ref), ref, _CANDIDATES)) if ref else []
    if not found and _ids(db, "SELECT id FROM run_group WHERE id = ?", (ref,)):
        raise SpecError("run_is_group", run=ref, group=ref)
    return _only(found, ref)


def _ids(db: sqlite3.Connection, sql: str, params: tuple[object, ...]) -> list[str]:
    return [run_id for (run_id,) in db.execute(sql, params)]


def _run_of(tagged: tuple[str | None, str | None], ref: str) -> str:
    run_id, group_id = tagged
    if run_id is None:
        raise SpecError("run_is_group", run=ref, group=group_id)
    return run_id


def _only(found: list[str], ref: str) -> str:
    if not found:
        raise SpecError("run_unknown", run=ref)
    if len(found) > 1:
        more = ", ..." if len(found) == _CANDIDATES else ""
        raise SpecError("run_ambiguous", run=ref, candidates=", ".join(found) + more)
    return found[0]
