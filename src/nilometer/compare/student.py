"""Student's t distribution: its tail and its quantiles, for whole and broken degrees of freedom, in plain Python.

It knows nothing of runs or ratios.
"""

from __future__ import annotations

import math
from functools import lru_cache

_TINY = 1e-300
_ENOUGH = 1e-15
"""A continued fraction whose factor differs from 1 by less has settled."""
_MOST_TERMS = 20_000
_SETTLED = 1e-14
"""A quantile that moves by less of itself stands."""


def tail(t: float, df: float) -> float:
    """P(T > t) of `df` > 0 degrees of freedom, with full relative precision far out.

    From the incomplete beta function: P(|T| > t) = I_x(df/2, 1/2) with x = df / (df + t^2) (Abramowitz and Stegun,
    26.7.1 and 26.5.27).
    """
    if math.isinf(t):
        return 0.0 if t > 0 else 1.0
    both = _incomplete_beta(df / (df + t * t), t * t / (df + t * t), df / 2, 0.5)
    return both / 2 if t >= 0 else 1 - both / 2


@lru_cache(maxsize=4096)
def quantile(p: float, df: float) -> float:
    """The t that is exceeded with chance 1 - p: -inf at 0, inf at 1."""
    return -beyond(p, df) if p < 0.5 else beyond(1 - p, df)


@lru_cache(maxsize=4096)
def beyond(share: float, df: float) -> float:
    """The t that is exceeded with chance `share`: as `quantile`, without the loss of a small share beside 1."""
    if not 0 < share < 1:
        return math.inf if share <= 0 else -math.inf
    if share > 0.5:
        return -beyond(1 - share, df)
    low, high = 0.0, 1.0
    while tail(high, df) > share:
        low, high = high, 2 * high
    return _crossing(low, high, share, df)


def _crossing(low: float, high: float, share: float, df: float) -> float:
    """Where the tail falls to `share`: by Newton's steps, and by halves where one would leave the bracket."""
    t = low or high / 2
    for _ in range(200):
        missed = tail(t, df) - share
        low, high = (t, high) if missed > 0 else (low, t)
        following = t + missed / _density(t, df)
        if not low < following < high:
            following = (low + high) / 2
        if abs(following - t) <= _SETTLED * t:
            break
        t = following
    return following


def _density(t: float, df: float) -> float:
    front = math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2)) / math.sqrt(df * math.pi)
    return front * math.exp(-(df + 1) / 2 * math.log1p(t * t / df))


def _incomplete_beta(x: float, rest: float, a: float, b: float) -> float:
    """I_x(a, b), regularised. `rest` is 1 - x, which the caller knows better than a subtraction would."""
    if x <= 0 or rest <= 0:
        return 0.0 if x <= 0 else 1.0
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest))
    if x < (a + 1) / (a + b + 2):  # here the fraction settles fast; beyond, that of the other side does
        return front * _fraction(x, a, b) / a
    return 1 - front * _fraction(rest, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of the incomplete beta function (26.5.8), from its front by Lentz's method."""
    top, bottom = 1.0, _away_from_zero(1 - (a + b) * x / (a + 1))
    value = 1 / bottom
    bottom = value
    for m in range(1, _MOST_TERMS):
        factor = 1.0
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            bottom = 1 / _away_from_zero(1 + term * bottom)
            top = _away_from_zero(1 + term / top)
            factor = top * bottom
            value *= factor
        if abs(factor - 1) < _ENOUGH:
            break
    return value


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
