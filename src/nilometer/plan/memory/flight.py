"""How many requests of unlike lengths fit at once: the quantile of what those in flight hold together.

A request in flight holds its input and what it has put out so far. Seen at a random moment it is met in proportion to
how long it lasts, so long outputs weigh more; how far it is, is even over its output. The sum over n of them is near
normal, corrected for skew (Cornish and Fisher), and the greatest n is where its quantile meets the pool.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist

import msgspec

from nilometer.core.errors import SpecError

Pairs = Sequence[tuple[float, float]]
SHARE = 0.95
"""Of the time, that what is in flight stays within a pool, where nothing else is asked."""
_MOMENTS = 8
"""Points on the way of an output at which a request's need is taken."""
_PAIRS_MAX = 2_000


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """What one request in flight holds, in the unit of the pool: blocks, tokens or bytes."""

    mean: float
    deviation: float
    skew: float
    largest: float
    """The need at its end of the request that needs most: what a plan by the worst case counts for each."""

    def quantile_of_sum(self, requests: int, share: float) -> float:
        """What `requests` of them together stay within, this share of the time."""
        z = NormalDist().inv_cdf(share)
        normal = requests * self.mean + z * self.deviation * math.sqrt(requests)
        return normal + self.deviation * self.skew * (z * z - 1) / 6


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """How many at once: by the quantile of the sum, by the mean, and if each were the largest."""

    by_quantile: int
    by_mean: int
    by_worst_case: int
    share: float


def demand(pairs: Pairs, need: Callable[[float], float]) -> Demand:
    """Of requests of (input, output) tokens, each as likely as the other; `need` gives what so many tokens hold.

    SpecError for no pairs or a length below zero. More than 2,000 pairs are thinned evenly by their total.
    """
    if not pairs or any(min(pair) < 0 for pair in pairs):
        raise SpecError("lengths_unusable", count=len(pairs))
    used = _thinned(pairs)
    weights, values = [], []
    for given, out in used:
        for step in range(_MOMENTS):
            weights.append(max(out, 1.0) / _MOMENTS)
            values.append(need(given + out * (step + 0.5) / _MOMENTS))
    total = sum(weights)
    mean = sum(w * v for w, v in zip(weights, values, strict=True)) / total
    variance = sum(w * (v - mean) ** 2 for w, v in zip(weights, values, strict=True)) / total
    third = sum(w * (v - mean) ** 3 for w, v in zip(weights, values, strict=True)) / total
    skew = third / variance**1.5 if variance > 0 else 0.0
    largest = max(need(given + out) for given, out in pairs)
    return Demand(mean=mean, deviation=math.sqrt(variance), skew=skew, largest=largest)


def _thinned(pairs: Pairs) -> Pairs:
    if len(pairs) <= _PAIRS_MAX:
        return pairs
    ordered = sorted(pairs, key=sum)
    return [ordered[int((i + 0.5) * len(ordered) / _PAIRS_MAX)] for i in range(_PAIRS_MAX)]


def fit(capacity: float, one: Demand, share: float = SHARE) -> Fit:
    """The greatest number of requests in flight that a pool of `capacity` holds, this share of the time."""
    worst = int(capacity // one.largest) if one.largest > 0 else 0
    mean = int(capacity // one.mean) if one.mean > 0 else 0
    return Fit(by_quantile=max(worst, _greatest(capacity, one, share)), by_mean=mean, by_worst_case=worst, share=share)


def _greatest(capacity: float, one: Demand, share: float) -> int:
    """The largest n whose quantile is within: the root of a square in the square root of n."""
    if one.mean <= 0:
        return 0
    z = NormalDist().inv_cdf(share)
    spread = z * one.deviation
    room = capacity - one.deviation * one.skew * (z * z - 1) / 6
    if room <= 0 or spread * spread + 4 * one.mean * room < 0:
        return 0
    root = (-spread + math.sqrt(spread * spread + 4 * one.mean * room)) / (2 * one.mean)
    return math.floor(root * root + 1e-9) if root > 0 else 0
