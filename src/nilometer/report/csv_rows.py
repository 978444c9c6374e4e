"""Figures and requests as comma-separated values: one table each, names in the first line, not measured = empty.

A text that a spreadsheet would take for a formula has an apostrophe before it.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence

from nilometer.core.record import Record
from nilometer.core.run import Run
from nilometer.metrics.catalogue import METRICS
from nilometer.metrics.figures import figures
from nilometer.metrics.request import shown_ms

FIGURES = ("run", "scope", "metric", "stat", "value", "unit")
_LEFT_OUT = ("frames", "text", "reasoning", "tool_arguments", "server")
RECORDS = (
    "run",
    *(name for name in Record.__struct_fields__ if name not in _LEFT_OUT),
    "ttft_ms",
    "ttfa_ms",
    "tpot_ms",
    "e2e_ms",
    "frame_count",
)
"""The raw record without frames and texts; latencies in ms, `frame_count` frames with generated matter."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_UNITS = {metric.path: metric.unit for metric in METRICS}
_SCOPE_UNITS = {"requests": "requests", "run_requests": "requests"}
_COUNTS = {"n": "samples"}

Value = str | int | float | bool | None


def figure_lines(runs: Sequence[Run]) -> Iterator[str]:
    """A line for each figure of each run, by the names of the machine form: `latency_ms,ttft,p95`."""
    yield _line(FIGURES)
    for run in runs:
        for one in figures(run.summary):
            yield _line((run.id, one.scope, one.metric, one.stat, one.value, unit_of(one.scope, one.metric, one.stat)))


def record_lines(runs: Iterable[tuple[Run, Iterable[Record]]]) -> Iterator[str]:
    """A line for each request of each run; the records are taken as they come."""
    yield _line(RECORDS)
    for run, records in runs:
        for record in records:
            yield _line(record_row(run, record).values())


def record_row(run: Run, record: Record) -> dict[str, Value]:
    """One request by the names of RECORDS."""
    plain: dict[str, Value] = {name: getattr(record, name) for name in RECORDS[1:-5]}
    return {"run": run.id, **plain, **shown_ms(record), "frame_count": len(record.frames)}


def unit_of(scope: str, metric: str, stat: str) -> str:
    """The unit of a figure; empty where it has none or is the server's own."""
    if stat in _COUNTS:
        return _COUNTS[stat]
    known = _UNITS.get(f"{scope}.{metric}") or _SCOPE_UNITS.get(scope)
    return known or ("s" if metric.endswith("_s") else "")


def _line(values: Iterable[Value]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerow([_safe(value) for value in values])
    return out.getvalue()


def _safe(value: Value) -> Value:
    if isinstance(value, bool):
        return int(value)
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
