"""The ratio of one figure between two sides, from logs of one value a run: the run is the unit, never the request.

`welch` for runs that have nothing to do with each other, `paired` for interleaved pairs. Requests of one run share
its machine, its weather and its queue: tests on them call two identical servers different in 70-80 % of comparisons.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import fmean, variance
from typing import Literal, NamedTuple

from .student import beyond, tail

Reason = Literal["not_measured", "not_positive"]

LEAST_RUNS = 3
"""Runs (or pairs) a side from which on there can be a verdict: of two, t has one degree of freedom and says nothing."""
RUN_SPREAD_FLOOR = 0.001
"""The least spread (sd of the log) that a run is taken to have. Runs that agree to the last digit, as those of a
scripted server do, would otherwise make an interval of no width, and a verdict of a difference of one tick of a clock.
A tenth of a percent is below what any machine repeats and far below any margin, so it decides nothing else."""
POWER = 0.8
MOST_MORE = 100
"""With more than this many more runs a side asked for, "more runs" is no advice: something else has to change."""


class Estimate(NamedTuple):
    """A log ratio b/a with its standard error; None and no interval below two runs (pairs) a side.

    `n_a` and `n_b` are runs; both are the number of pairs where `paired`.
    """

    log_ratio: float
    standard_error: float | None
    df: float | None
    n_a: int
    n_b: int
    paired: bool = False

    def interval(self, level: float) -> tuple[float, float] | None:
        """The two-sided confidence interval of the log ratio at `level`, such as 0.95."""
        return self.bounds((1 - level) / 2)

    def bounds(self, share: float) -> tuple[float, float] | None:
        """From the lower to the upper bound, each of which errs with chance `share`; None without a spread."""
        if self.standard_error is None or self.df is None:
            return None
        reach = beyond(share, self.df) * self.standard_error
        return self.log_ratio - reach, self.log_ratio + reach

    def p_above(self, shift: float) -> float | None:
        """p of the hypothesis that the log ratio is at most `shift`: small where it is surely above."""
        if self.standard_error is None or self.df is None:
            return None
        return tail((self.log_ratio - shift) / self.standard_error, self.df)

    def p_below(self, shift: float) -> float | None:
        """p of the hypothesis that the log ratio is at least `shift`."""
        if self.standard_error is None or self.df is None:
            return None
        return tail((shift - self.log_ratio) / self.standard_error, self.df)


def unfit(values: Sequence[float | None]) -> Reason | None:
    """Why these values have no logs; None where they have. One run without the figure is enough: to leave it out would
    be to choose among the runs by their outcome."""
    if any(value is None or math.isnan(value) for value in values):
        return "not_measured"
    return "not_positive" if any(not 0 < (value or 0) < math.inf for value in values) else None


def welch(a: Sequence[float], b: Sequence[float]) -> Estimate:
    """Of independent runs, from the logs of each side; unequal counts and spreads are as they are (Welch 1947).

    Needs a value a side (ValueError).
    """
    if not a or not b:
        raise ValueError("a side has no runs")
    log_ratio = fmean(b) - fmean(a)
    if min(len(a), len(b)) < 2:
        return Estimate(log_ratio, None, None, len(a), len(b))
    of_a, of_b = _variance(a) / len(a), _variance(b) / len(b)
    df = (of_a + of_b) ** 2 / (of_a**2 / (len(a) - 1) + of_b**2 / (len(b) - 1))
    return Estimate(log_ratio, math.sqrt(of_a + of_b), df, len(a), len(b))


def paired(differences: Sequence[float]) -> Estimate:
    """Of interleaved pairs, from the differences log b - log a: what both runs of a pair share drops out.

    Needs a pair (ValueError).
    """
    n = len(differences)
    if not n:
        raise ValueError("there is no pair")
    if n < 2:
        return Estimate(differences[0], None, None, n, n, paired=True)
    spread = math.sqrt(_variance(differences, runs=2) / n)
    return Estimate(fmean(differences), spread, n - 1, n, n, paired=True)


def _variance(logs: Sequence[float], runs: int = 1) -> float:
    """Of a sample (n - 1), and not below the floor; `runs` is how many runs one value comes from."""
    return max(variance(logs), runs * RUN_SPREAD_FLOOR**2)


def holm(p_values: Sequence[float], factor: Callable[[int], float] = float) -> list[float]:
    """p adjusted for the number of hypotheses, in the given order (Holm 1979): of the i-th least of m, m - i times.

    `factor` says what p of one among so many hypotheses is multiplied by; looks on the way raise it.
    """
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted, most = [0.0] * len(p_values), 0.0
    for place, index in enumerate(order):
        most = max(most, min(1.0, p_values[index] * factor(len(p_values) - place)))
        adjusted[index] = most
    return adjusted


def more_runs(
    estimate: Estimate, margin: float, alpha: float = 0.05, claim: float | None = None, most: int = MOST_MORE
) -> int | None:
    """How many more runs a side (pairs) decide this with POWER, if the truth is what was estimated; at least 1.

    `margin` is that of the log ratio. Within it what has to be shown is that the difference lies inside it, beyond it
    that it lies outside. None where more than `most` would be needed: an estimate on the border of the margin is not
    decided by any number. Reckoned with the variance seen, by a shifted t; below two runs a side there is none to
    reckon with, and LEAST_RUNS are asked for. `claim`: the level of a claim that it lies outside, where that is
    adjusted for other figures.
    """
    levels = alpha, alpha if claim is None else claim
    lacking = max(LEAST_RUNS - min(estimate.n_a, estimate.n_b), 1)
    if estimate.standard_error is None:
        return lacking
    if _power(estimate, most, margin, levels) < POWER:
        return None
    low, high = lacking - 1, max(most, lacking)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _power(estimate, middle, margin, levels) < POWER else (low, middle)
    return high


def _power(estimate: Estimate, more: int, margin: float, levels: tuple[float, float]) -> float:
    """The chance of a verdict after so many more runs a side, at the levels of "inside" and of "outside"."""
    n_a, n_b = estimate.n_a, estimate.n_b
    shrunk = math.sqrt((1 / (n_a + more) + 1 / (n_b + more)) / (1 / n_a + 1 / n_b))
    error = (estimate.standard_error or 0.0) * shrunk
    df = (estimate.df or 0.0) + more * (1 if estimate.paired else 2)
    below, above = ((margin + side * estimate.log_ratio) / error for side in (-1, 1))
    if min(below, above) < 0:
        return tail(beyond(levels[1], df) + min(below, above), df)
    needed = beyond(levels[0], df)
    return max(0.0, tail(needed - below, df) + tail(needed - above, df) - 1)
