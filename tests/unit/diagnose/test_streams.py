"""From records to arrays: the window, the gaps, the tokens held; against a slow count in plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.diagnose.made import even, stream, streams
from tests.unit.metrics.made import at, failed, whole

from nilometer.core.record import Record
from nilometer.diagnose.streams import GRID_POINTS, Streams


def test_the_window_is_that_of_the_figures() -> None:
    seen = streams([even(0, 0.5, 5)], 8, start_s=2)
    assert (seen.span.start_ns, seen.span.end_ns) == (at(2), at(8))
    assert not seen.measured.any()


def test_gaps_are_within_a_request_and_begin_in_the_window() -> None:
    """Frames at 1.0 1.1 1.3 and at 1.9 2.9: the one from 1.0 begins before the window, the last one outlasts it."""
    seen = streams([stream(0.5, 1.0, [0.1, 0.2]), failed(0.6, 0.7), stream(0.6, 1.9, [1.0])], 2.0, start_s=1.05)
    assert seen.gaps.length_ns.tolist() == [200_000_000, 1_000_000_000]
    assert seen.rows(seen.gaps.place).tolist() == [0, 2]
    assert seen.token_gap_ns == pytest.approx(600e6)


def test_several_tokens_a_frame_share_its_gap() -> None:
    """5 frames, 9 tokens, 0.2 s apart: 8 tokens came in 4 gaps."""
    seen = streams([even(0, 1, 5, 0.2, output_tokens=9)])
    assert seen.token_gap_ns == pytest.approx(100e6)
    assert seen.table.latency("tpot").tolist() == [pytest.approx(100e6)]


def test_nothing_streamed_has_no_gaps() -> None:
    seen = streams([whole(0, 1, 5), failed(1, 2)])
    assert seen.token_gap_ns is None
    assert not len(seen.gaps.length_ns)
    assert not len(seen.long_gaps.row)
    assert not seen.held_tokens.any()
    assert streams([]).token_gap_ns is None


def test_slices_hold_the_mean_gap_of_what_ends_in_them() -> None:
    """25 ms apart from 0.010 on: 10 gaps a quarter of a second; then 50 ms apart."""
    seen = streams([stream(0, 0.01, [0.025] * 20 + [0.05] * 10)], 5).slices
    assert seen.place.tolist() == [0, 1, 2, 3, 4]
    assert seen.gap_ms[:2].tolist() == [25.0, 25.0]
    assert seen.gap_ms[3] == pytest.approx(50.0)
    assert seen.first_tokens.tolist() == [1, 0, 0, 0, 0]
    assert seen.at_s[0] == 0.125


def test_stamps_that_go_back_are_gaps_of_nothing() -> None:
    """1.0, 0.9, 1.1 s, as with two clocks."""
    seen = streams([stream(0, 1.0, [-0.1, 0.2])])
    assert seen.gaps.length_ns.tolist() == [0, 200_000_000]
    assert seen.slices.place.tolist() == [4]


def test_a_gap_that_ends_after_the_window_is_in_no_slice() -> None:
    seen = streams([stream(0, 1.0, [0.1, 1e6])], 3)
    assert seen.slices.place.tolist() == [4]
    assert seen.slices.gap_ms.tolist() == [pytest.approx(100)]


def test_a_window_of_days_has_longer_slices() -> None:
    seen = streams([stream(0, 1.0, [0.1] * 9)], 500_000)
    assert seen.slices.length_ns == 500_000_000
    assert seen.slices.place.tolist() == [2, 3]


def test_tokens_held_by_two_streams() -> None:
    """Prompts of 100; 10 tokens each, 0.1 s apart, from 1.05 to 1.95 and from 1.55 to 2.45 s."""
    seen = streams([even(0, 1.05, 10), even(0, 1.55, 10)], 4)

    def near(second: float) -> float:
        return float(seen.held_tokens[np.abs(seen.grid_ns - at(second)).argmin()])

    assert [near(s) for s in (0.5, 1.1, 1.5, 1.7, 2.1, 3.0)] == [0, 101, 105, 107 + 102, 106, 0]


@st.composite
def some(draw: st.DrawFn) -> list[Record]:
    made = []
    for _ in range(draw(st.integers(0, 6))):
        sent = draw(st.integers(0, 40)) / 10
        gaps = draw(st.lists(st.integers(1, 8), max_size=6))
        tokens = draw(st.integers(1, 3)) * (len(gaps) + 1)
        made.append(stream(sent, sent + 0.3, [gap / 10 for gap in gaps], output_tokens=tokens))
    return made


@settings(max_examples=30, deadline=None)
@given(some())
def test_tokens_held_as_counted_one_by_one(records: list[Record]) -> None:
    seen = streams(records, 8)
    assert len(seen.grid_ns) == GRID_POINTS
    for place in range(0, GRID_POINTS, 331):
        moment, held = int(seen.grid_ns[place]), 0.0
        for record in records:
            frames = list(record.frames)
            assert record.output_tokens is not None
            if frames[0].at_ns <= moment < frames[-1].at_ns:
                came = sum(frame.at_ns <= moment for frame in frames)
                held += 100 + came * record.output_tokens / len(frames)
        assert seen.held_tokens[place] == pytest.approx(held, abs=1e-6)


def test_what_is_dear_is_made_once() -> None:
    seen, made = streams([even(0.1, 0.5, 3)], 5), []

    def make(of: Streams, name: str) -> str:
        made.append((of, name))
        return name * 2

    assert [seen.once(make, name) for name in ("a", "b", "a")] == ["aa", "bb", "aa"]
    assert made == [(seen, "a"), (seen, "b")]
