"""What a request takes without others beside it: the line of TTFT over the prompt, and the gap between two tokens.

Fitted on the lowest level only; pooled over levels, a queue passes for prefill.
"""

from __future__ import annotations

import msgspec
import numpy as np

from nilometer.core.clock import NS_PER_MS
from nilometer.metrics.quantiles import Floats, Ints
from nilometer.metrics.table import NONE

from .figure import correlation
from .streams import Streams

LEAST_REQUESTS = 5
_MOST_POINTS = 20_000
"""Evenly taken from more: a median line does not get better for them."""
_GOLDEN = (5**0.5 - 1) / 2
_STEPS = 90
"""Golden section: the bracket shrinks to 1e-19 of itself."""


class BaseLine(msgspec.Struct, frozen=True, kw_only=True):
    """W0(P) = intercept + slope P, in ms and ms a token, from `sent`. Slope and r are None where all prompts are alike.

    `r` is Pearson's between prompt tokens and TTFT, `n` the requests that it stands on.
    """

    intercept_ms: float
    slope_ms: float | None = None
    r: float | None = None
    n: int

    def at_ms(self, prompt_tokens: Floats | Ints) -> Floats:
        """W0 of these prompts; not below 0. Without a slope it is the same of all."""
        line: Floats = np.maximum(self.intercept_ms + (self.slope_ms or 0.0) * prompt_tokens, 0.0)
        return line


class Base(msgspec.Struct, frozen=True, kw_only=True):
    """The lowest level's line and its median gap per token; None where it cannot tell."""

    line: BaseLine | None
    gap_ms: float | None


def base_of(streams: Streams) -> Base:
    """What the ok requests of the window show."""
    gap_ns = streams.token_gap_ns
    return Base(line=streams.once(base_line), gap_ms=None if gap_ns is None else gap_ns / NS_PER_MS)


def base_line(streams: Streams) -> BaseLine | None:
    """W0(P) by median regression of TTFT from `sent`; None with fewer than LEAST_REQUESTS.

    Where no request's prompt is counted it is their median, and so is it where a line would rest on one length.
    """
    table = streams.table
    ttft_ms = table.latency("ttft_from_sent") / NS_PER_MS
    known = streams.measured & ~np.isnan(ttft_ms)
    counted = known & (table.prompt_tokens != NONE)
    n, x, y = int(known.sum()), table.prompt_tokens[counted].astype(np.float64), ttft_ms[counted]
    if n < LEAST_REQUESTS:
        return None
    if len(x) < LEAST_REQUESTS or np.ptp(x) == 0:
        return BaseLine(intercept_ms=float(np.median(ttft_ms[known])), n=n)
    r = correlation(x, y)
    intercept, slope = median_line(x, y)
    return BaseLine(intercept_ms=intercept, slope_ms=slope, r=None if r is None else r.value, n=len(x))


def median_line(x: Floats, y: Floats) -> tuple[float, float]:
    """Intercept and slope with the least sum of |y - a - b x| (Boscovich, Laplace; Koenker and Bassett 1978).

    For a given slope the best intercept is the median of y - b x, and what is left is convex in the slope: so it is
    found by golden section between bounds that hold every slope between neighbours. Needs two x at least.
    """
    if len(x) > _MOST_POINTS:
        chosen = np.linspace(0, len(x) - 1, _MOST_POINTS).astype(np.int64)
        x, y = x[chosen], y[chosen]
    centre = x - np.median(x)
    low, high = _bounds(centre, y)
    near, far = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_near, at_far = _left(centre, y, near), _left(centre, y, far)
    for _ in range(_STEPS):
        if at_near <= at_far:
            high, far, at_far = far, near, at_near
            near = high - _GOLDEN * (high - low)
            at_near = _left(centre, y, near)
        else:
            low, near, at_near = near, far, at_far
            far = low + _GOLDEN * (high - low)
            at_far = _left(centre, y, far)
    slope = (low + high) / 2
    return float(np.median(y - slope * x)), slope


def _left(x: Floats, y: Floats, slope: float) -> float:
    """The sum of the distances that this slope leaves."""
    rest = y - slope * x
    return float(np.abs(rest - np.median(rest)).sum())


def _bounds(x: Floats, y: Floats) -> tuple[float, float]:
    """Bounds of the best slope: the steepest between two points whose x are neighbours."""
    order = np.argsort(x, kind="stable")
    steps = np.diff(np.unique(x[order]))
    steepest = float(np.ptp(y)) / float(steps.min())
    return -steepest, steepest
