"""Objectives held against a forecast, and the greatest load that still meets them.

The forecast is of the mean request. An objective on a percentile is held by it all the same, and `notes` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import hypot
from typing import Literal

import msgspec

from nilometer.core.finding import Finding

from ..answer import Answer
from ..interval import Interval
from ..latency.roofline import Latency, Lengths, latency
from ..question import setup

Metric = Literal["ttft_ms", "tpot_ms", "e2e_ms", "output_tokens_per_s", "requests_per_s"]
Met = Literal["yes", "likely", "unlikely", "no"]
End = Literal["low", "mid", "high"]

_WAITED: frozenset[Metric] = frozenset({"ttft_ms", "e2e_ms"})
"""What a wait for a slot counts in."""
MOST_LOAD = 1 << 14
"""No greater load is looked for."""


class Objective(msgspec.Struct, frozen=True, kw_only=True):
    """A limit: in ms, or per second. `stat`: mean, p50, p95, ...; None for a rate."""

    metric: Metric
    stat: str | None = None
    at_most: bool
    limit: float


METRICS: Mapping[str, Metric] = {
    "ttft": "ttft_ms",
    "ttft_from_sent": "ttft_ms",
    "tpot": "tpot_ms",
    "e2e": "e2e_ms",
    "e2e_from_sent": "e2e_ms",
    "output_tokens_per_s": "output_tokens_per_s",
    "requests_per_s": "requests_per_s",
}
"""A measured figure's name -> what a plan foretells of it; others it does not."""


def objective_of(metric: str, stat: str | None, comparison: str, limit: float) -> Objective | None:
    """Of a bound on a measured figure, its limit in ms or per second; None where a plan does not foretell it."""
    known = METRICS.get(metric)
    if known is None:
        return None
    return Objective(metric=known, stat=stat, at_most=comparison in {"<=", "<"}, limit=limit)


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """An objective beside its forecast. yes = the whole interval keeps it, likely = the middle does."""

    objective: Objective
    value: Interval
    met: Met


def value(row: Latency, metric: Metric, lengths: Lengths) -> Interval:
    """A metric of a load in its own unit; the spreads of TTFT and TPOT are taken as independent."""
    if metric == "ttft_ms":
        return row.ttft_s.times(1e3)
    if metric == "tpot_ms":
        return row.tpot_s.times(1e3)
    if metric == "output_tokens_per_s":
        return row.output_tokens_per_s
    if metric == "requests_per_s":
        return row.output_tokens_per_s.times(1 / lengths.output)
    return _whole(row.ttft_s, row.tpot_s.times(lengths.output - 1)).times(1e3)


def _whole(first: Interval, rest: Interval) -> Interval:
    mid = first.mid + rest.mid
    less = hypot(first.mid - first.low, rest.mid - rest.low)
    return Interval(mid - less, mid, mid + hypot(first.high - first.mid, rest.high - rest.mid))


def held(row: Latency, objective: Objective, lengths: Lengths) -> Held:
    """Whether a load's forecast keeps an objective."""
    found = value(row, objective.metric, lengths)
    return Held(objective=objective, value=found, met=_met(found, objective))


def _met(found: Interval, objective: Objective) -> Met:
    best, worst = (found.low, found.high) if objective.at_most else (found.high, found.low)
    edges: tuple[tuple[Met, float], ...] = (("yes", worst), ("likely", found.mid), ("unlikely", best))
    return next((told for told, edge in edges if keeps(edge, objective)), "no")


def keeps(number: float, objective: Objective) -> bool:
    """Whether a number keeps it; the limit itself does."""
    return number <= objective.limit if objective.at_most else number >= objective.limit


def notes(objectives: Sequence[Objective]) -> tuple[Finding, ...]:
    """What must be said with any objective that is not on a mean."""
    stats = sorted({one.stat for one in objectives if one.stat not in {None, "mean", "p50"}}, key=str)
    if not stats:
        return ()
    told: dict[str, str | int | float | None] = {"stats": ", ".join(map(str, stats))}
    return (Finding(slug="plan_percentile_as_mean", kind="note", severity="low", params=told),)


class Greatest(msgspec.Struct, frozen=True, kw_only=True):
    """The greatest number of requests in flight, of all copies, within the objectives: by the worst, middle and best
    end of the forecast; None where that end lets not even one request through. `rows` are the forecasts there."""

    low: int | None
    mid: int | None
    high: int | None
    rows: tuple[Latency | None, Latency | None, Latency | None]
    """At low, mid and high."""


def greatest_load(answer: Answer, objectives: Sequence[Objective]) -> Greatest | None:
    """By bisection over the closed loop, whose TTFT and TPOT grow with the load; None where nothing is forecast.

    Objectives from below (a rate) are no bound on a load. Without one from above that feels a queue (TTFT, E2E) it is
    at most what the device holds at once: more would only wait, at the same TPOT.
    """
    question, device = answer.question, answer.question.device
    if device is None or answer.slots is None or not answer.latency:
        return None
    each, bounds = setup(question, device, answer.slots), [one for one in objectives if one.at_most]
    holds = min(MOST_LOAD, answer.slots * question.parallel.data)

    def row(load: int) -> Latency:
        return latency(each, question.lengths, load, question.tuning)

    most = MOST_LOAD if any(one.metric in _WAITED for one in bounds) else holds

    def greatest(end: End) -> int | None:
        return _last(most, lambda load: _passes(row(load), bounds, question.lengths, end))

    found = greatest("high"), greatest("mid"), greatest("low")
    low, mid, high = found
    rows = tuple(None if load is None else row(load) for load in found)
    return Greatest(low=low, mid=mid, high=high, rows=(rows[0], rows[1], rows[2]))


def _passes(row: Latency, bounds: Sequence[Objective], lengths: Lengths, end: End) -> bool:
    return all(keeps(getattr(value(row, one.metric, lengths), end), one) for one in bounds)


def _last(most: int, passes: Callable[[int], bool]) -> int | None:
    """The last of 1..most that passes, where all before one that passes do; None where 1 does not."""
    if not passes(1):
        return None
    low, high = 1, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if passes(middle) else (low, middle)
    return low
