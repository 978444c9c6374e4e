from __future__ import annotations

from itertools import islice, pairwise, takewhile
from math import sqrt
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.workload.arrivals import mean_rate_per_s, pacer, plan

ONE_RATE = st.sampled_from(["constant", "poisson", "gamma:0.5", "gamma:2"])
RATES = st.floats(0.01, 50_000)
SEEDS = st.integers(0, 1 << 32)
FEW = st.floats(1, 500).map(lambda rate: round(rate, 3))
LENGTHS = st.floats(0.1, 20).map(lambda length: round(length, 3))
SHAPES = st.one_of(
    st.builds("ramp:{},{},{}s".format, FEW, FEW, LENGTHS),
    st.builds("spike:{},{},{}".format, FEW, FEW, LENGTHS),
    st.lists(st.builds("{}@{}s".format, FEW, LENGTHS), min_size=1, max_size=4).map(
        lambda steps: "steps:" + ",".join(steps)
    ),
)


@settings(deadline=None)
@given(ONE_RATE, RATES, SEEDS)
def test_due_times_never_go_back_and_never_come_before_the_start(kind: str, rate: float, seed: int) -> None:
    due = list(islice(pacer(kind, rate, Random(seed)), 300))
    assert due[0] >= 0
    assert all(earlier <= later for earlier, later in pairwise(due))


@settings(deadline=None)
@given(ONE_RATE, RATES, SEEDS)
def test_as_many_are_due_as_the_rate_says(kind: str, rate: float, seed: int) -> None:
    expected = 400
    until_ns = expected / rate * 1e9
    number = len(list(takewhile(lambda due_ns: due_ns < until_ns, islice(pacer(kind, rate, Random(seed)), 3000))))
    # seven standard deviations of a renewal count (CV sqrt(n)); a constant rate is off by one at most
    spread = {"constant": 1 / (7 * sqrt(expected)), "poisson": 1.0, "gamma:0.5": 0.5, "gamma:2": 2.0}[kind]
    assert abs(number - expected) <= 7 * spread * sqrt(expected) + 3


@settings(deadline=None, max_examples=60)
@given(SHAPES, SEEDS, st.sampled_from([0.0, 5.0]))
def test_a_shape_brings_as_many_as_the_area_under_its_rate(text: str, seed: int, warmup_s: float) -> None:
    stretches = plan(text)
    assert stretches is not None
    expected = mean_rate_per_s(text, None, 10) * 10 + stretches[0].from_per_s * warmup_s
    due = list(takewhile(lambda at: at < (10 + warmup_s) * 1e9, pacer(text, None, Random(seed), warmup_s=warmup_s)))
    assert abs(len(due) - expected) <= 7 * sqrt(expected) + 3
    assert all(0 <= earlier <= later for earlier, later in pairwise(due))


@settings(deadline=None)
@given(st.one_of(st.tuples(ONE_RATE, RATES), st.tuples(SHAPES, st.none())), SEEDS)
def test_the_same_seed_makes_the_same_schedule(asked: tuple[str, float | None], seed: int) -> None:
    one, other = (list(islice(pacer(*asked, Random(seed)), 100)) for _ in range(2))
    assert one == other
