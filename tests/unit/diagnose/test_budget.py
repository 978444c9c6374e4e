"""Time budgets: parts known by how the requests were made, sums that are exact, None for what nobody measured."""

from __future__ import annotations

from math import fsum
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.diagnose.made import even, near, stream, streams
from tests.unit.metrics.made import at, failed, spec, whole

from nilometer.core.record import Record
from nilometer.diagnose.base import Base, BaseLine
from nilometer.diagnose.budget import Budget, e2e_budget, ttft_budget

BASE = Base(line=BaseLine(intercept_ms=50, slope_ms=0.5, r=0.9, n=50), gap_ms=10)
"""A prompt of 100 takes 100 ms."""


def ms(budget: Budget | None) -> dict[str, float | None]:
    assert budget is not None
    return {part.name: part.ms for part in budget.parts}


def queued(**changes: Any) -> list[Record]:
    """TTFT of 1 s each, 100 ms of it prefill; stamps of the kernel."""
    return [even(i / 10, i / 10 + 1, 5, 0.01, **({"stamp_source": "kernel"} | changes)) for i in range(40)]


def test_without_the_servers_word_nobody_parts_the_waiting() -> None:
    budget = ttft_budget(streams(queued()), BASE)
    assert budget is not None
    assert (budget.metric, budget.stat, budget.n) == ("ttft", "p95", 4)
    assert budget.total_ms == pytest.approx(1000)
    parts = ms(budget)
    assert (parts["queue"], parts["front_end"]) == (None, None)
    assert near(0, 0, 100, 900, 0) == tuple(
        parts[name] for name in ("client", "connect", "prefill", "waiting", "unexplained")
    )


def test_the_server_tells_queue_from_front_end() -> None:
    """Its TTFT was 950 ms, 810 of it in the queue: 50 ms before it, 40 that nobody tells of."""
    seen = streams(queued(), server={"ttft_mean_s": 0.95, "queue_mean_s": 0.81})
    parts = ms(ttft_budget(seen, BASE))
    assert near(50, 810, 100, 40) == tuple(parts[name] for name in ("front_end", "queue", "prefill", "unexplained"))


def test_without_a_lowest_level_prefill_is_the_servers_word_or_unknown() -> None:
    assert ms(ttft_budget(streams(queued()), None))["prefill"] is None
    seen = streams(queued(), server={"prefill_mean_s": 0.12})
    assert near(120, 880) == tuple(ms(ttft_budget(seen, None))[name] for name in ("prefill", "unexplained"))


def test_prefill_is_at_most_what_there_was() -> None:
    fast = [even(i / 10, i / 10 + 0.08, 5, 0.01) for i in range(40)]
    assert near(80, 0) == tuple(ms(ttft_budget(streams(fast), BASE))[name] for name in ("prefill", "unexplained"))


def test_late_reading_is_unknown_with_stamps_of_our_own() -> None:
    assert ms(ttft_budget(streams(queued(stamp_source="user")), BASE))["client"] is None


def test_an_open_loop_has_its_lag_and_its_connecting() -> None:
    """Due 200 ms before it was sent, 150 of them connecting."""
    records = [
        even(i / 10 + 0.2, i / 10 + 1.2, 5, 0.01, due_ns=at(i / 10), connect_ns=150_000_000, new_connection=True)
        for i in range(40)
    ]
    budget = ttft_budget(streams(records, spec=spec(concurrency=None, rate_per_s=10.0, window="0..10")), BASE)
    assert budget is not None
    assert budget.total_ms == pytest.approx(1200)
    parts = ms(budget)
    assert near(50, 150, 100, 900, 0) == tuple(
        parts[name] for name in ("client", "connect", "prefill", "waiting", "unexplained")
    )


def test_the_percentile_is_that_of_the_figures() -> None:
    """TTFT 10, 20 ... 1000 ms: p95 950.5; the parts are those of the requests around it."""
    seen = streams([even(0, i / 100, 3, 0.01) for i in range(1, 101)])
    budget = ttft_budget(seen, BASE)
    assert budget is not None
    assert budget.total_ms == pytest.approx(950.5)
    assert budget.total_ms == seen.run.summary.latency_ms["ttft"].p95
    assert budget.part("prefill").ms == pytest.approx(100, rel=1e-3)
    assert budget.part("prefill").share == pytest.approx(100 / 950.5, rel=1e-3)
    with pytest.raises(KeyError):
        budget.part("nothing")


