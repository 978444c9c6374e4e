"""The load curve of a service: one load test a level, the levels by list or searched, all in one group."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from random import Random
from typing import Literal, NamedTuple

import msgspec

from nilometer.core.group import Group
from nilometer.core.run import Run, Runs
from nilometer.core.spec import Spec
from nilometer.metrics.curve import finished, rungs_of

from .approach import Headers
from .follow import Stop, Watch
from .ladder import Search, next_level
from .measure import Behind, Place, lost, measure
from .series import Series, one_by_one, tokens_left, within
from .server_side import TARGETS_OWN, PagesFrom

_BETWEEN_S = 10.0
"""What a level takes besides its load while that is not known: probe, drain, filing."""


class Plan(NamedTuple):
    """Which levels: those of `levels` in order, else as `search` finds them; none that would end past `budget_s`."""

    search: Search
    levels: tuple[float, ...] | None = None
    budget_s: float | None = None


Short = Literal["time", "tokens"]


class Swept(NamedTuple):
    """All runs of the curve, those measured before a resumption first."""

    series: Series
    short: Short | None
    """What did not suffice for more levels, where something did not."""


def sweep(
    spec: Spec,
    headers: Headers,
    plan: Plan,
    group: Group,
    *,
    before: Sequence[Run],
    runs: Runs | None,
    watch: Watch,
    stop: Stop,
    behind: Behind | None,
    random: Random,
    monotonic: Callable[[], float] = time.monotonic,
    pages: PagesFrom = TARGETS_OWN,
) -> Swept:
    """Measure level after level, until one is cut off with its target. `before` are the runs that the group has: those
    of them that were finished are not measured again.

    The token budget of the spec is that of all finished levels together: each level has what is left of it.
    """
    begun_s = monotonic()
    done = [run for run in before if finished(run)]
    measured = list(done)
    orders = count(next_order(before))
    costs_s: list[float] = []
    short: Short | None = None

    def test(level: float) -> Run:
        at_s = monotonic()
        place = Place(group=group, role="level", level=level_name(level), order=next(orders))
        run = measure(
            within(at_level(spec, level), tokens_left(spec, measured)),
            headers,
            runs=runs,
            watch=watch,
            stop=stop,
            place=place,
            behind=behind,
            random=random,
            oversaturation_ends=True,
            pages=pages,
            still=[at_level(spec, other) for other in _listed(plan, measured) if other != level],
        )
        measured.append(run)
        costs_s.append(monotonic() - at_s)
        return run

    def tests() -> Iterator[Callable[[], Run]]:
        nonlocal short
        while (level := _next(plan, measured)) is not None:
            cost_s = max(costs_s, default=spec.load.warmup_s + spec.load.duration_s + _BETWEEN_S)
            left = tokens_left(spec, measured)
            if left is not None and left <= 0:
                short = "tokens"
                return
            if plan.budget_s is not None and monotonic() - begun_s + cost_s > plan.budget_s and costs_s:
                short = "time"
                return
            yield partial(test, level)
            if lost(measured[-1]) is not None:
                return  # the next would find nobody, or a service that has just begun

    series = one_by_one(tests(), stop)
    ended = series.runs[-1:]  # none where all levels had been measured before
    return Swept(Series([*done, *series.runs], series.fault or next(map(lost, ended), None), series.cut), short)


def next_order(before: Sequence[Run]) -> int:
    """The place in the group behind all of its runs, those that were cut off included."""
    return max((run.order for run in before if run.order is not None), default=-1) + 1


def one_a_level(runs: Sequence[Run]) -> list[Run]:
    """The runs of a sweep, one a level: the last that was finished, else the last that was not."""
    best = {run.level: run for run in sorted(runs, key=finished)}
    return [run for run in runs if best[run.level] is run]


def at_level(spec: Spec, level: float) -> Spec:
    """The test of one level: so many in flight in a closed loop, so many a second in an open one."""
    load = spec.load
    if load.is_open:
        return msgspec.structs.replace(spec, load=msgspec.structs.replace(load, rate_per_s=level))
    return msgspec.structs.replace(spec, load=msgspec.structs.replace(load, concurrency=round(level)))


def level_name(level: float) -> str:
    """`8`, `3.36`, `12345`: as exact as anyone writes a load, as the curve is drawn over it."""
    return f"{level:.10g}"


def _next(plan: Plan, measured: Sequence[Run]) -> float | None:
    if plan.levels is not None:
        return next(iter(_listed(plan, measured)), None)
    return next_level(plan.search, rungs_of(measured))


def _listed(plan: Plan, measured: Sequence[Run]) -> list[float]:
    """The levels asked for by list that have not been measured."""
    names = {run.level for run in measured}
    return [level for level in plan.levels or () if level_name(level) not in names]
