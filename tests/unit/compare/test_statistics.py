from __future__ import annotations

import math
import random

import pytest

from nilometer.compare.statistics import (
    LEAST_RUNS,
    MOST_MORE,
    POWER,
    RUN_SPREAD_FLOOR,
    Estimate,
    holm,
    more_runs,
    paired,
    unfit,
    welch,
)


def test_welch_by_hand() -> None:
    """Means 2 and 5; variances 1 and 20/3, over the counts 1/3 and 5/3: their sum is 2, df = 4 / (1/18 + 25/27)."""
    estimate = welch([1.0, 2.0, 3.0], [2.0, 4.0, 6.0, 8.0])
    assert estimate[:3] == pytest.approx((3.0, math.sqrt(2), 4 / (1 / 18 + 25 / 27)))
    assert estimate[3:] == (3, 4, False)


def test_the_interval_reaches_as_far_as_the_printed_t() -> None:
    """Two sides of five with variance 2.5 each: error 1, eight degrees, t of 95 % two-sided 2.306004135."""
    estimate = welch([1, 2, 3, 4, 5], [11, 12, 13, 14, 15])
    assert estimate.interval(0.95) == pytest.approx((10 - 2.306004135, 10 + 2.306004135))
    assert estimate.bounds(0.025) == pytest.approx(estimate.interval(0.95))


def test_pairs_by_hand() -> None:
    """Differences 1, 2, 3, 6: mean 3, variance 14/3, error sqrt(14/12); t = 2 against a shift of 3 - 2 errors."""
    estimate = paired([1.0, 2.0, 3.0, 6.0])
    error = math.sqrt(14 / 12)
    assert estimate[:3] == pytest.approx((3.0, error, 3))
    assert estimate[3:] == (4, 4, True)
    assert estimate.p_above(3 - 2 * error) == pytest.approx(0.069663, abs=1e-6)  # the printed P(T > 2), 3 degrees
    assert estimate.p_above(3.0) == pytest.approx(0.5)
    assert estimate.p_below(3 + 2 * error) == pytest.approx(0.069663, abs=1e-6)
    assert estimate.p_below(3 - 2 * error) == pytest.approx(1 - 0.069663, abs=1e-6)


def test_pairs_do_not_see_what_both_runs_share() -> None:
    weather = [0.0, 0.3, -0.2, 0.5, 0.1]
    noise = [0.001, -0.002, 0.0, 0.002, -0.001]
    a = weather
    b = [shared + 0.1 + own for shared, own in zip(weather, noise, strict=True)]
    together = paired([y - x for x, y in zip(a, b, strict=True)])
    apart = welch(a, b)
    assert together.log_ratio == pytest.approx(apart.log_ratio)
    assert (together.standard_error or 0) * 50 < (apart.standard_error or 0)


def test_one_run_a_side_has_a_ratio_and_no_interval() -> None:
    for estimate in (welch([1.0], [1.5, 1.7]), paired([0.25])):
        assert (estimate.standard_error, estimate.df, estimate.interval(0.95)) == (None, None, None)
        assert (estimate.p_above(0.0), estimate.p_below(0.0)) == (None, None)
    assert welch([1.0], [1.5, 1.7]).log_ratio == pytest.approx(0.6)


def test_no_run_is_no_estimate() -> None:
    with pytest.raises(ValueError, match="no runs"):
        welch([], [1.0])
    with pytest.raises(ValueError, match="no pair"):
        paired([])


def test_runs_that_agree_to_the_last_digit_still_have_a_width() -> None:
    assert welch([3.0] * 4, [3.0] * 4).standard_error == pytest.approx(RUN_SPREAD_FLOOR * math.sqrt(2 / 4))
    assert welch([3.0] * 4, [3.0] * 4).df == pytest.approx(6)
    assert paired([0.0] * 4).standard_error == pytest.approx(RUN_SPREAD_FLOOR * math.sqrt(2 / 4))
    low, high = paired([0.0] * 3).interval(0.95) or (0, 0)
    assert -0.01 < low < 0 < high < 0.01, "narrow, but for no margin in use"


def test_what_has_no_log_is_named() -> None:
    assert unfit([1.0, 2.5]) is None
    assert unfit([]) is None
    assert unfit([1.0, None]) == "not_measured"
    assert unfit([1.0, math.nan]) == "not_measured"
    assert unfit([1.0, 0.0]) == "not_positive"
    assert unfit([-1.0]) == "not_positive"
    assert unfit([math.inf, 1.0]) == "not_positive"
    assert unfit([0.0, None]) == "not_measured"


def test_holm_by_hand() -> None:
    """.01 x 4; .02 x 3; .03 x 2 would be as much; .04 x 1 must not be less than the one before."""
    assert holm([0.03, 0.01, 0.04, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.5, 0.9, 0.001]) == pytest.approx([1.0, 1.0, 0.003])
    assert holm([0.2]) == [0.2]
    assert holm([]) == []


def test_holm_takes_what_each_number_of_hypotheses_costs() -> None:
    assert holm([0.001, 0.002], {1: 4.0, 2: 10.0}.__getitem__) == pytest.approx([0.01, 0.01])


def simulated_power(pairs: int, effect: float, margin: float, spread: float) -> float:
    """Share of verdicts in drawn comparisons, by the interval against the margin."""
    rng, decided, n = random.Random(8), 0, 1500
    for _ in range(n):
        low, high = paired([rng.gauss(effect, spread) for _ in range(pairs)]).bounds(0.05) or (0, 0)
        decided += low > margin or (-margin < low and high < margin)
    return decided / n


@pytest.mark.parametrize(("effect", "margin"), [(0.09, 0.05), (0.0, 0.05), (0.02, 0.05)])
def test_the_number_of_more_runs_is_about_what_gives_the_power(effect: float, margin: float) -> None:
    """Drawn comparisons of that many pairs are decided about as often as was meant."""
    spread = 0.045
    seen = Estimate(effect, spread / math.sqrt(3), 2, 3, 3, paired=True)
    more = more_runs(seen, margin)
    assert more is not None
    assert simulated_power(3 + more, effect, margin, spread) == pytest.approx(POWER, abs=0.08)


def test_more_runs_looks_the_same_from_both_sides() -> None:
    up, down = (Estimate(sign * 0.09, 0.03, 4, 3, 3) for sign in (1, -1))
    assert more_runs(up, 0.05) == more_runs(down, 0.05)


def test_an_estimate_on_the_border_is_decided_by_no_number() -> None:
    assert more_runs(Estimate(0.05, 0.01, 4, 3, 3), 0.05) is None
    assert more_runs(Estimate(0.0501, 0.01, 4, 3, 3), 0.05) is None
    assert more_runs(Estimate(0.2, 5.0, 4, 3, 3), 0.05) is None, f"more than {MOST_MORE}"


def test_with_too_few_runs_the_least_number_is_asked_for() -> None:
    assert more_runs(welch([1.0], [1.0, 1.1]), 0.05) == LEAST_RUNS - 1
    assert more_runs(paired([0.0]), 0.05) == LEAST_RUNS - 1
    assert more_runs(paired([0.5, 0.5001]), 0.05) == LEAST_RUNS - 2


def test_unequal_counts_need_what_the_smaller_lacks() -> None:
    assert more_runs(welch([1.0, 1.001], [1.5] * 9), 0.05) == 1
