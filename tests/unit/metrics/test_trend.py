from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest

from nilometer.metrics.quantiles import Floats
from nilometer.metrics.trend import drift, kendall_p, mser5, theil_sen, warmup


def score(order: tuple[int, ...]) -> int:
    n = len(order)
    return sum((order[j] > order[i]) - (order[j] < order[i]) for i in range(n) for j in range(i + 1, n))


@pytest.mark.parametrize("n", [2, 3, 5, 7])
def test_kendall_p_is_that_of_enumerating_all_orders(n: int) -> None:
    scores = [score(order) for order in permutations(range(n))]
    for order in [tuple(range(n)), tuple(reversed(range(n))), (1, 0, *range(2, n)), (*range(1, n), 0)]:
        expected = sum(abs(s) >= abs(score(order)) for s in scores) / math.factorial(n)
        assert kendall_p(np.array(order, dtype=np.float64)) == pytest.approx(expected, rel=1e-12)


def test_kendall_p_of_ten_values_is_that_of_the_printed_table() -> None:
    """One-sided P(S >= 21) = .036, P(S >= 23) = .023, P(S >= 33) = .0011 for n = 10 (Kendall 1970, table 1)."""
    rising = list(range(10))
    for moves, score_left, one_sided in ((12, 21, 0.036), (11, 23, 0.023), (6, 33, 0.0011)):
        order = shuffled_by(rising, moves)
        assert score(tuple(order)) == score_left
        assert kendall_p(np.array(order, dtype=np.float64)) / 2 == pytest.approx(one_sided, rel=0.03)


def shuffled_by(order: list[int], inversions: int) -> list[int]:
    """The order with so many neighbours swapped, each swap making one more inversion."""
    made = list(order)
    while inversions:
        for i in range(len(made) - 1):
            if inversions and made[i] < made[i + 1]:
                made[i], made[i + 1] = made[i + 1], made[i]
                inversions -= 1
    return made


def test_kendall_p_with_ties_is_normal_with_their_variance() -> None:
    """n = 10, one pair tied, S = 44: var = (10*9*25 - 2*1*9) / 18 = 124, z = 43 / sqrt(124)."""
    values = np.array([0, 1, 2, 3, 4, 5, 6, 7, 8, 8], dtype=np.float64)
    assert kendall_p(values) == pytest.approx(math.erfc(43 / math.sqrt(248)), rel=1e-12)
    assert kendall_p(np.ones(10)) == 1.0


def test_kendall_p_of_many_values_agrees_with_the_exact_one() -> None:
    values = np.random.default_rng(3).normal(size=40) + np.arange(40) * 0.02
    longer = np.append(values, values.mean())
    assert kendall_p(longer) == pytest.approx(kendall_p(values), abs=0.02)


def test_theil_sen_does_not_heed_an_outlier() -> None:
    values = np.linspace(0.0, 18.0, 10)
    values[4] = 1_000.0
    assert theil_sen(values) == pytest.approx(2.0)


def test_drift_is_measured_against_the_median() -> None:
    made = drift(np.linspace(100.0, 150.0, 1_000))
    assert made.share == pytest.approx(50 / 125, rel=0.01)
    assert made.p == pytest.approx(2 / math.factorial(10))
    assert made.is_real()


def test_a_small_drift_is_real_but_does_not_matter() -> None:
    made = drift(np.linspace(100.0, 104.0, 1_000))
    assert made.p < 0.001
    assert not made.is_real()


def test_a_series_that_stands_still_does_not_drift() -> None:
    assert drift(np.full(60, 200.0)) == (0.0, 1.0)
    assert drift(np.zeros(60)) == (0.0, 1.0)


def test_too_few_values_make_no_blocks() -> None:
    with pytest.raises(ValueError, match="blocks"):
        drift(np.ones(9))


def noise(random: np.random.Generator, n: int, phi: float) -> Floats:
    """AR(1) around 100 with a coefficient of variation of 25 %."""
    shocks = random.normal(size=n) * math.sqrt(1 - phi**2)
    series = np.empty(n)
    series[0] = random.normal()
    for i in range(1, n):
        series[i] = phi * series[i - 1] + shocks[i]
    return 100 + 25 * series


@pytest.mark.parametrize(("n", "phi", "p_limit"), [(200, 0.0, 0.05), (1_000, 0.0, 0.05), (1_000, 0.7, 0.025)])
def test_drift_cries_wolf_in_less_than_5_percent(n: int, phi: float, p_limit: float) -> None:
    """With two series looked at each has half of the 5 %, which also pays for values that hang together."""
    random = np.random.default_rng(20262)
    alarms = sum(drift(noise(random, n, phi)).is_real(p_limit) for _ in range(600))
    assert alarms < 0.05 * 600


def test_drift_of_half_is_found() -> None:
    random = np.random.default_rng(20261)
    trend = 1 + 0.5 * np.arange(1_000) / 1_000
    assert sum(drift(noise(random, 1_000, 0.7) * trend).is_real() for _ in range(100)) >= 95


def brute_mser5(values: Floats) -> dict[int, float]:
    """The statistic for each cut, straight from its definition."""
    means = [sum(values[i : i + 5]) / 5 for i in range(0, len(values) // 5 * 5, 5)]
    made = {}
    for cut in range(len(means) - 5 + 1):
        rest = means[cut:]
        centre = sum(rest) / len(rest)
        made[cut] = sum((value - centre) ** 2 for value in rest) / len(rest) ** 2
    return made


@pytest.mark.parametrize("seed", range(20))
def test_mser5_is_the_least_of_its_statistic(seed: int) -> None:
    random = np.random.default_rng(seed)
    n = int(random.integers(50, 400))
    values = noise(random, n, 0.5) + 80 * np.exp(-np.arange(n) / 20)
    statistic = brute_mser5(values)
    assert statistic[mser5(values) // 5] == pytest.approx(min(statistic.values()), rel=1e-9)


def test_mser5_finds_a_step() -> None:
    random = np.random.default_rng(5)
    values = noise(random, 1_000, 0.0) + np.where(np.arange(1_000) < 60, 100.0, 0.0)
    assert mser5(values) == 60


def test_mser5_of_a_constant_or_a_short_series_cuts_nothing() -> None:
    assert mser5(np.full(500, 0.2)) == 0
    assert mser5(np.arange(49, dtype=np.float64)) == 0


def test_a_warmup_is_a_head_that_differs() -> None:
    random = np.random.default_rng(6)
    slow_head = np.where(np.arange(400) < 40, 2.0, 1.0)
    assert 40 <= warmup(noise(random, 400, 0.0) * slow_head) <= 60
    assert warmup(100 + random.normal(size=400) * 0.5) == 0, "half a percent of noise is no warm-up"


def test_noise_alone_is_seldom_cut() -> None:
    random = np.random.default_rng(7)
    assert sum(warmup(noise(random, 200, 0.0)) > 0 for _ in range(200)) < 0.1 * 200
