from __future__ import annotations

from itertools import islice, pairwise, takewhile
from math import sqrt
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.workload.arrivals import PACERS, pacer

KINDS = st.sampled_from(sorted(PACERS))
RATES = st.floats(0.01, 50_000)
SEEDS = st.integers(0, 1 << 32)


@settings(deadline=None)
@given(KINDS, RATES, SEEDS)
def test_due_times_never_go_back_and_never_come_before_the_start(kind: str, rate: float, seed: int) -> None:
    due = list(islice(pacer(kind, rate, Random(seed)), 300))
    assert due[0] >= 0
    assert all(earlier <= later for earlier, later in pairwise(due))


@settings(deadline=None)
@given(KINDS, RATES, SEEDS)
def test_as_many_are_due_as_the_rate_says(kind: str, rate: float, seed: int) -> None:
    expected = 400
    until_ns = expected / rate * 1e9
    number = len(list(takewhile(lambda due_ns: due_ns < until_ns, islice(pacer(kind, rate, Random(seed)), 2000))))
    # six standard deviations of a Poisson count; a constant rate is off by one at most
    assert abs(number - expected) <= (6 * sqrt(expected) if kind == "poisson" else 1)


@settings(deadline=None)
@given(KINDS, RATES, SEEDS)
def test_the_same_seed_makes_the_same_schedule(kind: str, rate: float, seed: int) -> None:
    assert list(islice(pacer(kind, rate, Random(seed)), 100)) == list(islice(pacer(kind, rate, Random(seed)), 100))
