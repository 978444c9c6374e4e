"""Service-level objectives: reading them, holding a Summary against them, counting the requests that met them.

A bound is a figure of the catalogue, a comparison and a limit: `ttft_p95<=500ms`, `error_rate<=1%`,
`output_tokens_per_s>=100`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from nilometer.core.clock import NS_PER_MS
from nilometer.core.errors import SpecError
from nilometer.core.summary import Counts, Distribution, Summary

from .catalogue import BY_NAME
from .table import LATENCY_COLUMN, Mask, Table

Comparison = Literal["<=", "<", ">=", ">"]
Unit = Literal["ms", "share", "per_s"]
_AT_MOST: tuple[Comparison, ...] = ("<=", "<")
_AT_LEAST: tuple[Comparison, ...] = (">=", ">")

ERROR_RATE = "error_rate"
OF_TOKENS = frozenset({"ttft", "ttfa", "tpot", "itl", "frame_gap", "ttft_from_sent", "output_tokens_per_s"})
"""Figures of what is generated."""
_STATS = ("mean", "p50", "p90", "p95", "p99", "max")
_BOUND = re.compile(r"([a-z0-9_]+)\s*(<=|>=|<|>)\s*(\d+(?:\.\d+)?)\s*(us|ms|s|%|)")
_MS = {"us": 0.001, "ms": 1.0, "s": 1000.0}


PRESETS = {"chat": "ttft_p95<=500ms,tpot_p95<=50ms,error_rate<=1%", "batch": "error_rate<=1%"}
"""Name -> bounds. `chat`: near the interactive limits of MLPerf Inference 5.0 for Llama 2 70B (TTFT 450 ms, TPOT 40 ms,
p99). `batch`: throughput first, so only failures bound it."""


class Bound(msgspec.Struct, frozen=True, kw_only=True):
    """One limit, in the unit named: ms, a share of 1, or per second. `stat` is None for a figure without one."""

    metric: str
    stat: str | None
    comparison: Comparison
    limit: float
    unit: Unit
    text: str

    def is_met(self, value: float) -> bool:
        """Whether a value in the bound's unit keeps it."""
        if self.comparison in ("<=", "<"):
            return value < self.limit or (self.comparison == "<=" and value == self.limit)
        return value > self.limit or (self.comparison == ">=" and value == self.limit)


class Held(NamedTuple):
    """A bound beside the measured figure. `met` is None where that was not measured; `marked` as in the Summary."""

    bound: Bound
    value: float | None
    met: bool | None
    marked: bool


def parse(text: str) -> list[Bound]:
    """The bounds of `ttft_p95<=500ms,error_rate<=1%`; slug `slo_invalid` with the piece that can't be read.

    Latencies need a statistic (mean, p50, p90, p95, p99, max) and a unit (us, ms, s), and are bounded from above;
    `error_rate` takes a share or %, rates of the catalogue a plain number. A preset's name stands for its bounds.
    """
    text = PRESETS.get(text.strip(), text)
    return [_bound(piece.strip()) for piece in text.split(",")]


def met(bounds: Sequence[Bound], summary: Summary) -> list[Held]:
    """Each bound beside what the Summary says."""
    return [_held(bound, summary) for bound in bounds]


def error_rate(counts: Counts) -> float | None:
    """Share of the requests that the service ended (not those we cancelled) that it did not answer whole.

    None where there were none, or where nobody told how many failed.
    """
    if counts.ok is None or counts.error is None:
        return None
    ended = counts.ok + counts.failed
    return counts.failed / ended if ended else None


def good_requests(bounds: Sequence[Bound], table: Table, started: Mask) -> int | None:
    """How many of the requests started in the window were ok and met each latency limit by themselves.

    The statistic of a bound is dropped; a request without the measured latency does not meet it. None where no bound
    is on a latency.
    """
    limits = [bound for bound in bounds if bound.unit == "ms"]
    if not limits:
        return None
    good = started & table.of("ok")
    for bound in limits:
        latency_ms = table.latency(bound.metric) / NS_PER_MS
        kept = latency_ms < bound.limit if bound.comparison == "<" else latency_ms <= bound.limit
        good &= kept & ~np.isnan(latency_ms)
    return int(good.sum())


def _bound(piece: str) -> Bound:
    parts = _BOUND.fullmatch(piece)
    if parts is None:
        raise SpecError("slo_invalid", piece=piece)
    name, comparison, number, unit_written = parts.groups()
    metric, stat, unit, factor = _figure(piece, name, unit_written)
    if comparison not in (_AT_LEAST if unit == "per_s" else _AT_MOST):
        raise SpecError("slo_invalid", piece=piece)
    return Bound(metric=metric, stat=stat, comparison=comparison, limit=float(number) * factor, unit=unit, text=piece)


def _figure(piece: str, name: str, unit: str) -> tuple[str, str | None, Unit, float]:
    """Metric, statistic and unit of a bound, and what its number is to be multiplied by."""
    metric, _, stat = name.rpartition("_")
    if metric in LATENCY_COLUMN and stat in _STATS and unit in _MS:
        return metric, stat, "ms", _MS[unit]
    if name == ERROR_RATE and unit in ("%", ""):
        return name, None, "share", 0.01 if unit else 1.0
    row = BY_NAME.get(name)
    if row is not None and row.scope == "throughput" and row.unit.endswith("/s") and not unit:
        return name, None, "per_s", 1.0
    raise SpecError("slo_invalid", piece=piece)


def _held(bound: Bound, summary: Summary) -> Held:
    if bound.stat is not None:
        distribution = summary.latency_ms.get(bound.metric, Distribution())
        value: float | None = getattr(distribution, bound.stat)
        marked = bound.stat in distribution.marked
    else:
        marked = False
        if bound.metric == ERROR_RATE:
            value = error_rate(summary.requests)
        else:
            value = getattr(summary.throughput, bound.metric)
    return Held(bound, value, None if value is None else bound.is_met(value), marked)
