from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest

from nilometer.compare.family import TABLE, parse
from nilometer.compare.looks import Looks
from nilometer.compare.verdict import Comparison, MetricVerdict, Outcome, Rule, judge, judge_values

from .made import run, summary

APART = Rule()
PAIRS = Rule(interleaved=True)
NOISE = [0.0, 0.004, -0.003, 0.002, -0.004, 0.001, 0.003, -0.002, 0.0, 0.001]
"""Of a quiet machine: the logs of runs differ by 0.3 %."""


def compared(
    rule: Rule = APART, n: int = 5, *, ttft: float = 1.0, tpot: float = 1.0, tokens: float = 1.0, noise: float = 1.0
) -> Comparison:
    """B against A, its primary figures times these."""
    factors = [math.exp(noise * away) for away in NOISE[:n]]
    a = [run(f"a{i}", summary(400 * f, 20 * f, 600 / f)) for i, f in enumerate(factors)]
    b = [
        run(f"b{i}", summary(400 * ttft * f, 20 * tpot * f, 600 * tokens / f)) for i, f in enumerate(reversed(factors))
    ]
    return judge(a, b, rule)


def of(comparison: Comparison, metric: str) -> MetricVerdict:
    return next(one for one in comparison.metrics if one.metric == metric)


def outcomes(comparison: Comparison) -> list[Outcome | None]:
    return [one.verdict for one in comparison.metrics[:3]]


def test_the_guides_example_is_a_regression() -> None:
    """TPOT from 20 to 22 ms in the new version, all else alike: 10 % where 5 % are allowed."""
    found = compared(tpot=1.1)
    assert found.verdict == "REGRESSED"
    assert outcomes(found) == ["SAME", "REGRESSED", "SAME"]
    tpot = of(found, "tpot_p50")
    assert tpot.ratio == pytest.approx(1.1)
    assert tpot.margin == 0.05
    assert tpot.ci is not None
    assert 1.05 < tpot.ci[0] < 1.1 < tpot.ci[1] < 1.12
    assert tpot.p_adjusted is not None
    assert tpot.p_adjusted < 0.001
    assert found.more_runs_needed == 0
    assert (found.runs_a, found.runs_b) == ([f"a{i}" for i in range(5)], [f"b{i}" for i in range(5)])


@pytest.mark.parametrize(
    ("factors", "verdict"),
    [
        ({}, "SAME"),
        ({"tpot": 1.02}, "SAME"),  # surely slower, by less than matters
        ({"tpot": 0.9}, "IMPROVED"),
        ({"tokens": 1.2, "tpot": 0.8}, "IMPROVED"),
        ({"tokens": 0.9}, "REGRESSED"),
        ({"tokens": 1.3, "ttft": 1.5}, "REGRESSED"),  # one better, one worse
        ({"tpot": 1.05}, "UNDECIDED"),  # on the border
        ({"tpot": 1.05, "ttft": 1.3}, "REGRESSED"),  # one is enough
        ({"tpot": 1.05, "ttft": 0.7}, "UNDECIDED"),  # better here, perhaps worse there
    ],
)
@pytest.mark.parametrize("rule", [APART, PAIRS], ids=["apart", "pairs"])
def test_the_verdict_over_the_family(factors: dict[str, float], verdict: Outcome, rule: Rule) -> None:
    assert compared(rule, 5, **factors).verdict == verdict


def test_both_are_named_where_one_got_better_and_one_worse() -> None:
    assert outcomes(compared(tokens=1.3, ttft=1.5)) == ["REGRESSED", "SAME", "IMPROVED"]


def test_a_change_within_the_noise_of_the_runs_is_undecided_and_says_how_many_more() -> None:
    found = compared(tpot=1.03, noise=12)
    assert found.verdict == "UNDECIDED"
    tpot = of(found, "tpot_p50")
    assert tpot.more_runs_needed is not None
    assert tpot.more_runs_needed > 10
    assert found.more_runs_needed is None or found.more_runs_needed >= tpot.more_runs_needed


@pytest.mark.parametrize(("n", "more"), [(1, 2), (2, 1)])
@pytest.mark.parametrize("rule", [APART, PAIRS], ids=["apart", "pairs"])
def test_fewer_than_three_runs_a_side_never_give_a_verdict(n: int, more: int, rule: Rule) -> None:
    found = compared(rule, n=n, tpot=3.0)
    assert found.verdict == "UNDECIDED"
    assert found.more_runs_needed == more
    assert of(found, "tpot_p50").ratio == pytest.approx(3.0, rel=0.02)
    assert (of(found, "tpot_p50").p_adjusted, of(found, "tpot_p50").held) == (None, None)


def test_three_runs_a_side_are_enough_for_a_plain_difference() -> None:
    assert compared(n=3, tpot=1.3).verdict == "REGRESSED"


