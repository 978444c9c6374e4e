"""Client and server over the same window: what is there, and None where one side is silent."""

from __future__ import annotations

from tests.unit.diagnose.made import about, even, streams
from tests.unit.metrics.made import at, health, spec

from nilometer.core.record import Record
from nilometer.diagnose.features import both_sides as sides

TTFT = (0.1, 0.2, 0.3)


def some() -> list[Record]:
    return [even(i, i + ttft, 5, 0.1) for i, ttft in enumerate(TTFT)]


def test_client_beyond_server() -> None:
    """Mean TTFT 200 ms and E2E 600 ms here; 60 and 480 ms there."""
    seen = streams(some(), server={"ttft_mean_s": 0.06, "e2e_mean_s": 0.48})
    assert sides.client_mean_ms(seen, "ttft_from_sent") == about(200, 3)
    assert sides.told_ms(seen, sides.SERVER_TTFT_S) == about(60, 3)
    assert sides.beyond_server_ms(seen, "ttft_from_sent", sides.SERVER_TTFT_S) == about(140, 3)
    assert sides.beyond_server_ms(seen, "e2e_from_sent", sides.SERVER_E2E_S) == about(120, 3)


def test_a_silent_server_is_not_measured() -> None:
    seen = streams(some())
    assert sides.told(seen, sides.SERVER_TTFT_S) is None
    assert sides.beyond_server_ms(seen, "ttft_from_sent", sides.SERVER_TTFT_S) is None
    assert sides.unprocessed_prompt_share(seen) is None
    assert sides.told(streams(some(), server={"ttft_mean_s": None}), sides.SERVER_TTFT_S) is None


def test_preemptions_for_each_hundred_requests() -> None:
    assert sides.preemptions_per_100(streams(some(), server={"preemptions": 6.0})) == about(200, 3)
    assert sides.preemptions_per_100(streams(some(), server={"preemptions": 0.0})) == about(0, 3)
    assert sides.preemptions_per_100(streams(some())) is sides.preemptions_per_100(streams([])) is None


def test_prompt_tokens_that_the_server_did_not_work_through() -> None:
    assert sides.unprocessed_prompt_share(streams(some(), server={"prompt_tokens": 120.0})) == about(0.6, 3)
    assert sides.unprocessed_prompt_share(streams(some(), server={"prompt_tokens": 330.0})) == about(-0.1, 3)


def test_the_generators_own_word() -> None:
    seen = streams(some(), health=health([2.0] * 100))
    assert sides.loop_lag_p99_ms(seen) == about(2.0, 100)
    assert sides.lag_over_gap(seen) == about(0.02, 100)
    assert sides.generator_cpu_share(seen) == about(0.1, 3)
    assert sides.start_lag_p99_ms(seen) is None
    assert sides.lag_over_gap(streams(some())) is sides.generator_cpu_share(streams(some())) is None


def test_what_was_sent_late() -> None:
    late = [even(i + 0.03, i + 0.5, 5, due_ns=at(i)) for i in range(4)]
    seen = streams(late, spec=spec(concurrency=None, rate_per_s=1.0, window="0..10"))
    assert sides.start_lag_p99_ms(seen) == about(30, 4)
