"""Counts over time, against hand-made cases and a slow count moment by moment."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.diagnose.flow import Flow, flow_of, spread
from nilometer.metrics.table import NONE
from nilometer.metrics.window import Span

Four = tuple[int, int | None, int | None, int]


def flow(rows: list[Four], start: int, end: int) -> Flow:
    table = np.array([[NONE if x is None else x for x in row] for row in rows], dtype=np.int64).reshape(-1, 4).T
    return flow_of(table[0], table[1], table[2], table[3], Span(start, end))


def test_two_requests_one_after_the_other() -> None:
    found = flow([(0, 2, 6, 7), (4, 5, 8, 9)], 0, 10)
    assert found.length_ns.tolist() == [2, 2, 1, 1, 1, 1, 1, 1]
    assert found.in_flight.tolist() == [1, 1, 2, 2, 2, 1, 1, 0]
    assert found.waiting.tolist() == [1, 0, 1, 0, 0, 0, 0, 0]
    assert found.decoding.tolist() == [0, 1, 1, 2, 1, 1, 0, 0]


def test_what_lies_outside_the_window_only_sets_its_state() -> None:
    found = flow([(-5, -4, 20, 21), (12, 13, 14, 15)], 0, 10)
    assert (found.length_ns.tolist(), found.decoding.tolist()) == ([10], [1])


def test_a_request_without_a_token_waits_until_its_end() -> None:
    found = flow([(1, None, None, 4)], 0, 5)
    assert (found.length_ns.tolist(), found.waiting.tolist()) == ([1, 3, 1], [0, 1, 0])
    assert not found.decoding.any()


def test_a_stream_whose_last_token_was_not_seen_decodes_until_its_end() -> None:
    assert flow([(0, 1, None, 4)], 0, 5).decoding.tolist() == [0, 1, 0]


def test_an_empty_window_has_no_flow() -> None:
    found = flow([(0, 1, 2, 3)], 2, 2)
    assert not len(found.length_ns)
    assert spread(found.decoding, found.length_ns) is None


def test_spread_is_over_time() -> None:
    found = spread(np.array([1, 3]), np.array([3, 1]))
    assert found is not None
    assert (found.mean, found.most) == (1.5, 3.0)
    assert found.sd == pytest.approx(0.75**0.5)
    assert found.cv == pytest.approx(0.75**0.5 / 1.5)


def in_turn(sent: int, first: int | None, last: int | None, end: int) -> Four:
    """The same with the end behind the start and the tokens between them."""
    low, high = min(sent, end), max(sent, end)
    first, last = (None if at is None else min(max(at, low), high) for at in (first, last))
    return low, first, last, high


moments = st.integers(-20, 60)
rows = st.lists(
    st.tuples(moments, st.none() | moments, st.none() | moments, moments).map(lambda four: in_turn(*four)), max_size=8
)


@settings(max_examples=60, deadline=None)
@given(rows, st.integers(0, 20), st.integers(0, 25))
def test_as_counted_moment_by_moment(rows: list[Four], start: int, length: int) -> None:
    found = flow(rows, start, start + length)
    slow = np.zeros((3, length), dtype=np.int64)
    for sent, first, last, end in rows:
        begin = end if first is None else first
        stop = end if last is None else max(last, begin)
        for i, at in enumerate(range(start, start + length)):
            slow[0, i] += sent <= at < end
            slow[1, i] += sent <= at < begin
            slow[2, i] += first is not None and begin <= at < stop
    for seen, counted in zip(found[1:], slow, strict=True):
        assert np.repeat(seen, found.length_ns).tolist() == counted.tolist()
