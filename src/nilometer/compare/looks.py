"""Looking after each pair without paying for it: how much of the rate of false claims each look may spend.

A verify that looks eight times at 5 % claims falsely in 15 of 100 cases. So the rate is spent by a plan: after n of at
most N pairs alpha * (n / N)^RHO in all (Lan and DeMets 1983, power family). Bonferroni on what each look may spend
would be safe and wasteful, as looks share most of their pairs. Here the chance to pass a bound for the first time is
reckoned exactly, for the t of normal differences: normal bounds read as those of t let 5.8 % through instead of 5 %.

How. Of n differences less the shift, take the direction alone: a point of the unit sphere, uniform on it where there
is no effect, and independent of its length. With r the cosine of its angle to the vector of ones, t is sqrt(n - 1) r /
sqrt(1 - r^2). One more difference turns it by an independent angle phi of density ~ cos(phi)^(n - 1), so that r is
next (sqrt(n) r cos(phi) + sin(phi)) / sqrt(n + 1): a chain in one dimension. It is followed on a grid; at each look
what lies beyond the bound has been claimed and leaves the chain.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from nilometer.metrics.quantiles import Floats

from .statistics import LEAST_RUNS
from .student import beyond, tail

RHO = 2.0
_CELLS = 250
_TABLE = 4001
_HALVES = 50


class Looks(NamedTuple):
    """A look after each pair from the `least` to the `most`."""

    least: int = LEAST_RUNS
    most: int = 10
    rho: float = RHO

    def level(self, alpha: float, pairs: int) -> float:
        """The nominal one-sided level at the look after `pairs`, so that all looks together err with chance alpha.

        0 before the first look and after the last: nothing may be claimed there.
        """
        if not self.least <= pairs <= self.most:
            return 0.0
        return _levels(alpha, self)[pairs - self.least]


@lru_cache(maxsize=64)
def _levels(alpha: float, looks: Looks) -> tuple[float, ...]:
    """Nominal level of each look, from the chain of the cosine r."""
    if looks.least < 2:
        raise ValueError("one pair has no t")
    n, spent = looks.least, alpha * (looks.least / looks.most) ** looks.rho
    bound = _cosine(beyond(spent, n - 1), n)
    levels, masses, middles = [spent], *_first(bound, n)
    while n < looks.most:
        step = _Step(middles, n)
        n += 1
        planned = alpha * (n / looks.most) ** looks.rho
        bound = _crossing(masses, step, planned - spent)
        levels.append(tail(math.sqrt(n - 1) * bound / math.sqrt(1 - bound * bound), n - 1))
        masses, middles, spent = *_onwards(masses, step, bound), planned
    return tuple(levels)


def _cosine(t: float, n: int) -> float:
    return t / math.sqrt(t * t + n - 1)


def _borders(bound: float) -> Floats:
    """Of cells of equal angle from r = -1 up to the bound."""
    borders: Floats = np.sin(np.linspace(-math.pi / 2, math.asin(bound), _CELLS + 1))
    return borders


def _middles(borders: Floats) -> Floats:
    angles = np.arcsin(borders)
    middles: Floats = np.sin((angles[1:] + angles[:-1]) / 2)
    return middles


def _first(bound: float, n: int) -> tuple[Floats, Floats]:
    """The mass in each cell after the first n differences, and where it is."""
    borders = _borders(bound)
    below = np.array([tail(-math.sqrt(n - 1) * r / math.sqrt(max(1 - r * r, 1e-300)), n - 1) for r in borders])
    return np.diff(below), _middles(borders)


class _Step:
    """What one more difference makes of r, for each of the cosines `middles` that n differences gave."""

    def __init__(self, middles: Floats, n: int) -> None:
        self._turned = np.arctan(math.sqrt(n) * middles)
        self._reach = np.sqrt((n * middles**2 + 1) / (n + 1))
        self._angles = np.linspace(-math.pi / 2, math.pi / 2, _TABLE)
        density = np.cos(self._angles) ** (n - 1)
        gathered = np.concatenate([[0.0], np.cumsum(density[1:] + density[:-1])])
        self._shares = gathered / gathered[-1]

    def below(self, bound: Floats) -> Floats:
        """Chance that r is next at most `bound`, a row for each bound, a column for each cosine.

        r is next reach * sin(phi + turned): at most the bound up to the angle of that sine, and again beyond the same
        angle on the other side of the half circle.
        """
        angle = np.arcsin(np.clip(bound[:, None] / self._reach, -1, 1))
        up_to = self._share(angle - self._turned) - self._share(-math.pi - angle - self._turned)
        below: Floats = up_to + 1 - self._share(math.pi - angle - self._turned)
        return below

    def _share(self, angles: Floats) -> Floats:
        """Chance of a turn by less than this."""
        share: Floats = np.interp(angles, self._angles, self._shares)
        return share


def _crossing(masses: Floats, step: _Step, spend: float) -> float:
    """The bound beyond which just `spend` of what is left comes to lie."""
    low, high = -1.0, 1.0
    for _ in range(_HALVES):
        middle = (low + high) / 2
        over = float((1 - step.below(np.array([middle]))[0]) @ masses)
        low, high = (middle, high) if over > spend else (low, middle)
    return (low + high) / 2


def _onwards(masses: Floats, step: _Step, bound: float) -> tuple[Floats, Floats]:
    """The mass in each cell below the bound after the step, and where it is."""
    borders = _borders(bound)
    return np.diff(step.below(borders) @ masses), _middles(borders)
