"""Requests that are late by one time: told from the others, from a queue, and from a line over the prompts."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.diagnose.made import about, even, streams

from nilometer.core.record import Record
from nilometer.diagnose.features import late
from nilometer.diagnose.streams import Streams


def one_after_another(ttft_s: list[float], prompts: list[int] | None = None) -> Streams:
    """A closed loop of one user: each request is sent when the one before it ended."""
    records: list[Record] = []
    at = 0.0
    for n, ttft in enumerate(ttft_s):
        more = {} if prompts is None else {"prompt_tokens": prompts[n]}
        records.append(even(at, at + ttft, 5, 0.01, **more))
        at += ttft + 0.05
    return streams(records, at + 1)


def test_three_of_thirty_are_late_by_the_timer_of_whoever_asked_again() -> None:
    seen = one_after_another([0.1, 0.11, 0.09] * 9 + [0.6, 0.61, 0.62])
    assert late.late_share(seen) == about(0.1, 30)
    assert late.late_by_ms(seen) == about(510.0, 3, abs=6)
    assert late.late_spread(seen) == about(10 / 510, 3, rel=0.2)


def test_a_long_prompt_is_not_late() -> None:
    """0.2 ms a token: the longest prompt takes 6 times what the usual one does, and that is what it should take."""
    prompts = [100, 200, 300, 400, 500, 600] * 5 + [3000]
    seen = one_after_another([0.02 + 0.0002 * prompt for prompt in prompts], prompts)
    assert late.late_share(seen) == about(0.0, 31)
    assert late.late_by_ms(seen) is None


def test_a_queue_has_none_that_stand_apart() -> None:
    seen = one_after_another(np.linspace(0.1, 2.0, 40).tolist())
    assert late.late_share(seen) == about(0.0, 40)


def test_half_of_all_are_no_few_that_are_late() -> None:
    assert late.late_share(one_after_another([0.1, 0.9] * 15)) == about(0.0, 30)


def test_of_too_few_requests_nothing_is_said() -> None:
    assert late.late_share(one_after_another([0.1] * 19)) is None


def test_fewer_than_three_have_no_spread() -> None:
    seen = one_after_another([0.1, 0.11] * 12 + [0.7, 0.7])
    assert late.late_share(seen) == about(2 / 26, 26)
    assert late.late_spread(seen) is None


@given(st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_chance_alone_makes_hardly_any_late(seed: int) -> None:
    """Of 60 log-normal TTFT (sigma 0.3) the greatest lies near exp(0.3 x 2.4) = 2.05 medians: not twice the next."""
    random = Random(seed)
    found = late.late_share(one_after_another([random.lognormvariate(np.log(0.1), 0.3) for _ in range(60)]))
    assert found is not None
    assert found.value <= 2 / 60


@given(st.floats(0.02, 0.3), st.floats(0.3, 3.0), st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_whoever_is_late_by_a_timer_is_found(share: float, timer_s: float, seed: int) -> None:
    random = Random(seed)
    ttft = [random.uniform(0.08, 0.12) for _ in range(100)]
    asked_again = random.sample(range(100), round(share * 100))
    for n in asked_again:
        ttft[n] += timer_s
    seen = one_after_another(ttft)
    assert late.late_share(seen) == about(len(asked_again) / 100, 100)
    found = late.late_by_ms(seen)
    assert found is not None
    assert found.value == pytest.approx(timer_s * 1000, abs=30)
