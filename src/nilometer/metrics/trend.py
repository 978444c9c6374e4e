"""Whether a series has settled: where its warm-up ends (MSER-5), and whether it drifts (Kendall with Theil-Sen).

Series of plain numbers in, positions and figures out. ADF and the like are left out on purpose: they call a trend of
+50 % stationary.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np

from .quantiles import Floats

BATCH = 5
"""MSER-5: the series is averaged in batches of five before its head is cut."""
LEAST_BATCHES = 10
"""A series with fewer batches (50 values) tells nothing about a warm-up, and none is cut."""
_TAIL_BATCHES = 5
"""What is kept holds five batches at least: fewer can agree with each other by chance."""
HEAD_SHARE = 0.05
HEAD_ERRORS = 3.0
"""A warm-up differs from what follows by more than 5 % and by more than three standard errors."""
_NO_VARIATION = 1e-6
"""A spread below a millionth of the mean is rounding, not variation."""
BLOCKS = 10
DRIFT_P = 0.05
DRIFT_SHARE = 0.05
"""A drift counts when it is unlikely to be chance (p) and large enough to matter (share of the median)."""
_EXACT_N = 40
"""Up to this many values Kendall's p is exact; beyond, the normal approximation is good to three digits."""


class Drift(NamedTuple):
    """`share` is the drift over the whole series as a share of its median; `p` that of Kendall's test on the blocks."""

    share: float
    p: float

    def is_real(self, p_limit: float = DRIFT_P) -> bool:
        return self.p < p_limit and abs(self.share) > DRIFT_SHARE


def mser5(values: Floats) -> int:
    """How many values to cut from the head so that the standard error of the rest is least; a multiple of BATCH.

    MSER: argmin over d of sum((y_i - mean of rest)^2, i >= d) / (m - d)^2 on batch means (White 1997; MSER-5: White,
    Cobb, Spratt 2000). The least d among equals; 0 where the series is too short to tell.
    """
    batches = len(values) // BATCH
    if batches < LEAST_BATCHES:
        return 0
    means = values[: batches * BATCH].reshape(batches, BATCH).mean(axis=1)
    centre = float(means.mean())
    errors = _errors_of_rest(means - centre)
    slack = (_NO_VARIATION * abs(centre)) ** 2 / batches
    return BATCH * int(np.argmax(errors <= errors.min() * (1 + 1e-9) + slack))


def warmup(values: Floats) -> int:
    """How many values at the head are warm-up: what MSER-5 would cut, if the head differs from the rest at all.

    In noise alone MSER-5 cuts something in 4 of 10 series, more than half in 1 of 10 short ones. A head whose mean is
    within 5 % or 3 standard errors of the rest is kept, which leaves 1 false cut in 20 and finds steps as before.
    """
    cut = mser5(values)
    if not cut:
        return 0
    means = values[: len(values) // BATCH * BATCH].reshape(-1, BATCH).mean(axis=1)
    head, rest = means[: cut // BATCH], means[cut // BATCH :]
    spread = float(rest.var(ddof=1))
    head_spread = float(head.var(ddof=1)) if len(head) > 1 else spread
    error = math.sqrt(head_spread / len(head) + spread / len(rest))
    away = abs(float(head.mean() - rest.mean()))
    return cut if away > max(HEAD_ERRORS * error, HEAD_SHARE * abs(float(rest.mean()))) else 0


def _errors_of_rest(means: Floats) -> Floats:
    """The MSER statistic for each number of batches cut that leaves _TAIL_BATCHES."""
    left = np.arange(len(means), 0, -1, dtype=np.float64)
    sums = means[::-1].cumsum()[::-1]
    squares = (means**2)[::-1].cumsum()[::-1]
    around_mean = np.maximum(squares - sums**2 / left, 0.0)
    errors: Floats = (around_mean / left**2)[: len(means) - _TAIL_BATCHES + 1]
    return errors


def drift(values: Floats) -> Drift:
    """Drift of a series in the order of time, from the means of BLOCKS blocks of (nearly) equal count.

    Needs BLOCKS values at least (ValueError). `share` is 0 where the median block is 0 and nothing grows.
    """
    if len(values) < BLOCKS:
        raise ValueError(f"{len(values)} values make no {BLOCKS} blocks")
    means = np.array([float(block.mean()) for block in np.array_split(values, BLOCKS)])
    grown = theil_sen(means) * BLOCKS
    middle = abs(float(np.median(means)))
    share = grown / middle if middle else math.copysign(math.inf, grown) if grown else 0.0
    return Drift(share, kendall_p(means))


def theil_sen(values: Floats) -> float:
    """Median of the slopes between all pairs, per step (Theil 1950, Sen 1968)."""
    i, j = np.triu_indices(len(values), 1)
    return float(np.median((values[j] - values[i]) / (j - i)))


def kendall_p(values: Floats) -> float:
    """Two-sided p of Kendall's test that the series has no trend (Mann 1945).

    Exact for up to 40 values without ties; otherwise normal, with the variance corrected for ties and for continuity
    (Kendall, Rank Correlation Methods, 1970, ch. 4).
    """
    n = len(values)
    i, j = np.triu_indices(n, 1)
    score = abs(int(np.sign(values[j] - values[i]).sum()))
    sizes = np.unique(values, return_counts=True)[1]
    if n <= _EXACT_N and int(sizes.max(initial=1)) == 1:
        return _exact_p(n, score)
    variance = float(_pairs_variance(np.array([n])) - _pairs_variance(sizes)) / 18
    if variance <= 0 or score == 0:
        return 1.0
    return math.erfc((score - 1) / math.sqrt(2 * variance))


def _pairs_variance(sizes: np.typing.NDArray[np.int64]) -> int:
    return int((sizes * (sizes - 1) * (2 * sizes + 5)).sum())


def _exact_p(n: int, score: int) -> float:
    """Share of the orders of n values whose score is at least this far from 0."""
    orders = _inversions(n)
    pairs = n * (n - 1) // 2
    extreme = sum(count for inversions, count in enumerate(orders) if abs(pairs - 2 * inversions) >= score)
    return extreme / math.factorial(n)


@cache
def _inversions(n: int) -> tuple[int, ...]:
    """Of the orders of n values, how many have k inversions (Mahonian numbers)."""
    if n <= 1:
        return (1,)
    fewer = _inversions(n - 1)
    pairs = n * (n - 1) // 2
    return tuple(sum(fewer[max(0, k - n + 1) : k + 1]) for k in range(pairs + 1))
