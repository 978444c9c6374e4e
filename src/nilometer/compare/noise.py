"""What an interleaved comparison says of the machine itself: how far equal runs lie apart, and if it drifts.

From the differences of pairs, log b - log a, and from all logs in the order of measuring.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev
from typing import NamedTuple

from nilometer.core.run import Run

from .family import Judged
from .statistics import LEAST_RUNS, POWER, unfit
from .student import beyond
from .verdict import Rule


def run_spread(differences: Sequence[float]) -> float | None:
    """sd of the log of one run, from at least two differences of pairs: each holds the chance of two runs."""
    return stdev(differences) / math.sqrt(2) if len(differences) > 1 else None


def smallest_change(spread: float, pairs: int, log_margin: float, alpha: float) -> float | None:
    """The log ratio that so many pairs show to be beyond the margin in POWER of all cases; None below two pairs.

    `alpha` is the level of a claim at the last look, adjusted for the other figures. Margin, and above it what chance
    may hide: (t of alpha + t of the power) standard errors of a mean of differences.
    """
    if pairs < 2:
        return None
    error = spread * math.sqrt(2 / pairs)
    return log_margin + (beyond(alpha, pairs - 1) + beyond(1 - POWER, pairs - 1)) * error


def claim_level(rule: Rule, pairs: int) -> float:
    """The level of a claim on one figure at the last look of so many pairs, adjusted for the other figures (Holm, at
    its strictest)."""
    alpha = rule.alpha / rule.primaries
    return alpha if rule.looks is None else rule.looks._replace(most=pairs).level(alpha, pairs)


def pairs_for(spread: float, log_change: float, log_margin: float, rule: Rule, most: int = 50) -> int | None:
    """The fewest pairs, at least LEAST_RUNS, that a verify has to be given to show such a change beyond the margin in
    POWER of all cases; None where `most` do not suffice."""

    def shown(pairs: int) -> bool:
        least = smallest_change(spread, pairs, log_margin, claim_level(rule, pairs))
        return least is not None and least <= log_change

    if not shown(most):
        return None
    low, high = LEAST_RUNS - 1, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if shown(middle) else (middle, high)
    return high


def drift(logs: Sequence[float], sides: Sequence[str]) -> float | None:
    """By how much the log changes from one run to the next, whichever side they are of: least squares with a level for
    each side. None where there are fewer than two runs of a side, or they tell nothing apart.

    Both sequences are in the order of measuring.
    """
    places: list[float] = []
    values: list[float] = []
    for side in set(sides):
        at = [i for i, one in enumerate(sides) if one == side]
        if len(at) < 2:
            return None
        mean_at, mean_log = fmean(at), fmean(logs[i] for i in at)
        places += [i - mean_at for i in at]
        values += [logs[i] - mean_log for i in at]
    return sum(x * y for x, y in zip(places, values, strict=True)) / sum(x * x for x in places)


class Noise(NamedTuple):
    """Of one figure, as shares: what equal runs differ by (sd), the change that so many pairs would show, the drift
    from run to run. None where too few pairs tell it."""

    metric: str
    run_spread: float | None
    smallest_change: float | None
    drift_per_run: float | None


def noises(rule: Rule, a: Sequence[Run], b: Sequence[Run]) -> list[Noise]:
    """Of each judged figure over pairs, the i-th runs of `a` and `b`; those that a run lacks are left out."""
    found = (_noise(row, a, b, rule) for row in rule.family if row.primary)
    return [one for one in found if one is not None]


def _noise(row: Judged, a: Sequence[Run], b: Sequence[Run], rule: Rule) -> Noise | None:
    of_a, of_b = ([row.of(run.summary) for run in side] for side in (a, b))
    if not of_a or unfit([*of_a, *of_b]):
        return None
    logs = {run.id: math.log(value or 0) for run, value in zip((*a, *b), (*of_a, *of_b), strict=True)}
    spread = run_spread([logs[two.id] - logs[one.id] for one, two in zip(a, b, strict=True)])
    most = rule.looks.most if rule.looks else len(a)
    shown = None if spread is None else smallest_change(spread, most, row.log_margin, claim_level(rule, most))
    ordered = sorted((*a, *b), key=lambda run: run.order or 0)
    slope = drift([logs[run.id] for run in ordered], ["a" if run in a else "b" for run in ordered])
    return Noise(row.name, *(None if log is None else math.expm1(log) for log in (spread, shown, slope)))