def test_sides_of_unequal_counts_are_compared_and_one_short_side_asks_for_its_lack() -> None:
    a = [run(f"a{i}", summary(tpot_p50=20 + 0.1 * i)) for i in range(4)]
    b = [run(f"b{i}", summary(tpot_p50=30 + 0.1 * i)) for i in range(9)]
    assert judge(a, b, APART).verdict == "REGRESSED"
    short = judge(a[:1], b, APART)
    assert (short.verdict, short.more_runs_needed) == ("UNDECIDED", 2)


def test_the_other_figures_are_shown_and_not_judged() -> None:
    found = compared()
    shown = [one for one in found.metrics if one.metric not in {"ttft_p95", "tpot_p50", "output_tokens_per_s"}]
    assert [one.metric for one in found.metrics] == [row.name for row in TABLE]
    assert all((one.verdict, one.p_adjusted, one.margin) == (None, None, None) for one in shown)
    assert of(found, "ttft_p50").ratio == pytest.approx(1.0)
    assert of(found, "ttft_p50").ci is not None


def test_a_worse_figure_outside_the_family_is_no_regression() -> None:
    assert judge(
        [run(f"a{i}", summary(ttft_p95=400 + i)) for i in range(4)],
        [run(f"b{i}", summary(ttft_p95=800 + i)) for i in range(4)],
        Rule(family=parse("tpot_p50")),
    ).verdict == "SAME"  # fmt: skip


def test_without_streaming_the_family_is_what_there_is() -> None:
    whole = [run(f"{i}", summary(None, None, 600.0 + i)) for i in range(6)]
    found = judge(whole[:3], whole[3:], APART)
    assert found.verdict == "SAME"
    assert (of(found, "ttft_p95").verdict, of(found, "ttft_p95").reason) == (None, "not_measured")


def test_a_figure_that_one_run_lacks_is_never_a_verdict() -> None:
    a = [run(f"a{i}", summary(tpot_p50=20)) for i in range(4)]
    b = [run(f"b{i}", summary(tpot_p50=None if i == 2 else 20)) for i in range(4)]
    found = judge(a, b, APART)
    tpot = of(found, "tpot_p50")
    assert (tpot.verdict, tpot.reason, tpot.ratio, tpot.ci) == ("UNDECIDED", "not_measured", None, None)
    assert (found.verdict, found.more_runs_needed) == ("UNDECIDED", None)


def test_no_tokens_at_all_have_no_ratio() -> None:
    a = [run(f"a{i}") for i in range(4)]
    dead = [run(f"b{i}", summary(tokens=0.0)) for i in range(4)]
    assert of(judge(a, dead, APART), "output_tokens_per_s").reason == "not_positive"
    assert judge(a, dead, APART).verdict == "UNDECIDED"


def test_nothing_measured_on_either_side_is_undecided() -> None:
    nothing = [run(f"{i}", summary(None, None, None)) for i in range(6)]
    found = judge(nothing[:3], nothing[3:], APART)
    assert (found.verdict, found.more_runs_needed) == ("UNDECIDED", None)


def test_runs_that_are_not_admissible_do_not_count() -> None:
    good = [run(f"a{i}", summary(tpot_p50=20 + 0.01 * i)) for i in range(4)]
    limited = run("limited", summary(tpot_p50=90), verdict="inadmissible")
    found = judge(good, [*good[:2], limited, *good[2:]], APART)
    assert (found.verdict, found.left_out) == ("SAME", ["limited"])
    assert judge(good, [limited], APART).more_runs_needed == 3


def test_the_partner_of_a_run_left_out_goes_with_it() -> None:
    a = [run(f"a{i}", summary(tpot_p50=20.0 + i)) for i in range(5)]
    b = [run(f"b{i}", summary(tpot_p50=20.0 + i)) for i in range(5)]
    b[1] = run("b1", summary(tpot_p50=90.0), verdict="inadmissible")
    found = judge(a, b, PAIRS)
    assert (found.runs_a, found.runs_b) == (["a0", "a2", "a3", "a4"], ["b0", "b2", "b3", "b4"])
    assert found.verdict == "SAME"


def test_the_open_end_of_a_cut_verify_is_left_aside() -> None:
    runs = [run(f"{i}", summary(tpot_p50=20.0 + 0.01 * i)) for i in range(9)]
    found = judge(runs[:5], runs[5:], PAIRS)
    assert (len(found.runs_a), len(found.runs_b), found.left_out) == (4, 4, [])


def test_pairs_see_through_the_weather_that_both_runs_share() -> None:
    weather = [1.0, 1.4, 0.8, 1.2, 0.9, 1.1]
    a = [run(f"a{i}", summary(400 * w, 20 * w, 600 / w)) for i, w in enumerate(weather)]
    b = [
        run(f"b{i}", summary(440 * w * f, 22 * w * f, 600 / w / f))
        for i, (w, f) in enumerate(zip(weather, [1.001, 0.999, 1.002, 0.998, 1.0, 1.0], strict=True))
    ]
    assert of(judge(a, b, PAIRS), "tpot_p50").verdict == "REGRESSED"
    assert of(judge(a, b, APART), "tpot_p50").verdict == "UNDECIDED"


