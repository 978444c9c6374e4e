from __future__ import annotations

import math
import time
from collections.abc import Sequence

import numpy as np
import pytest

from nilometer.compare import change_points
from nilometer.compare.change_points import LEAST_SIDE, expected, history, steps
from nilometer.metrics.quantiles import Floats


def random() -> np.random.Generator:
    return np.random.default_rng(12)


def drawn(rng: np.random.Generator, levels: Sequence[float], spread: float = 0.04) -> list[float]:
    """Values around these levels that vary by 4 %."""
    return [level * float(rng.normal(1.0, spread)) for level in levels]


def share(rng: np.random.Generator, levels: Sequence[float], n: int, where: range | None = None) -> float:
    """Of n drawn histories, how many show a step (in that place)."""
    found = (steps(drawn(rng, levels), rng) for _ in range(n))
    return sum(any(where is None or step.at in where for step in all_of) for all_of in found) / n


def test_a_plain_step_is_found_where_it_is_with_its_size() -> None:
    values = [20.0, 20.2, 19.9, 20.1, 20.0, 19.8, 20.1, 20.2, 22.1, 21.9, 22.0, 22.2, 22.0]
    (step,) = steps(values, random())
    assert step.at == 8
    assert step.ratio == pytest.approx(1.1, rel=0.005)
    assert 0 < step.p <= change_points.STEP_P
    assert history(values, random()).steps == (step,)


def test_two_steps_up_have_two_places_and_two_sizes() -> None:
    found = steps(drawn(random(), [100.0] * 15 + [130.0] * 15 + [104.0] * 15, 0.01), random())
    assert [step.at for step in found] == [15, 30]
    assert [step.ratio for step in found] == pytest.approx([1.3, 0.8], rel=0.01)


def test_one_bad_version_that_was_mended_is_two_steps() -> None:
    """Against all that follows neither of them shows: 20, 10 and 20 versions of which the ten are 15 % slower."""
    rng = random()
    levels = [1.0] * 20 + [1.15] * 10 + [1.0] * 20
    assert sum(len(steps(drawn(rng, levels), rng)) == 2 for _ in range(20)) >= 16


def test_the_same_generator_gives_the_same_answer() -> None:
    values = drawn(random(), [1.0] * 20 + [1.1] * 8)
    assert steps(values, random()) == steps(values, random())


@pytest.mark.parametrize("n", [12, 40])
def test_histories_of_one_level_show_a_step_in_two_of_a_hundred_at_most(n: int) -> None:
    """At most 1.9 % by construction; of 400 drawn no more than three standard deviations above it."""
    assert share(random(), [1.0] * n, 400) <= 0.019 + 3 * math.sqrt(0.019 / 400)


@pytest.mark.parametrize(("level", "least"), [(1.10, 0.85), (1.15, 0.98)])
def test_steps_of_ten_and_fifteen_per_cent_are_found_with_five_values_behind_them(level: float, least: float) -> None:
    n = 150
    found = share(random(), [1.0] * 20 + [level] * 5, n)
    assert found >= least - 2 * math.sqrt(least * (1 - least) / n)


def test_too_few_values_of_a_new_level_are_none_yet() -> None:
    values = drawn(random(), [1.0] * 20 + [2.0] * (LEAST_SIDE - 1), 0.01)
    assert all(step.at < 20 for step in steps(values, random()))
    assert [step.at for step in steps([*values, 2.0], random())] == [20]


def test_values_without_any_spread_have_no_step_and_two_of_them_have_one() -> None:
    assert steps([5.0] * 40, random()) == []
    (step,) = steps([5.0] * 20 + [6.0] * 20, random())
    assert step.at == 20
    assert step.ratio == pytest.approx(1.2)


def test_five_hundred_points_take_no_time() -> None:
    rng = random()
    calm = drawn(rng, [1.0] * 500)
    started = time.perf_counter()
    assert steps(calm, rng) == []
    assert time.perf_counter() - started < 1.0, "0.02 s on a quiet machine"


def energy(a: Floats, b: Floats) -> float:
    """Of two samples, by its definition: 2 E|X - Y| - E|X - X'| - E|Y - Y'|, times what makes splits comparable."""
    cross, of_a, of_b = (float(np.abs(x[:, None] - y).mean()) for x, y in ((a, b), (a, a), (b, b)))
    return (2 * cross - of_a - of_b) * len(a) * len(b) / (len(a) + len(b))


@pytest.mark.parametrize("shuffled", [False, True])
def test_the_heights_of_all_splits_are_their_energy_distances(shuffled: bool) -> None:
    rng = random()
    values = np.round(rng.normal(0, 1, 30), 1)  # ties among them
    stretch = change_points._Stretch(values)
    order = rng.permutation(30) if shuffled else stretch.places
    seen = np.sort(values)[order]
    heights = stretch.to_the_end(order[None, :])[0]
    slow = [energy(seen[:k], seen[k:]) for k in range(LEAST_SIDE, 30 - LEAST_SIDE + 1)]
    assert heights == pytest.approx(slow, rel=1e-3, abs=1e-3)
    slow = [energy(seen[:k], seen[k:end]) for k in range(LEAST_SIDE, 31) for end in range(k + LEAST_SIDE, 31)]
    assert stretch.to_a_border(order[None, :])[0] == pytest.approx(slow, rel=1e-3, abs=1e-3)


def test_of_a_long_history_the_heights_are_nearly_those_of_all_thresholds() -> None:
    values = random().normal(0, 1, 300)
    stretch = change_points._Stretch(values)
    heights = stretch.to_the_end(stretch.places[None, :])[0]
    slow = np.array([energy(values[:k], values[k:]) for k in range(LEAST_SIDE, 300 - LEAST_SIDE + 1)])
    assert np.corrcoef(heights, slow)[0, 1] > 0.98


def test_the_next_value_is_expected_by_the_printed_t() -> None:
    """Logs 0, .1, .2: mean .1, sd .1; t of 2 degrees at 99 % is 9.924843, times .1 * sqrt(4/3)."""
    lo, hi = expected([1.0, math.exp(0.1), math.exp(0.2)])
    reach = 9.924843201 * 0.1 * math.sqrt(4 / 3)
    assert (lo, hi) == pytest.approx((math.exp(0.1 - reach), math.exp(0.1 + reach)))


def test_of_few_values_the_newest_is_held_against_the_former() -> None:
    former = [20.0, 20.4, 19.8, 20.2, 20.1]
    slow = history([*former, 24.0], random())
    assert (slow.method, slow.outside, slow.steps) == ("boundary", True, ())
    assert slow.expected == expected(former)
    assert history([*former, 20.3], random()).outside is False
    assert history([20.0] * 8, random()).outside is False


def test_a_value_of_the_same_kind_falls_outside_in_one_of_a_hundred() -> None:
    rng, n = random(), 3000
    outside = sum(bool(history(drawn(rng, [1.0] * 6, 0.05), rng).outside) for _ in range(n))
    assert outside / n == pytest.approx(0.01, abs=0.006)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 1.1, 1.2]])
def test_three_values_are_no_history(values: list[float | None]) -> None:
    assert history(values, random()).method == "too_few"


@pytest.mark.parametrize(("odd", "reason"), [(None, "not_measured"), (0.0, "not_positive"), (math.nan, "not_measured")])
def test_a_value_that_has_no_log_leaves_the_history_unsaid(odd: float | None, reason: str) -> None:
    found = history([1.0] * 20 + [odd], random())
    assert (found.method, found.reason, found.steps) == ("too_few", reason, ())
