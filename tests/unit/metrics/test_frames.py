from __future__ import annotations

import numpy as np
import pytest

from nilometer.core.record import LATE, SHARED, Frames
from nilometer.metrics import frames as module
from nilometer.metrics.frames import FrameStore

from .made import at, frames

ALL = np.ones(3, dtype=np.bool_)


@pytest.fixture(params=[1 << 20, 1])
def store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> FrameStore:
    """Filled with everything in one block, or with each request in a block of its own."""
    monkeypatch.setattr(module, "_BLOCK_FRAMES", request.param)
    return FrameStore()


def filled(store: FrameStore, *requests: Frames) -> FrameStore:
    for one in requests:
        store.add(one)
    store.close()
    return store


def test_gaps_stay_within_a_request(store: FrameStore) -> None:
    filled(store, frames([1.0, 1.5, 2.5]), Frames(), frames([9.0, 9.25]))
    assert store.gaps_ns(ALL).tolist() == [500_000_000, 1_000_000_000, 250_000_000]
    assert store.gaps_ns(np.array([False, True, True])).tolist() == [250_000_000]
    assert store.gaps_ns(~ALL).tolist() == []


def test_empty_requests_at_either_end(store: FrameStore) -> None:
    filled(store, Frames(), frames([1.0, 1.5]), Frames())
    assert store.gaps_ns(ALL).tolist() == [500_000_000]
    assert store.reads().of_request.tolist() == [0, 2, 0]


def test_nothing_at_all() -> None:
    empty = FrameStore()
    empty.close()
    none = np.zeros(0, dtype=np.bool_)
    assert empty.gaps_ns(none).tolist() == empty.lags_ns(none).tolist() == []
    assert empty.reads().of_request.tolist() == []
    assert list(empty.arrivals(np.zeros(0))) == []


def test_lag_is_user_minus_kernel_where_there_is_one(store: FrameStore) -> None:
    filled(store, frames([1.0, 2.0], kernel_s=[0.999, None]), frames([3.0]), frames([4.0], kernel_s=[3.5]))
    assert store.lags_ns(ALL).tolist() == [1_000_000, 500_000_000]
    assert store.lags_ns(np.array([False, True, True])).tolist() == [500_000_000]
    assert store.stamped(ALL) == 2
    assert store.gaps_ns(ALL).tolist() == [at(2.0) - at(0.999)]


def test_a_lag_of_seconds_is_not_cut(store: FrameStore) -> None:
    filled(store, frames([9.0], kernel_s=[1.0]), frames([1.0], kernel_s=[0.5]))
    assert store.lags_ns(np.ones(2, dtype=np.bool_)).tolist() == [8_000_000_000, 500_000_000]


def test_arrivals_of_a_request_add_up_to_its_tokens(store: FrameStore) -> None:
    filled(
        store,
        frames([1.0, 2.0, 3.0]),
        frames([1.0, 2.0, 3.0], tokens=[2, -1, -1]),
        frames([1.0, 2.0], tokens=[2, 2]),
    )
    arrived = [tokens for _, tokens in store.arrivals(np.array([6.0, 7.0, 0.0]))]
    assert np.concatenate(arrived).tolist() == [2, 2, 2, 2, 2.5, 2.5, 0, 0]


def test_frames_of_one_read_stand_side_by_side_with_one_stamp(store: FrameStore) -> None:
    both = SHARED | LATE
    filled(
        store,
        frames([1.0, 1.0, 1.5, 2.0, 2.0, 2.0], flags=[SHARED, SHARED, 0, both, both, both]),
        frames([2.0, 2.0, 3.0, 3.0], flags=[both, both, SHARED, SHARED]),
        frames([4.0, 5.0]),
    )
    made = store.reads()
    assert made.of_request.tolist() == [3, 2, 2]
    assert made.shared_of_request.tolist() == [2, 2, 0]
    assert made.late_request.tolist() == [0, 1]
    assert made.late_size.tolist() == [3, 2]
    assert made.late_first.tolist() == [0, 1]
    assert made.sizes[:4].tolist() == [0, 3, 2, 0]
    assert made.first_sizes[:4].tolist() == [0, 1, 1, 0]


def test_neighbouring_reads_that_were_both_shared_are_two(store: FrameStore) -> None:
    filled(store, frames([1.0, 1.0, 2.0, 2.0], flags=[SHARED] * 4))
    assert store.reads().of_request.tolist() == [2]