def test_of_many_figures_one_must_be_the_clearer() -> None:
    """TPOT alone at p = 0.03 is a regression; beside two that are alike it is p = 0.09, and none."""
    logs = [0.1, 0.2, 0.3, 0.4]  # mean .25, error .0645: t of .25 - log 1.05 is 3.12, p = .0262 at 3 degrees
    a = {name: [1.0] * 4 for name in ("ttft_p95", "tpot_p50", "output_tokens_per_s")}
    b = {**a, "tpot_p50": [math.exp(x) for x in logs]}
    alone = Rule(family=parse("tpot_p50")[:1], interleaved=True)
    three = Rule(family=TABLE[:3], interleaved=True)
    verdict, (tpot,), _ = judge_values(a, b, alone)
    assert verdict == "REGRESSED"
    assert tpot.p_adjusted == pytest.approx(0.0262, abs=1e-4)
    verdict, metrics, _ = judge_values(a, b, three)
    assert verdict == "UNDECIDED"
    assert metrics[1].p_adjusted == pytest.approx(3 * 0.0262, abs=3e-4)


def test_with_looks_a_claim_early_needs_more_than_one_at_the_end() -> None:
    """The same four pairs as above: p = .026 alone, which the look after four of ten pairs does not let through."""
    pairs = {"tpot_p50": [1.0] * 4}, {"tpot_p50": [math.exp(x) for x in (0.1, 0.2, 0.3, 0.4)]}
    family = parse("tpot_p50")[:1]
    plain = judge_values(*pairs, Rule(family=family, interleaved=True))
    early = judge_values(*pairs, Rule(family=family, interleaved=True, looks=Looks()))
    last = judge_values(*pairs, Rule(family=family, interleaved=True, looks=Looks(most=4)))
    assert [plain[0], early[0], last[0]] == ["REGRESSED", "UNDECIDED", "REGRESSED"]
    level = Looks().level(0.05, 4)
    assert early[1][0].p_adjusted == pytest.approx(0.0262 * 0.05 / level, rel=0.01)
    for (_, (metric,), _), narrow in ((plain, True), (early, False)):
        assert metric.held is not None
        assert metric.ci is not None
        assert (metric.ci[0] < metric.held[0]) == narrow


def test_after_the_last_look_nothing_is_claimed() -> None:
    found = compared(Rule(interleaved=True, looks=Looks(most=4)), n=5, tpot=1.5)
    assert (found.verdict, of(found, "tpot_p50").p_adjusted) == ("UNDECIDED", None)


def test_runs_without_any_spread_are_judged_and_not_divided_by_zero() -> None:
    assert compared(noise=0).verdict == "SAME"
    assert compared(noise=0, tpot=1.1).verdict == "REGRESSED"
    assert compared(noise=0, tpot=1.0501).verdict == "UNDECIDED", "a tick of a clock beyond the margin is no evidence"


def drawn(rng: random.Random, n: int, effect: float, spread: float = 0.03) -> Sequence[float]:
    return [math.exp(rng.gauss(effect, spread)) for _ in range(n)]


@pytest.mark.parametrize("rule", [APART, PAIRS], ids=["apart", "pairs"])
def test_at_the_margin_a_regression_is_claimed_as_often_as_was_allowed(rule: Rule) -> None:
    """The hardest case: B is worse by just the margin; and 95 % intervals hold the truth in 95 of 100."""
    rng, n = random.Random(11), 1500
    family = parse("tpot_p50")[:1]
    rule = Rule(family=family, interleaved=rule.interleaved)
    claimed = held = 0
    for _ in range(n):
        a, b = drawn(rng, 5, 0.0), drawn(rng, 5, math.log(1.05))
        verdict, (tpot,), _ = judge_values({"tpot_p50": a}, {"tpot_p50": b}, rule)
        claimed += verdict == "REGRESSED"
        held += tpot.ci is not None and tpot.ci[0] <= 1.05 <= tpot.ci[1]
    assert claimed / n == pytest.approx(0.05, abs=0.02)
    assert held / n == pytest.approx(0.95, abs=0.02)


def test_runs_without_anything_in_common_have_bounds_that_are_numbers() -> None:
    """Of values 220 powers of ten apart the interval would end beyond what a number can be."""
    rule = Rule(family=parse("tpot_p50")[:1])
    _, (tpot,), _ = judge_values({"tpot_p50": [1.0, 1.0, 5e215, 2e220]}, {"tpot_p50": [10.0] * 4}, rule)
    assert tpot.ci is not None
    assert all(math.isfinite(bound) for bound in tpot.ci)
    _, (other,), _ = judge_values({"tpot_p50": [10.0] * 4}, {"tpot_p50": [1.0, 1.0, 5e215, 2e220]}, rule)
    assert other.ci is not None
    assert all(math.isfinite(bound) for bound in other.ci)
