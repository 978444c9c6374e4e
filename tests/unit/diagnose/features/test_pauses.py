"""A server that stands still: pauses by a clock and at random, those of several streams counted once; quotas."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.diagnose.made import about, even, stream, streams

from nilometer.core.record import Record
from nilometer.diagnose.features import pauses

MS = 1 / 1000


def by_a_clock(n: int = 12) -> list[Record]:
    """Two streams, 10 ms a token, which both stand still 0.2 s after every 0.3 s of work."""
    gaps = ([10 * MS] * 30 + [200 * MS]) * n
    return [stream(0.1, 0.5, gaps), stream(0.1, 0.503, gaps)]


def test_pauses_of_all_streams_at_once_are_one_each() -> None:
    seen = streams(by_a_clock(), 10)
    assert pauses.pauses_per_s(seen) == about(12 / 10, 12)
    assert pauses.pause_period_s(seen) == about(0.5, 12)
    assert pauses.pause_length_s(seen) == about(0.2, 24)
    assert pauses.pause_unevenness(seen) == about(0.0, 12, abs=1e-6)
    assert pauses.pause_time_share(seen) == about(0.19 / 0.5, 2 * 12 * 31)


def test_pauses_at_random_are_uneven() -> None:
    """The quartiles of an exponential time lie ln 3 apart, its median at ln 2; a pause and a gap come on top of it."""
    random, gaps = Random(3), []
    for _ in range(400):
        gaps += [10 * MS] * max(1, round(random.expovariate(1 / 0.4) / (10 * MS))) + [100 * MS]
    found = pauses.pause_unevenness(streams([stream(0.1, 0.5, gaps)], 260))
    assert found is not None
    assert found.value == pytest.approx(0.4 * np.log(3) / (0.4 * np.log(2) + 0.11), abs=0.15)


def test_a_clock_whose_strokes_are_often_missed_is_one() -> None:
    """Half of the strokes every 0.2 s find no stream, and the others are seen up to a gap late."""
    random, gaps, at = Random(5), [], 0.0
    for stroke in sorted(random.sample(range(1, 200), 100)):
        while at + 10 * MS < stroke * 0.2:
            gaps.append(10 * MS)
            at += gaps[-1]
        gaps.append(stroke * 0.2 + 80 * MS - at)
        at += gaps[-1]
    seen = streams([stream(0.1, 0.5, gaps)], 60)
    unevenness, clock = pauses.pause_unevenness(seen), pauses.pause_clock(seen)
    assert unevenness is not None
    assert unevenness.value > 0.6
    assert clock is not None
    assert clock.value > 0.95, "sin(x) / x of 10 ms of 200: 0.996"


@given(st.integers(0, 1000))
@settings(max_examples=25, deadline=None)
def test_pauses_at_random_keep_to_no_clock(seed: int) -> None:
    random, gaps = Random(seed), []
    for _ in range(40):
        gaps += [10 * MS] * max(1, round(random.expovariate(1 / 0.4) / (10 * MS))) + [100 * MS]
    found = pauses.pause_clock(streams([stream(0.1, 0.5, gaps)], 60))
    assert found is None or found.value < 0.75


def test_an_even_stream_has_none() -> None:
    seen = streams([even(0.1, 0.5, 200, 20 * MS)], 10)
    assert pauses.pauses_per_s(seen) == about(0.0, 0)
    assert pauses.pause_period_s(seen) is None
    assert pauses.pause_unevenness(seen) is None
    assert pauses.pause_time_share(seen) == about(0.0, 199)


def test_without_gaps_nothing_is_known() -> None:
    seen = streams([even(0.1, 0.5, 1)], 10)
    of = (pauses.pauses_per_s, pauses.pause_period_s, pauses.pause_length_s, pauses.pause_unevenness)
    assert [one(seen) for one in (*of, pauses.pause_time_share, pauses.quota_quiet_share)] == [None] * 6


def under_a_quota(work_s: list[float], share: float, period_s: float = 0.1) -> list[Record]:
    """Steps of so much work each, in a server that runs in the first `share` of every period and then stands still."""
    ends, at = [], 0.0
    for work in work_s:
        at += work
        whole, rest = divmod(at, share * period_s)
        ends.append(whole * period_s + rest)
    return [stream(0.1, 0.5 + ends[0], np.diff(ends).tolist())]


@given(st.floats(0.15, 0.85), st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_tokens_under_a_quota_leave_the_stopped_part_of_its_period_empty(share: float, seed: int) -> None:
    random = Random(seed)
    work = [random.uniform(0.05, 0.25) for _ in range(400)]
    found = pauses.quota_quiet_share(streams(under_a_quota(work, share), 5000))
    assert found is not None
    assert 1 - share <= found.value + 0.01 <= 1 - share + 0.1 * share + 0.02


@given(st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_a_server_that_runs_when_it_likes_leaves_little_empty(seed: int) -> None:
    random = Random(seed)
    gaps = [random.lognormvariate(np.log(0.03), 0.2) for _ in range(400)]
    found = pauses.quota_quiet_share(streams([stream(0.1, 0.5, gaps)], 60))
    assert found is not None
    assert found.value < 0.06, "ln n / n is 0.015; so much as this once in 10^8"


def test_a_regular_rhythm_is_no_quota() -> None:
    """50 tokens a second stand at five moments of 100 ms, and no quota made them."""
    assert pauses.quota_quiet_share(streams([even(0.1, 0.5, 400, 20 * MS)], 10)) is None


def test_a_quota_of_another_period_is_not_seen() -> None:
    work = [Random(1).uniform(0.05, 0.25) for _ in range(400)]
    found = pauses.quota_quiet_share(streams(under_a_quota(work, 0.4, period_s=0.137), 5000))
    assert found is not None
    assert found.value < 0.1
