"""Two sides of runs, one verdict: REGRESSED, SAME, IMPROVED or UNDECIDED, by an interval against a margin.

Of each primary figure the log ratio b/a has an interval whose either bound errs with chance `alpha` (5 %):
REGRESSED  the whole interval is worse than the margin: worse by more than is allowed, not just worse;
IMPROVED   the same on the other side;
SAME       the whole interval lies within the margins: shown to be alike, not merely "no difference found". A change
           that is sure but within the margin is SAME: the margin says what matters;
UNDECIDED  everything else, with the number of runs that would decide it.
Of several figures one is worse by luck sooner than of one, so claims of REGRESSED and of IMPROVED are adjusted within
the family (Holm); SAME has to hold of each and needs no adjustment. Where one figure got better and one worse, the
whole is REGRESSED and both are named: what gains throughput by losing latency has to be looked at.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from nilometer.core.run import Run

from .family import TABLE, Family, Judged
from .looks import Looks
from .statistics import LEAST_RUNS, Estimate, Reason, holm, more_runs, paired, unfit, welch

Outcome = Literal["REGRESSED", "SAME", "IMPROVED", "UNDECIDED"]
Sides = Mapping[str, Sequence[float | None]]
"""Name of a figure -> its value in each run of a side, in the order of the runs."""

SHOWN_LEVEL = 0.95
STOPPED_LEVEL = 0.96
"""Nominal level of the interval shown after looks. Who stops as soon as there is a verdict stops where the spread looks
small: a nominal 95 % then holds the truth in 93 of 100 (simulated, 15 % slower), 96 % in 94 to 96."""


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """How two sides are held against each other; fixed before the runs.

    `interleaved`: the i-th run of each side are a pair, made one after the other. `looks` where each further pair is
    looked at; without, this is the one look.
    """

    family: Family = TABLE
    alpha: float = 0.05
    interleaved: bool = False
    looks: Looks | None = None

    @property
    def primaries(self) -> int:
        """How many figures are judged, which the claims are adjusted for."""
        return max(1, sum(row.primary for row in self.family))

    @property
    def shown_level(self) -> float:
        """The level of the interval that is shown, so that it holds the truth in 95 of 100."""
        return SHOWN_LEVEL if self.looks is None else STOPPED_LEVEL

    def level(self, alpha: float, runs: int) -> float:
        """What of a rate `alpha` may be spent on this look, after so many runs a side; 0: nothing may be claimed."""
        if runs < LEAST_RUNS:
            return 0.0
        return alpha if self.looks is None else self.looks.level(alpha, runs)


class MetricVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """One figure: the ratio b/a of its means (of logs), with its 95 % interval.

    `held` is the interval that was held against the margin: narrower than `ci` where there is one look (each bound errs
    with 5 %), wider at an early one. `p_adjusted` is of the claim in the direction of the estimate that it goes beyond
    the margin; at most `alpha` where the claim is made. Of a figure that is only shown `verdict`, `margin`, `held` and
    `p_adjusted` are None; `reason` says why a ratio is None.
    """

    metric: str
    ratio: float | None = None
    ci: tuple[float, float] | None = None
    margin: float | None = None
    verdict: Outcome | None = None
    p_adjusted: float | None = None
    held: tuple[float, float] | None = None
    reason: Reason | None = None
    more_runs_needed: int | None = None


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it. `more_runs_needed` is a side: 0 with a verdict, None where no number in reason decides.

    `left_out` are runs that are not admissible, or were cut off: their figures are no figures. In pairs their partner
    goes with them.
    """

    verdict: Outcome
    metrics: list[MetricVerdict]
    runs_a: list[str]
    runs_b: list[str]
    more_runs_needed: int | None
    left_out: list[str] = []
    paired: bool = False


def judge(runs_a: Sequence[Run], runs_b: Sequence[Run], rule: Rule) -> Comparison:
    """Hold the runs of two sides against each other; of interleaved ones the i-th of each are a pair.

    An unpaired run at the end (a verify that was cut) is left aside. Whether the conditions are alike is not asked
    here: see `condition`.
    """
    kept_a, kept_b = _admissible(runs_a, runs_b, interleaved=rule.interleaved)
    out = [run.id for run in (*runs_a, *runs_b) if not _counts(run)]
    a, b = ({row.name: [row.of(run.summary) for run in kept] for row in rule.family} for kept in (kept_a, kept_b))
    verdict, metrics, more = judge_values(a, b, rule)
    return Comparison(
        verdict=verdict,
        metrics=metrics,
        runs_a=[run.id for run in kept_a],
        runs_b=[run.id for run in kept_b],
        more_runs_needed=more,
        left_out=out,
        paired=rule.interleaved,
    )


def judge_values(a: Sides, b: Sides, rule: Rule) -> tuple[Outcome, list[MetricVerdict], int | None]:
    """The same from bare values: the verdict, each figure of the family in its order, and the runs still needed.

    A primary figure that no run of either side has (TTFT of whole answers) leaves the family; one that only some have
    stays in it, UNDECIDED: neither a missing value nor one without a log (0 tokens/s) is ever a verdict.
    """
    compared = [_compared(row, a[row.name], b[row.name], rule) for row in rule.family]
    judged = _judged([one for one in compared if one.row.primary and one.estimate is not None], rule)
    metrics = [judged.get(one.row.name) or _shown(one, rule) for one in compared]
    verdict = _overall([one.verdict for one in metrics if one.verdict is not None])
    return verdict, metrics, _more(verdict, metrics)


_MOST_LOG = 700.0
"""A bound beyond it is no number any more: few runs that have nothing in common."""


