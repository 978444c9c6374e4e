"""A figure of a feature: its value and the count it stands on. The name, unit and level are given where it is filed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from nilometer.metrics.quantiles import Floats, Ints
from nilometer.metrics.table import Mask


class Figure(NamedTuple):
    """What a feature gives; None in its place is `not measured`."""

    value: float
    n: int
    """Of what: the feature says it."""


def share(chosen: Mask) -> Figure | None:
    """How large a part of these is true; None of nothing."""
    return Figure(float(chosen.mean()), len(chosen)) if len(chosen) else None


def median(values: Floats | Ints) -> Figure | None:
    """Their median; None of nothing. NaN are left out."""
    known = values[~np.isnan(values)]
    return Figure(float(np.median(known)), len(known)) if len(known) else None


def mean(values: Floats | Ints) -> Figure | None:
    """Their mean; None of nothing. NaN are left out."""
    known = values[~np.isnan(values)]
    return Figure(float(known.mean()), len(known)) if len(known) else None


def ratio(above: Figure | None, below: Figure | None) -> Figure | None:
    """One over the other, with the smaller count; None where one lacks or the lower is 0."""
    if above is None or below is None or below.value == 0:
        return None
    return Figure(above.value / below.value, min(above.n, below.n))


def between_groups(values: Floats, groups: Ints) -> Figure | None:
    """The share of the variance that lies between the groups, corrected for what chance puts there.

    Adjusted eta squared, 1 - (1 - eta2) (n - 1) / (n - k), not below 0 (Kelley 1935). None with one group, without
    variance, or with no more values than groups.
    """
    known = ~np.isnan(values)
    values, groups = values[known], np.unique(groups[known], return_inverse=True)[1]
    n, k = len(values), int(groups.max(initial=-1)) + 1
    if k < 2 or n <= k:
        return None
    sizes = np.bincount(groups)
    means = np.bincount(groups, weights=values) / sizes
    total = float(((values - values.mean()) ** 2).sum())
    if total <= 0:
        return None
    between = float(sizes @ (means - values.mean()) ** 2) / total
    return Figure(max(0.0, 1 - (1 - between) * (n - 1) / (n - k)), n)


def correlation(one: Floats | Ints, other: Floats | Ints) -> Figure | None:
    """Pearson's r; None with fewer than 3 pairs or where one of them does not vary."""
    n = len(one)
    if n < 3 or np.ptp(one) == 0 or np.ptp(other) == 0:
        return None
    return Figure(float(np.clip(np.corrcoef(one, other)[0, 1], -1, 1)), n)


def runs(flags: Iterable[bool]) -> list[int]:
    """Lengths of the unbroken runs of True, in order."""
    found, length = [], 0
    for flag in [*flags, False]:
        if flag:
            length += 1
        elif length:
            found.append(length)
            length = 0
    return found