def test_e2e_with_slower_gaps_and_a_stall() -> None:
    """TTFT 500; 40 gaps of 15 ms where the base has 10, one of 415; 30 ms after the last token."""
    records = [stream(i, i + 0.5, [0.015] * 20 + [0.415] + [0.015] * 20, end_ns=at(i + 1.545)) for i in range(9)]
    budget = e2e_budget(streams(records, 12), BASE)
    assert budget is not None
    assert (budget.metric, budget.stat) == ("e2e", "p50")
    assert budget.total_ms == pytest.approx(1545)
    assert ms(budget) == {
        "ttft": pytest.approx(500),
        "base_gaps": pytest.approx(410),
        "slower_gaps": pytest.approx(205),
        "stalls": pytest.approx(400),
        "tail": pytest.approx(30),
        "unexplained": pytest.approx(0, abs=1e-6),
    }


def test_jitter_is_no_stall() -> None:
    records = [stream(i, i + 0.5, [0.008, 0.01, 0.012] * 10) for i in range(9)]
    parts = ms(e2e_budget(streams(records, 12), BASE))
    assert near(300, 0, 0) == tuple(parts[name] for name in ("base_gaps", "slower_gaps", "stalls"))
    assert parts["unexplained"] == pytest.approx(0, abs=1e-6)


def test_several_tokens_a_frame() -> None:
    """11 frames of 3 tokens 30 ms apart (32 token gaps): 300 ms of decoding, 9.375 a token, base 10."""
    records = [even(i, i + 0.5, 11, 0.03, output_tokens=33) for i in range(9)]
    parts = ms(e2e_budget(streams(records, 12), BASE))
    assert near(320, 0, 0, -20) == tuple(parts[n] for n in ("base_gaps", "slower_gaps", "stalls", "unexplained"))


def test_without_a_lowest_level_stalls_are_known_and_the_rest_is_not() -> None:
    records = [stream(i, i + 0.5, [0.015] * 20 + [0.415] + [0.015] * 20) for i in range(9)]
    parts = ms(e2e_budget(streams(records, 12), None))
    assert (parts["base_gaps"], parts["slower_gaps"]) == (None, None)
    assert parts["stalls"] == pytest.approx(400)
    assert parts["unexplained"] == pytest.approx(615)


def test_tokens_that_are_not_counted_leave_decoding_unknown() -> None:
    parts = ms(e2e_budget(streams([even(i, i + 0.5, 11, output_tokens=None) for i in range(9)], 12), BASE))
    assert parts["base_gaps"] is parts["slower_gaps"] is parts["stalls"] is None
    assert parts["unexplained"] == pytest.approx(1000)


def test_nothing_streamed_has_no_budget() -> None:
    for records in ([], [whole(0, 1, 5)], [failed(0, 1)]):
        assert ttft_budget(streams(records), BASE) is e2e_budget(streams(records), BASE) is None


some = st.lists(
    st.builds(
        lambda sent, ttft, gaps, tokens, prompt: stream(
            sent / 10,
            sent / 10 + ttft / 1000,
            [gap / 1000 for gap in gaps],
            output_tokens=tokens and tokens * (len(gaps) + 1),
            prompt_tokens=prompt,
        ),
        st.integers(0, 80),
        st.integers(1, 3000),
        st.lists(st.integers(0, 300), max_size=12),
        st.none() | st.integers(1, 3),
        st.none() | st.integers(1, 3000),
    ),
    min_size=1,
    max_size=12,
)
told = st.dictionaries(st.sampled_from(["ttft_mean_s", "queue_mean_s", "prefill_mean_s"]), st.none() | st.floats(0, 4))


@settings(max_examples=60, deadline=None)
@given(some, told, st.sampled_from([None, BASE, Base(line=None, gap_ms=None)]))
def test_the_parts_add_up(records: list[Record], server: dict[str, float | None], base: Base | None) -> None:
    seen = streams(records, server=server)
    for budget in (ttft_budget(seen, base), e2e_budget(seen, base)):
        assert budget is not None
        known = [part.ms for part in budget.parts if part.ms is not None]
        assert fsum(known) == pytest.approx(budget.total_ms, rel=1e-12)
        assert fsum(part.share for part in budget.parts if part.share is not None) == pytest.approx(1)
        assert budget.parts[-1].name == "unexplained"
        assert min([0.0, *(part.ms for part in budget.parts[:-1] if part.ms is not None)]) >= -1e-9