class _Compared(NamedTuple):
    """A figure and, unless a reason forbids it, its estimate: turned so that worse is up, whichever way is better."""

    row: Judged
    estimate: Estimate | None
    reason: Reason | None = None
    lacking: int | None = None
    """Runs a side that are asked for where a side has none."""
    absent: bool = False
    """There are runs, and none of either side has it."""

    def ratio(self, log_ratio: float) -> float:
        return math.exp(min(_MOST_LOG, _up(self.row) * log_ratio))

    def ratios(self, bounds: tuple[float, float] | None) -> tuple[float, float] | None:
        if bounds is None:
            return None
        low, high = sorted(map(self.ratio, bounds))
        return low, high


def _up(row: Judged) -> int:
    """What turns a log so that worse is up."""
    return 1 if row.better == "lower" else -1


def _compared(row: Judged, a: Sequence[float | None], b: Sequence[float | None], rule: Rule) -> _Compared:
    if not a or not b:
        return _Compared(row, None, "not_measured", lacking=LEAST_RUNS)
    reason = unfit([*a, *b])
    if reason is not None:
        return _Compared(row, None, reason, absent=all(value is None for value in (*a, *b)))
    of_a, of_b = ([_up(row) * math.log(value) for value in side if value is not None] for side in (a, b))
    if rule.interleaved:
        return _Compared(row, paired([y - x for x, y in zip(of_a, of_b, strict=True)]))
    return _Compared(row, welch(of_a, of_b))


def _judged(family: Sequence[_Compared], rule: Rule) -> dict[str, MetricVerdict]:
    """The figures that have an estimate and belong to the family, each with its verdict."""
    estimates = [(one, one.estimate) for one in family if one.estimate is not None]
    if not estimates:
        return {}
    runs = min(min(estimate.n_a, estimate.n_b) for _, estimate in estimates)
    level = rule.level(rule.alpha, runs)
    if not level:
        return {one.row.name: _verdict(one, estimate, rule, 0.0, None) for one, estimate in estimates}
    worse, better = (
        holm([1.0 if p is None else p for p in of_all], lambda among: rule.alpha / rule.level(rule.alpha / among, runs))
        for of_all in (
            [estimate.p_above(one.row.log_margin) for one, estimate in estimates],
            [estimate.p_below(-one.row.log_margin) for one, estimate in estimates],
        )
    )
    return {
        one.row.name: _verdict(one, estimate, rule, level, p_worse if estimate.log_ratio > 0 else p_better)
        for (one, estimate), p_worse, p_better in zip(estimates, worse, better, strict=True)
    }


def _verdict(one: _Compared, estimate: Estimate, rule: Rule, level: float, p: float | None) -> MetricVerdict:
    margin = one.row.log_margin
    held = estimate.bounds(level) if level else None
    outcome: Outcome = "UNDECIDED"
    if held is not None and p is not None:
        if p <= rule.alpha:
            outcome = "REGRESSED" if estimate.log_ratio > 0 else "IMPROVED"
        elif -margin < held[0] and held[1] < margin:
            outcome = "SAME"
    return MetricVerdict(
        metric=one.row.name,
        ratio=one.ratio(estimate.log_ratio),
        ci=one.ratios(estimate.interval(rule.shown_level)),
        margin=one.row.margin,
        verdict=outcome,
        p_adjusted=p,
        held=one.ratios(held),
        more_runs_needed=_needed(estimate, margin, rule) if outcome == "UNDECIDED" else 0,
    )


def _needed(estimate: Estimate, margin: float, rule: Rule) -> int | None:
    return more_runs(estimate, margin, rule.alpha, rule.alpha / rule.primaries)


def _shown(one: _Compared, rule: Rule) -> MetricVerdict:
    """A figure without a test: one that is only shown, or one that has no estimate."""
    lacks = one.row.primary and not one.absent
    if one.estimate is None:
        verdict: Outcome | None = "UNDECIDED" if lacks else None
        margin = one.row.margin if lacks else None
        return MetricVerdict(
            metric=one.row.name, margin=margin, verdict=verdict, reason=one.reason, more_runs_needed=one.lacking
        )
    ci = one.ratios(one.estimate.interval(rule.shown_level))
    return MetricVerdict(metric=one.row.name, ratio=one.ratio(one.estimate.log_ratio), ci=ci)


def _overall(outcomes: Sequence[Outcome]) -> Outcome:
    """The first that one of them has; with no outcome at all nothing is decided."""
    order: tuple[Outcome, ...] = ("REGRESSED", "UNDECIDED", "IMPROVED", "SAME")
    return next((outcome for outcome in order if outcome in outcomes), "UNDECIDED")


def _more(verdict: Outcome, metrics: Sequence[MetricVerdict]) -> int | None:
    """What the neediest open figure needs."""
    if verdict != "UNDECIDED":
        return 0
    needs = [one.more_runs_needed for one in metrics if one.verdict == "UNDECIDED"]
    known = [need for need in needs if need is not None]
    return max(known) if known and len(known) == len(needs) else None


def _admissible(a: Sequence[Run], b: Sequence[Run], *, interleaved: bool) -> tuple[list[Run], list[Run]]:
    """The runs of either side whose figures count; of pairs those of which both do."""
    if interleaved:
        pairs = [pair for pair in zip(a, b, strict=False) if _counts(pair[0]) and _counts(pair[1])]
        return [one for one, _ in pairs], [other for _, other in pairs]
    return [run for run in a if _counts(run)], [run for run in b if _counts(run)]


def _counts(run: Run) -> bool:
    return run.verdict != "inadmissible" and not run.phases.interrupted
