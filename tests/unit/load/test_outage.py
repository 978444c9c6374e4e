"""When a target counts as unheard, since when, and how long its lanes wait; by hand."""

from __future__ import annotations

import pytest
from tests.unit.load.made import S, exchange

from nilometer.load.exchange import Exchange
from nilometer.load.outage import NO_SOCKET, Outage


def ended(ending: str, *, heard: bool = False) -> Exchange:
    made = exchange([(S, None, [b"x"])] if heard else [])
    made.ending, made.status = ending, 200 if heard else None
    return made


@pytest.mark.parametrize("ending", ["connect", "tls", "timeout_connect"])
def test_lanes_wait_longer_round_by_round_for_what_cannot_be_opened(ending: str) -> None:
    outage = Outage()
    assert [outage.pause_s(ended(ending), 2, S) for _ in range(9)] == [0.1, 0.1, 0.2, 0.2, 0.5, 0.5, 1.0, 1.0, 1.0]


def test_being_hung_up_on_is_an_answer_until_it_is_the_only_one() -> None:
    outage = Outage()
    assert [outage.pause_s(ended("cut"), 3, S) for _ in range(5)] == [0.0, 0.0, 0.0, 0.2, 0.2]


def test_it_counts_from_the_first_that_was_not_heard() -> None:
    outage = Outage()
    for moment in (5 * S, 6 * S, 7 * S):
        outage.pause_s(ended("connect"), 1, moment)
    assert (outage.in_a_row, outage.since_ns) == (3, 5 * S)


@pytest.mark.parametrize("ending", ["whole", "closed", "malformed", "timeout_total", "cut"])
def test_whatever_was_heard_ends_it(ending: str) -> None:
    outage = Outage()
    outage.pause_s(ended("connect"), 1, S)
    assert outage.pause_s(ended(ending, heard=True), 1, 2 * S) == 0.0
    assert (outage.in_a_row, outage.since_ns) == (0, 0)


def test_a_server_that_refuses_everything_is_not_hammered() -> None:
    outage = Outage()
    refused = ended("whole", heard=True)
    refused.status = 401
    pauses = [outage.pause_s(refused, 2, S) for _ in range(202)]
    assert pauses == [0.0] * 200 + [0.05, 0.05]
    assert outage.in_a_row == 0, "it was heard"
    answered = ended("whole", heard=True)
    answered.status = 200
    assert outage.pause_s(answered, 2, S) == 0.0
    assert outage.pause_s(refused, 2, S) == 0.0


def test_no_socket_of_our_own_says_nothing_of_the_target() -> None:
    outage = Outage()
    outage.pause_s(ended("connect"), 1, S)
    assert outage.pause_s(ended(NO_SOCKET), 1, 2 * S) == 0.1
    assert (outage.in_a_row, outage.since_ns) == (1, S)


def test_an_open_loop_counts_and_does_not_wait_for_lanes() -> None:
    outage = Outage()
    assert outage.pause_s(ended("connect"), None, S) == 0.1
    assert outage.in_a_row == 1
