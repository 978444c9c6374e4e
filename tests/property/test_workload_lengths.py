from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.workload import lengths

TOKENS = st.integers(1, 50_000)
SEEDS = st.integers(0, 1 << 32)


@settings(deadline=None)
@given(TOKENS, TOKENS, SEEDS)
def test_uniform_samples_lie_within_bounds_and_so_does_the_mean(a: int, b: int, seed: int) -> None:
    low, high = sorted((a, b))
    uniform = lengths.parse(f"uniform:{low},{high}")
    random = Random(seed)
    assert all(low <= uniform.sample(random) <= high for _ in range(20))
    assert low <= uniform.mean() <= high
    assert uniform.bounds() == (low, high)


@settings(deadline=None)
@given(TOKENS, st.integers(1, 50_000), SEEDS)
def test_half_of_lognormal_lies_below_its_median_and_nothing_below_one(median: int, more: int, seed: int) -> None:
    lognormal = lengths.parse(f"lognormal:{median},{median + more}")
    random = Random(seed)
    drawn = [lognormal.sample(random) for _ in range(400)]
    assert min(drawn) >= 1
    # 400 draws: 6 standard deviations of a fair coin are 60
    assert sum(tokens <= median for tokens in drawn) >= 140
    assert sum(tokens >= median for tokens in drawn) >= 140
    low, high = lognormal.bounds()
    assert low <= median < high
    assert lognormal.mean() >= median


@settings(deadline=None)
@given(st.lists(TOKENS, min_size=1, max_size=50), SEEDS)
def test_empirical_samples_are_values_and_the_mean_is_theirs(values: list[int], seed: int) -> None:
    empirical = lengths.parse("empirical:f", values=values)
    random = Random(seed)
    assert {empirical.sample(random) for _ in range(30)} <= set(values)
    assert min(values) <= empirical.mean() <= max(values)


@settings(deadline=None)
@given(st.sampled_from(["128", "uniform:5,900", "lognormal:200,900"]), SEEDS)
def test_the_same_seed_draws_the_same_lengths(text: str, seed: int) -> None:
    distribution = lengths.parse(text)
    first, second = Random(seed), Random(seed)
    assert [distribution.sample(first) for _ in range(20)] == [distribution.sample(second) for _ in range(20)]
