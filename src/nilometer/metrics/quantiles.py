"""Distributions of latencies: exact percentiles with their n, and a mark on those that stand on too few samples.

Takes values, gives figures; knows nothing of requests or windows. Percentiles are linear between closest ranks
(type 7 of Hyndman and Fan, 1996: numpy's default).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from nilometer.core.clock import NS_PER_MS
from nilometer.core.summary import Distribution

Ints = npt.NDArray[np.int64]
Ints32 = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]

PERCENTILES = (50, 90, 95, 99)
SAMPLES_ABOVE = 10
"""A percentile with fewer samples than this beyond it is marked: p99 needs 1,000, p95 needs 200."""
_CHUNK = 1 << 20
"""Values squared at a time, so that a sum over many of them needs no second copy."""


def percentile(ordered: Ints | Ints32 | Floats, percent: float) -> float | None:
    """The value below which `percent` of the values lie, in their unit; None of nothing.

    `ordered` need only hold the right values at the two ranks that are looked at (sorted, or partitioned there).
    """
    n = len(ordered)
    if n == 0:
        return None
    rank, part = divmod((n - 1) * percent, 100)
    low, high = float(ordered[int(rank)]), float(ordered[min(int(rank) + 1, n - 1)])
    return min(low + (high - low) * (part / 100), high)


def distribution(values_ns: Ints | Ints32 | Floats) -> Distribution:
    """Figures in ms of values in ns. The values are reordered in place, so that 20 million of them need no copy.

    `sd` is that of a sample (n - 1), None of one value. Refuses nothing: no values give n 0 and None throughout.
    """
    n = len(values_ns)
    if n == 0:
        return Distribution()
    values_ns.partition(_ranks(n))
    least, most = float(values_ns[0]), float(values_ns[-1])
    mean = min(max(float(values_ns.mean()), least), most)
    deviation = _sd(values_ns, mean)
    p50, p90, p95, p99 = (percentile(values_ns, percent) for percent in PERCENTILES)
    return Distribution(
        n=n,
        mean=mean / NS_PER_MS,
        sd=None if deviation is None else deviation / NS_PER_MS,
        min=least / NS_PER_MS,
        p50=_ms(p50),
        p90=_ms(p90),
        p95=_ms(p95),
        p99=_ms(p99),
        max=most / NS_PER_MS,
        marked=[f"p{percent}" for percent in PERCENTILES if is_marked(n, percent)],
    )


def is_marked(n: int, percent: int) -> bool:
    """Whether fewer than SAMPLES_ABOVE of `n` samples lie beyond this percentile."""
    return n * (100 - percent) < SAMPLES_ABOVE * 100


def _ranks(n: int) -> list[int]:
    """The positions that have to hold what they would in sorted order: both ends, and each percentile's two."""
    ranks = {0, n - 1}
    for percent in PERCENTILES:
        rank = (n - 1) * percent // 100
        ranks |= {rank, min(rank + 1, n - 1)}
    return sorted(ranks)


def _sd(values: Ints | Ints32 | Floats, mean: float) -> float | None:
    if len(values) < 2:
        return None
    squares = 0.0
    for first in range(0, len(values), _CHUNK):
        away = values[first : first + _CHUNK] - mean
        squares += float(away @ away)
    return math.sqrt(squares / (len(values) - 1))


def _ms(value_ns: float | None) -> float | None:
    return None if value_ns is None else value_ns / NS_PER_MS
