"""How tokens reach the client: streams whose shares are known by how they were made."""

from __future__ import annotations

from tests.unit.diagnose.made import about, even, stream, streams
from tests.unit.metrics.made import at, whole

from nilometer.diagnose.features import delivery
from nilometer.diagnose.figure import Figure


def test_a_stream_that_comes_as_it_is_made() -> None:
    """TTFT 1 s of an E2E of 1.9 s."""
    seen = streams([even(t, t + 1, 10) for t in (0, 2, 4)])
    assert delivery.stream_share(seen) == about(1 / 1.9, 3)
    assert delivery.burst_share(seen) == Figure(0.0, 27)


def test_a_buffered_stream_comes_at_the_end() -> None:
    seen = streams([even(t, t + 1, 10, 0.0001) for t in (0, 2, 4)])
    share, bursts = delivery.stream_share(seen), delivery.burst_share(seen)
    assert share is not None
    assert share.value > 0.99
    assert bursts == Figure(1.0, 27)


def test_rates_are_those_of_the_figures() -> None:
    """Three requests of 10 tokens within 10 s."""
    seen = streams([even(t, t + 1, 10) for t in (0, 2, 4)])
    assert delivery.requests_per_s(seen) == about(0.3, 3)
    assert delivery.output_tokens_per_s(seen) == about(3, 3)


def test_half_of_the_gaps_come_in_bursts() -> None:
    seen = streams([stream(0, 1, [0.0005, 0.2] * 5)])
    assert delivery.burst_share(seen) == Figure(0.5, 10)


def test_what_was_waited_for_before_it_was_sent_is_no_part_of_the_stream() -> None:
    late = even(5, 6, 10, due_ns=at(0))
    assert delivery.stream_share(streams([late])) == about(1 / 1.9, 1)


def test_the_tail_of_the_gaps() -> None:
    """99 gaps of 10 ms and one of 500 ms, beside another such stream: p99 is rank 197.01 of 199, 500 ms at 1 %."""
    seen = streams([stream(0, 0.5, [0.01] * 99 + [0.5]), stream(0, 0.5, [0.01] * 99 + [0.5])])
    assert delivery.token_gap_ms(seen) == Figure(10.0, 200)
    assert delivery.gap_tail_ratio(seen) == about((10 + 490 * 0.01) / 10, 200)


def test_the_tail_of_the_first_tokens() -> None:
    """TTFT 0.1, 0.2 ... 1.0 s: p50 0.55, p95 0.955."""
    seen = streams([even(0, i / 10, 2) for i in range(1, 11)])
    assert delivery.first_token_tail_ratio(seen) == about(0.955 / 0.55, 10)


def test_tokens_a_frame_are_those_of_the_figures() -> None:
    assert delivery.tokens_per_frame(streams([even(0, 1, 5, output_tokens=20)])) == Figure(4.0, 1)


def test_nothing_streamed_is_not_measured() -> None:
    for seen in (streams([]), streams([whole(0, 1, 5)])):
        for feature in (
            delivery.stream_share,
            delivery.burst_share,
            delivery.tokens_per_frame,
            delivery.token_gap_ms,
            delivery.gap_tail_ratio,
            delivery.first_token_tail_ratio,
        ):
            assert feature(seen) is None
