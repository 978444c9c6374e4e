"""Long gaps: a prefill that blocks all, a victim alone, gaps without arrivals; against a slow count."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.diagnose.made import about, even, stream, streams

from nilometer.core.record import Record
from nilometer.diagnose.features import stalls
from nilometer.diagnose.figure import Figure
from nilometer.diagnose.streams import Streams


def blocked() -> list[Record]:
    """Three streams of 10 ms a token stand still from 1.0 to 1.5 s, while a fourth gets its first token."""
    gaps = [0.01] * 50 + [0.5] + [0.01] * 50
    return [*(stream(0.1, 0.5, gaps) for _ in range(3)), even(0.95, 1.5, 30, 0.01)]


def test_a_blocking_prefill_hits_all_streams_at_once() -> None:
    seen = streams(blocked(), 5)
    assert len(seen.long_gaps.row) == 3
    assert stalls.long_gaps_per_request(seen) == Figure(0.75, 4)
    assert stalls.gap_simultaneity(seen) == Figure(1.0, 3)
    assert stalls.gap_prefill_share(seen) == Figure(1.0, 3)
    assert stalls.gap_first_token_share(seen) == Figure(1.0, 3)


def test_a_victim_stands_still_alone() -> None:
    """Nothing arrives meanwhile; the others go on."""
    gaps = [0.01] * 50 + [0.5] + [0.01] * 50
    seen = streams([stream(0.1, 0.5, gaps), *(even(0.1, 0.5, 150, 0.01) for _ in range(4))], 5)
    assert stalls.gap_simultaneity(seen) == Figure(0.0, 1)
    assert stalls.gap_prefill_share(seen) == Figure(0.0, 1)
    assert stalls.gap_first_token_share(seen) == Figure(0.0, 1)


def test_half_of_the_others_are_hit() -> None:
    gaps = [0.01] * 50 + [0.5] + [0.01] * 50
    still = [stream(0.1, 0.5, gaps) for _ in range(3)]
    seen = streams([*still, *(even(0.1, 0.5, 150, 0.01) for _ in range(2))], 5)
    assert stalls.gap_simultaneity(seen) == Figure(0.5, 3)


def test_a_stream_alone_says_nothing_of_simultaneity() -> None:
    seen = streams([stream(0.1, 0.5, [0.01] * 20 + [0.5])], 5)
    assert stalls.gap_simultaneity(seen) is None
    assert stalls.long_gaps_per_request(seen) == Figure(1.0, 1)


def test_short_gaps_are_no_stalls_however_uneven() -> None:
    """49 ms is seven times the median, and short all the same."""
    seen = streams([stream(0.1, 0.5, [0.007] * 20 + [0.049] + [0.007] * 20)], 5)
    assert stalls.long_gaps_per_request(seen) == Figure(0.0, 1)
    assert stalls.gap_prefill_share(seen) is None


def test_the_share_of_the_time_in_which_somebody_waits() -> None:
    """From 0 to 1 and from 1.5 to 2 of 4 s."""
    seen = streams([even(0, 1, 3), even(0.5, 0.8, 3), even(1.5, 2, 3)], 4)
    assert stalls.prefill_time_share(seen) == about(1.5 / 4, 3)


def test_nothing_streamed_is_not_measured() -> None:
    seen = streams([])
    assert stalls.long_gaps_per_request(seen) is stalls.gap_simultaneity(seen) is None


some = st.lists(
    st.tuples(st.integers(0, 12), st.lists(st.sampled_from([0.01, 0.01, 0.01, 0.2, 0.35]), min_size=4, max_size=14)),
    min_size=1,
    max_size=7,
).map(lambda rows: [stream(start / 10, start / 10 + 0.1, gaps) for start, gaps in rows])


def _gaps(record: Record) -> list[tuple[int, int]]:
    return list(pairwise(frame.at_ns for frame in record.frames))


def _slow(seen: Streams, records: list[Record]) -> list[float]:
    """Of each long gap that has others beside it, the share of them that are hit."""
    shares = []
    for row, begin, end in zip(*(column.tolist() for column in seen.long_gaps), strict=True):
        beside = [
            other
            for i, other in enumerate(records)
            if i != row and _gaps(other)[0][0] < (begin + end) / 2 < _gaps(other)[-1][1]
        ]
        hit = [any(min(end, e) - max(begin, b) > (end - begin) / 2 for b, e in _gaps(other)) for other in beside]
        shares += [sum(hit) / len(hit)] if hit else []
    return shares


@settings(max_examples=80, deadline=None)
@given(some)
def test_simultaneity_as_counted_one_by_one(records: list[Record]) -> None:
    seen = streams(records, 10)
    shares, found = _slow(seen, records), stalls.gap_simultaneity(seen)
    if not shares:
        assert found is None
    else:
        assert found == about(sum(shares) / len(shares), len(shares))
