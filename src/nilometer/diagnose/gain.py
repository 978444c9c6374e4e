"""What a remedy would bring, in the terms of the levels that were measured: an interval, and how levels join up.

Nothing here assumes more than the levels show: a latency grows with the load, and a step of decoding takes a fixed part
and one for each stream.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from .case import Case
from .evidence import exponent
from .group import WAITING_SHARE
from .level import LevelEvidence

NOISE = 0.05
"""What a mean of the same load may differ by when it is measured again."""
_NOISE_P95 = 0.1
"""The same of a p95."""
_APART = 1.15
"""Levels whose decoding streams differ by less say nothing of how a stream slows down."""
_ONE_STEP, _STEPS = 0.15, 0.05
"""How far off an elasticity may be that one step, or several, show."""

Reading = Callable[[LevelEvidence], float | None]


class Interval(NamedTuple):
    """low <= mid <= high."""

    low: float
    mid: float
    high: float

    def times(self, factor: float) -> Interval:
        """All three, for a factor above 0."""
        return Interval(self.low * factor, self.mid * factor, self.high * factor)

    def under(self, ceiling: float) -> Interval:
        """None of them above it."""
        return Interval(min(self.low, ceiling), min(self.mid, ceiling), min(self.high, ceiling))


class Gain(NamedTuple):
    """A figure as it is and as it would be; `metric` ends in its statistic and unit."""

    metric: str
    unit: str
    before: float
    after: Interval

    def told(self) -> dict[str, float | str | None]:
        """As a Remedy holds it."""
        low, mid, high = self.after
        return {"metric": self.metric, "unit": self.unit, "before": self.before, "low": low, "mid": mid, "high": high}


class Pace(NamedTuple):
    """How slow a stream is where so many decode at a time."""

    streams: float
    ms: float


def ttft_p95(level: LevelEvidence) -> float | None:
    """ms."""
    return None if level.ttft is None else level.ttft.total_ms


def tpot(level: LevelEvidence) -> float | None:
    """Mean time of a token, stalls and all, ms; where that is not known, the median gap between tokens."""
    return level.value("token_gap") if level.means is None else level.means.tpot_ms


def throughput(level: LevelEvidence) -> float | None:
    """Output tokens a second."""
    return level.value("output_tokens_per_s")


def about(value: float, error: float = NOISE) -> Interval:
    """A value that was measured, as it may be found again."""
    return Interval(value * (1 - error), value, value * (1 + error))


def at_load(case: Case, number: float, reading: Reading, error: float = _NOISE_P95) -> Interval | None:
    """What a level of this load would show, of a figure that never falls as the load grows.

    A level that was measured is its own answer. Between two it lies between theirs, the middle along their logarithms;
    below the lowest or above the highest nobody knows.
    """
    known = [(level.level, value) for level in case.group.levels if level.level and (value := reading(level))]
    below = [one for one in known if one[0] <= number]
    above = [one for one in known if one[0] >= number]
    if not below or not above:
        return None
    (low_n, low), (high_n, high) = below[-1], above[0]
    if low_n == high_n:
        return about(low, error)
    middle = low * (number / low_n) ** exponent(high / low, high_n / low_n)
    return Interval(min(low, high) * (1 - error), middle, max(low, high) * (1 + error))


def paces(case: Case) -> list[Pace]:
    """Of the levels, by the number that decodes at a time: each at least _APART of the one before, fewest first."""
    seen = sorted(
        Pace(streams, ms) for level in case.group.levels if (streams := level.value("decoding")) and (ms := tpot(level))
    )
    found: list[Pace] = []
    for pace in seen:
        if not found or pace.streams >= found[-1].streams * _APART:
            found.append(pace)
    return found


def slower(case: Case, grown: float) -> Interval | None:
    """By what factor a token takes longer where `grown` times as many decode as now; None without two levels to tell.

    A step takes a fixed part and one for each stream (weights once, cache and arithmetic of each): the middle follows
    the line through the levels, extended. The interval is that of the elasticities d ln TPOT / d ln streams which the
    steps between neighbours and the extended line show; none is below 0, or above 1 (each stream for itself).
    """
    seen = paces(case)
    if len(seen) < 2 or grown <= 0:
        return None
    if grown == 1:
        return Interval(1.0, 1.0, 1.0)
    now = seen[-1].streams
    fixed, each = _line(seen)
    line = exponent((fixed + each * now * grown) / (fixed + each * now), grown)
    steps = [exponent(after.ms / before.ms, after.streams / before.streams) for before, after in pairwise(seen)]
    error = _STEPS if len(steps) > 1 else _ONE_STEP
    ends = [_between(min(line, *steps) - error), _between(line), _between(max(line, *steps) + error)]
    low, middle, high = sorted(grown**end for end in ends)
    return Interval(low, middle, high)


def more_streams(case: Case, grown: float) -> Interval | None:
    """Output tokens a second where `grown` times as many decode as now: as many more streams, each slower."""
    made, factor = throughput(case.highest), slower(case, grown)
    if made is None or factor is None:
        return None
    return Interval(made * grown / factor.high, made * grown / factor.mid, made * grown / factor.low)


def waits_at(level: LevelEvidence) -> bool:
    """Whether somebody waits for a first token most of the time."""
    return (level.value("prefill_time_share") or 0.0) >= WAITING_SHARE


def alone_ms(case: Case) -> tuple[float, float] | None:
    """Mean TTFT and E2E of the lowest level: a request with hardly any other beside it."""
    ttft, e2e = case.lowest.value("ttft_mean"), case.lowest.value("e2e_mean")
    return None if not ttft or not e2e else (ttft, e2e)


def _between(elasticity: float) -> float:
    return min(max(elasticity, 0.0), 1.0)


def _line(seen: Sequence[Pace]) -> tuple[float, float]:
    """Fixed part and part of each stream, ms, by least squares; neither is below 0."""
    n = len(seen)
    mean_x, mean_y = math.fsum(one.streams for one in seen) / n, math.fsum(one.ms for one in seen) / n
    spread = math.fsum((one.streams - mean_x) ** 2 for one in seen)
    slope = math.fsum((one.streams - mean_x) * (one.ms - mean_y) for one in seen) / spread
    slope = min(max(slope, 0.0), mean_y / mean_x)
    return mean_y - slope * mean_x, slope
