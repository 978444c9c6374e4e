"""Limits on a request that was sent: which comes first, where each starts, what is exempt."""

from __future__ import annotations

import pytest
from tests.unit.load.made import MS, S, exchange

from nilometer.load.exchange import Exchange
from nilometer.load.order import Limits
from nilometer.load.overdue import limit_passed, may_be_stale, passed

ALL = Limits(connect_ns=MS, first_ns=10 * MS, idle_ns=20 * MS, total_ns=100 * MS)


def silent() -> Exchange:
    return exchange([])


def spoken(last_ns: int) -> Exchange:
    """Its first byte came 1 ms after it was sent, its last so far at `last_ns`."""
    return exchange([(S + MS, None, [b"x"]), (last_ns, None, [b"y"])])


@pytest.mark.parametrize(
    ("since", "limit", "over"),
    [(0, 10, False), (0, 9, True), (None, 0, False), (0, None, False), (5, 5, False), (-1, 10, True)],
)
def test_passed_means_more_than_the_limit(since: int | None, limit: int | None, over: bool) -> None:
    assert passed(10, since, limit) is over


def test_within_its_limits_nothing_is_passed() -> None:
    assert limit_passed(silent(), S + 10 * MS, ALL) is None
    assert limit_passed(silent(), S + 10_000 * S, Limits()) is None


def test_the_first_token_counts_from_sent() -> None:
    assert limit_passed(silent(), S + 10 * MS + 1, ALL) == "timeout_first_token"
    assert limit_passed(spoken(S + 5 * MS), S + 11 * MS, ALL) == "timeout_first_token"  # bytes alone are no token


def test_what_was_looked_at_has_its_first_token() -> None:
    one = spoken(S + 5 * MS)
    one.looked = True
    assert limit_passed(one, S + 11 * MS, ALL) is None


def test_idle_counts_from_the_last_byte_and_only_after_the_first() -> None:
    limits = Limits(idle_ns=20 * MS)
    assert limit_passed(silent(), S + 90 * MS, limits) is None
    assert limit_passed(spoken(S + 50 * MS), S + 70 * MS, limits) is None
    assert limit_passed(spoken(S + 50 * MS), S + 70 * MS + 1, limits) == "timeout_idle"


def test_the_total_comes_before_the_others() -> None:
    assert limit_passed(silent(), S + 100 * MS + 1, ALL) == "timeout_total"
    assert limit_passed(spoken(S + 5 * MS), S + 101 * MS, ALL) == "timeout_total"


def test_idle_comes_before_the_first_token() -> None:
    assert limit_passed(spoken(S + 5 * MS), S + 26 * MS, ALL) == "timeout_idle"


@pytest.mark.parametrize(
    ("after_ms", "round_trip_ms", "stale"),
    [(1, 0, True), (30, 0, True), (31, 0, False), (229, 100, True), (231, 100, False)],
)
def test_a_close_soon_after_the_sending_may_have_been_under_way(after_ms: int, round_trip_ms: int, stale: bool) -> None:
    assert may_be_stale(silent(), S + after_ms * MS, round_trip_ms * MS) is stale


def test_a_new_connection_and_an_answered_one_are_not_stale() -> None:
    fresh = silent()
    fresh.new_connection = True
    assert not may_be_stale(fresh, S, 0)
    assert not may_be_stale(spoken(S + MS), S + 2 * MS, 0)
