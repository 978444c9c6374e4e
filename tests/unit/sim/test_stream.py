from __future__ import annotations

from array import array

from hypothesis import given
from hypothesis import strategies as st

from nilometer.sim.event import Answer
from nilometer.sim.faults import HEALTHY, WHOLE_ANSWER, Faults
from nilometer.sim.stream import changes, passed_on


def _answer(counts: list[int]) -> Answer:
    return Answer(array("d", [float(i) for i in range(len(counts))]), counts, sum(counts), 0, 0.0, 0.0, 0)


def test_the_first_token_comes_at_once_and_later_ones_by_so_many() -> None:
    told = passed_on(_answer([1] * 6), Faults(frame_tokens=4))
    assert list(told.stamps) == [0.0, 4.0, 5.0]
    assert told.counts == [1, 4, 1]


def test_a_proxy_lets_go_of_so_many_frames_at_once() -> None:
    told = passed_on(_answer([1] * 5), Faults(buffer_frames=2))
    assert list(told.stamps) == [1.0, 1.0, 3.0, 3.0, 4.0]
    whole = passed_on(_answer([1] * 5), Faults(buffer_frames=WHOLE_ANSWER))
    assert list(whole.stamps) == [4.0] * 5


def test_only_these_two_change_the_stream() -> None:
    assert not changes(HEALTHY)
    assert changes(Faults(frame_tokens=2))
    assert changes(Faults(buffer_frames=1))


@given(st.lists(st.integers(1, 5), min_size=1, max_size=40), st.integers(1, 9), st.integers(0, 9))
def test_no_token_is_lost_or_early(counts: list[int], frame_tokens: int, buffer_frames: int) -> None:
    told = passed_on(_answer(counts), Faults(frame_tokens=frame_tokens, buffer_frames=buffer_frames))
    assert told.counts is not None
    assert sum(told.counts) == sum(counts)
    assert list(told.stamps) == sorted(told.stamps)
    assert told.stamps[-1] == len(counts) - 1
    for i, at in enumerate(told.stamps):
        assert sum(told.counts[: i + 1]) <= sum(counts[: int(at) + 1])
