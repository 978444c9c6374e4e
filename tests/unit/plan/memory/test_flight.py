"""The number of requests in flight that a pool holds, against drawn states of a service (a seeded Monte Carlo)."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nilometer.core.errors import SpecError
from nilometer.plan.memory.flight import Demand, demand, fit

Pair = tuple[float, float]


def lognormal(count: int, median: float, sigma: float, out_median: float, out_sigma: float) -> list[Pair]:
    rng = random.Random(7)
    return [
        (
            max(1, round(rng.lognormvariate(math.log(median), sigma))),
            max(1, round(rng.lognormvariate(math.log(out_median), out_sigma))),
        )
        for _ in range(count)
    ]


def held(pairs: list[Pair], requests: int, need: Callable[[float], float], draws: int, seed: int = 3) -> list[float]:
    """What `requests` in flight hold at `draws` random moments: each met in proportion to its output's length."""
    rng = random.Random(seed)
    weights = [max(out, 1.0) for _, out in pairs]
    sums = []
    for _ in range(draws):
        met = rng.choices(pairs, weights, k=requests)
        sums.append(sum(need(given + out * rng.random()) for given, out in met))
    return sums


def share_within(sums: list[float], capacity: float) -> float:
    return sum(one <= capacity for one in sums) / len(sums)


def as_is(tokens: float) -> float:
    return tokens


def blocks(tokens: float) -> float:
    return math.ceil(tokens / 16)


@pytest.mark.parametrize(
    ("pairs", "capacity", "need"),
    [
        (lognormal(400, 800, 0.8, 200, 0.8), 40_000, as_is),
        (lognormal(400, 500, 1.2, 150, 1.0), 60_000, as_is),
        (lognormal(400, 800, 0.8, 200, 0.8), 2_500, blocks),
        (lognormal(400, 100, 0.5, 900, 0.6), 12_000, as_is),
    ],
)
def test_the_pool_holds_that_many_for_the_promised_share_of_the_time(
    pairs: list[Pair], capacity: float, need: Callable[[float], float]
) -> None:
    found = fit(capacity, demand(pairs, need), 0.95)
    n = found.by_quantile
    assert found.by_worst_case < n < found.by_mean
    assert share_within(held(pairs, n, need, 3_000), capacity) == pytest.approx(0.95, abs=0.03)
    more = max(n + 1, round(n * 1.1))
    assert share_within(held(pairs, more, need, 3_000), capacity) < 0.95


def test_the_moments_are_those_of_the_drawn() -> None:
    pairs = lognormal(300, 600, 1.0, 200, 1.0)
    one = demand(pairs, as_is)
    drawn = held(pairs, 1, as_is, 40_000)
    mean = sum(drawn) / len(drawn)
    assert one.mean == pytest.approx(mean, rel=0.02)
    spread = math.sqrt(sum((x - mean) ** 2 for x in drawn) / len(drawn))
    assert one.deviation == pytest.approx(spread, rel=0.04)


def test_by_hand_requests_of_one_length_hold_half_their_output() -> None:
    """100 in, 200 out: 200 on average, spread over 100..300 evenly (sd 57.7 but for the steps), the worst 300."""
    one = demand([(100, 200)], as_is)
    assert one.mean == pytest.approx(200)
    assert one.deviation == pytest.approx(200 / math.sqrt(12), rel=0.01)
    assert one.skew == pytest.approx(0, abs=1e-9)
    assert one.largest == 300
    assert fit(30_000, one, 0.5).by_quantile == 150
    assert fit(30_000, one).by_worst_case == 100


def test_long_outputs_are_met_more_often() -> None:
    """(0, 10) and (0, 90): met 1 : 9, so 0.1 x 5 + 0.9 x 45."""
    assert demand([(0, 10), (0, 90)], as_is).mean == pytest.approx(41)


def test_many_pairs_are_thinned_without_a_shift() -> None:
    few, many = lognormal(2_000, 600, 0.9, 200, 0.7), lognormal(30_000, 600, 0.9, 200, 0.7)
    assert demand(many, as_is).mean == pytest.approx(demand(few, as_is).mean, rel=0.06)


def test_nothing_to_hold_and_no_room() -> None:
    none = Demand(mean=0, deviation=0, skew=0, largest=0)
    assert fit(100, none).by_quantile == 0
    one = demand([(100, 200)], as_is)
    assert fit(0, one).by_quantile == 0
    assert fit(299, one).by_worst_case == 0


@pytest.mark.parametrize("pairs", [[], [(-1.0, 2.0)]])
def test_no_lengths_are_refused(pairs: list[Pair]) -> None:
    with pytest.raises(SpecError) as refused:
        demand(pairs, as_is)
    assert refused.value.slug == "lengths_unusable"


@given(
    mean=st.floats(1, 1e5),
    deviation=st.floats(0, 1e5),
    skew=st.floats(0, 5),
    capacity=st.floats(0, 1e9),
    share=st.sampled_from([0.5, 0.8, 0.95, 0.99]),
)
def test_the_greatest_number_is_the_greatest(
    mean: float, deviation: float, skew: float, capacity: float, share: float
) -> None:
    one = Demand(mean=mean, deviation=deviation, skew=skew, largest=mean + 10 * deviation)
    found = fit(capacity, one, share)
    n = found.by_quantile
    assert one.quantile_of_sum(n, share) <= capacity * (1 + 1e-9) or n in {found.by_worst_case, 0}
    assert one.quantile_of_sum(n + 1, share) > capacity * (1 - 1e-9)


@given(st.floats(1, 1e6))
def test_a_higher_share_never_holds_more(capacity: float) -> None:
    one = demand([(100, 200), (1000, 50)], as_is)
    counts = [fit(capacity, one, share).by_quantile for share in (0.5, 0.8, 0.95, 0.99)]
    assert counts == sorted(counts, reverse=True)
