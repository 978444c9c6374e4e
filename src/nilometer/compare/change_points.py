"""Where the history of a figure took a step: one value for each version, all measured under one condition.

From LEAST_POINTS on by E-divisive (Matteson and James 2014): the split whose sides differ most in energy distance
(exponent 1), tested by permutation, then each side again. A split is held against all that follows, where a step shows
best, and else against a stretch that ends before the end: a bad version that was mended is two steps which hide each
other from the first. Below that many points a permutation has too few orders to be sure, and only the newest value is
asked whether it lies where the former ones let it be expected. Values are taken as logs, so that a step is a ratio.
A new level has to last LEAST_SIDE values to be one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import fmean, stdev
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from nilometer.metrics.quantiles import Floats, Ints

from .statistics import RUN_SPREAD_FLOOR, Reason, unfit
from .student import beyond

Floats32 = npt.NDArray[np.float32]

LEAST_POINTS = 12
LEAST_SIDE = 3
LEAST_FORMER = 3
STEP_P = 0.016
STRETCH_P = 0.003
"""Chance that a history of one level shows a step in either way: together below 2 % of histories, however long. A test
of the found split alone, as if nobody had searched for it, errs as often at p = 0.001."""
BOUNDARY_LEVEL = 0.99
_PERMUTATIONS = 999
_FEWER, _LONG = 499, 128
"""Of a long history half as many do: what is a step there is one by far."""
_BATCHES = (16, 64, 128)
"""A history without a step shows it in a few permutations, so the first batches are small."""
_CELLS = 8_000
"""The table that each permutation is reckoned with: exact up to 89 points, beyond that on fewer thresholds."""
_BORDERS = 64
"""Of longer histories every second, third ... place is tried as the border of a stretch."""


class Step(NamedTuple):
    """`at` is the first value of the new level, `ratio` the new level over the former (means of logs)."""

    at: int
    ratio: float
    p: float


class History(NamedTuple):
    """What a history says. `expected` and `outside` are of the newest value, where `method` is `boundary`."""

    method: Literal["steps", "boundary", "too_few"]
    steps: tuple[Step, ...] = ()
    expected: tuple[float, float] | None = None
    outside: bool | None = None
    reason: Reason | None = None


def history(values: Sequence[float | None], random: np.random.Generator) -> History:
    """The steps in a history, oldest value first, or where there are few the newest against the former.

    With a value missing, or one that has no log, nothing is said but the reason. `random` shuffles; a seeded one gives
    the same answer each time.
    """
    reason = unfit(values)
    known = [value for value in values if value is not None]
    if reason is not None or len(known) <= LEAST_FORMER:
        return History("too_few", reason=reason)
    if len(known) >= LEAST_POINTS:
        return History("steps", tuple(steps(known, random)))
    lo, hi = expected(known[:-1])
    return History("boundary", expected=(lo, hi), outside=not lo <= known[-1] <= hi)


def expected(former: Sequence[float], level: float = BOUNDARY_LEVEL) -> tuple[float, float]:
    """The prediction interval of the next value from LEAST_FORMER former ones at least, in their unit.

    mean +- t * sd * sqrt(1 + 1/n) on logs: a value of the same kind falls outside with chance 1 - level.
    """
    logs = [math.log(value) for value in former]
    n = len(logs)
    spread = max(stdev(logs), RUN_SPREAD_FLOOR) * math.sqrt(1 + 1 / n)
    reach = beyond((1 - level) / 2, n - 1) * spread
    return math.exp(fmean(logs) - reach), math.exp(fmean(logs) + reach)


def steps(values: Sequence[float], random: np.random.Generator) -> list[Step]:
    """The steps of a history of values above 0, in order. Shown in 2 % of histories of one level at most."""
    logs = np.log(np.array(values, dtype=np.float64))
    found = _split(logs, 0, random)
    borders = [0, *(index for index, _ in found), len(logs)]
    levels = [float(logs[low:high].mean()) for low, high in pairwise(borders)]
    ratios = [math.exp(after - before) for before, after in pairwise(levels)]
    return [Step(index, ratio, p) for (index, p), ratio in zip(found, ratios, strict=True)]


def _split(logs: Floats, at: int, random: np.random.Generator, share: float = 1.0) -> list[tuple[int, float]]:
    """The steps of a stretch that begins at `at`, with their p: the clearest, then those of both its sides.

    Each side has half of the chance to err, so that finding one step does not make a second one likelier by luck.
    """
    if len(logs) < 2 * LEAST_SIDE:
        return []
    found = _clearest(logs, random, share)
    if found is None:
        return []
    index, p = found
    left, right = (
        _split(side, begins, random, share / 2) for side, begins in ((logs[:index], at), (logs[index:], at + index))
    )
    return [*left, (at + index, p), *right]


def _clearest(logs: Floats, random: np.random.Generator, share: float) -> tuple[int, float] | None:
    """The split against all that follows, or against a part of it, that is no chance."""
    stretch = _Stretch(logs)
    p = _chance(stretch.places, stretch.to_the_end, random, share * STEP_P)
    if p is not None:
        return _highest(stretch), p
    p = _chance(stretch.places, stretch.to_a_border, random, share * STRETCH_P)
    return None if p is None else (_highest(_Stretch(logs[: stretch.best_border()])), p)


def _highest(stretch: _Stretch) -> int:
    return LEAST_SIDE + int(stretch.to_the_end(stretch.places[None, :])[0].argmax())


def _chance(
    places: Ints, heights: Callable[[Ints], Floats32], random: np.random.Generator, limit: float
) -> float | None:
    """How often the values in another order have a split as high; None as soon as that is more than the limit, or than
    the least that so many permutations can show."""
    height = float(heights(places[None, :])[0].max()) * (1 - 1e-5)
    most = _PERMUTATIONS if len(places) <= _LONG else _FEWER
    allowed = max(math.floor(limit * (most + 1) + 1e-9) - 1, 0)
    reached, done, batches = 0, 0, iter(_BATCHES)
    while done < most:
        n = min(next(batches, _BATCHES[-1]), most - done)
        orders = random.permuted(np.broadcast_to(places, (n, len(places))), axis=1)
        reached += int((heights(orders).max(axis=1) >= height).sum())
        done += n
        if reached > allowed:
            return None
    return (reached + 1) / (done + 1)


class _Stretch:
    """Energy distances of the splits of a stretch, for any order of its values.

    In one dimension the distance of two samples is twice the integral of the squared difference of their distribution
    functions. With the widths w between the sorted values and N_k(j), how many of the first k are among the j smallest,
    a split after k in the stretch up to l has the height 2 k (l - k) / l * sum over j of w(j) (N_k(j) / k - (N_l(j) -
    N_k(j)) / (l - k))^2. An order is given as places: the rank of each value.
    """

    def __init__(self, logs: Floats) -> None:
        order = np.argsort(logs, kind="stable")
        n = len(logs)
        self.places: Ints = np.empty(n, dtype=np.int64)
        self.places[order] = np.arange(n)
        self._thresholds, self._widths = _thresholds(np.diff(logs[order]), max(1, _CELLS // n))
        borders = np.unique(np.linspace(LEAST_SIDE, n, min(n - LEAST_SIDE + 1, _BORDERS)).astype(np.int64))
        first, last = np.triu_indices(len(borders), 1)
        apart = borders[last] - borders[first] >= LEAST_SIDE
        self._borders, self._first, self._last = borders, first[apart], last[apart]

    def to_the_end(self, orders: Ints) -> Floats32:
        """Of each order the heights of all splits against what follows, from LEAST_SIDE to n - LEAST_SIDE."""
        n = orders.shape[1]
        k = np.arange(LEAST_SIDE, n - LEAST_SIDE + 1, dtype=np.float32)
        away = self._counts(orders)[:, LEAST_SIDE - 1 : n - LEAST_SIDE] * np.float32(n)
        away -= k[:, None] * self._thresholds.astype(np.float32)
        away *= away
        heights: Floats32 = away @ self._widths * (2 / (n * k * (n - k)))
        return heights

    def to_a_border(self, orders: Ints) -> Floats32:
        """Of each order the heights of the splits at a border against the stretch up to another one."""
        counts = self._counts(orders)[:, self._borders - 1].astype(np.float32)
        products = (counts * self._widths) @ counts.transpose(0, 2, 1)
        squares = np.einsum("rkk->rk", products)
        k, end = self._borders[self._first], self._borders[self._last]
        rest = end - k
        of_k, of_end = (end / (k * rest)).astype(np.float32), (1 / rest).astype(np.float32)
        integrals = (
            of_k**2 * squares[:, self._first]
            - 2 * of_k * of_end * products[:, self._first, self._last]
            + of_end**2 * squares[:, self._last]
        )
        heights: Floats32 = integrals * (2 * k * rest / end).astype(np.float32)
        return heights

    def best_border(self) -> int:
        """The end of the stretch with the highest split."""
        best = int(self.to_a_border(self.places[None, :])[0].argmax())
        return int(self._borders[self._last[best]])

    def _counts(self, orders: Ints) -> npt.NDArray[np.int16]:
        """N_k(j) of each order, for k from 1 to n and the thresholds j."""
        below = orders[:, :, None] < self._thresholds
        counts: npt.NDArray[np.int16] = below.cumsum(axis=1, dtype=np.int16)
        return counts


def _thresholds(widths: Floats, most: int) -> tuple[Ints, Floats32]:
    """The numbers j of smallest values that are looked at, and the width of each: all, or `most` evenly chosen ones."""
    n = len(widths)
    if n <= most:
        return np.arange(1, n + 1), widths.astype(np.float32)
    borders = np.linspace(0, n, most + 1).astype(np.int64)
    return (borders[:-1] + borders[1:] + 1) // 2, np.add.reduceat(widths, borders[:-1]).astype(np.float32)
