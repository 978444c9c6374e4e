from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from nilometer.core.errors import SpecError
from nilometer.core.record import Record
from nilometer.core.run import Health
from nilometer.core.summary import Memory, Summary
from nilometer.metrics.summary import summarise

from .made import answered, at, failed, frames, phases, spec, summary, whole

TEN = phases(0, 10, 12)


def test_a_request_measured_by_hand() -> None:
    """Sent 1.0 s, tokens at 1.5, 1.6, 1.8 s, last byte at 2.0 s."""
    made = summary([answered(1.0, [1.5, 1.6, 1.8], 2.0, refill_ns=2_000_000)], TEN, spec(window="0..10"))
    p50 = {name: one.p50 for name, one in made.latency_ms.items()}
    assert p50 == {
        "ttft": pytest.approx(500.0),
        "ttfa": pytest.approx(500.0),
        "tpot": pytest.approx(150.0),
        "itl": pytest.approx(150.0),
        "frame_gap": pytest.approx(150.0),
        "e2e": pytest.approx(1000.0),
        "start_lag": None,
        "connect": None,
        "refill": 2.0,
        "ttft_from_sent": pytest.approx(500.0),
        "e2e_from_sent": pytest.approx(1000.0),
    }
    assert made.latency_ms["frame_gap"].min == pytest.approx(100.0)
    assert made.latency_ms["frame_gap"].max == pytest.approx(200.0)
    assert made.latency_from == "sent"
    assert made.throughput.output_tokens_per_s == pytest.approx(0.3)


def test_requests_by_outcome_and_kind() -> None:
    records = [
        answered(1.0, [2.0]),
        failed(1.0, 2.0, "http_429"),
        failed(1.0, 2.0, "http_429"),
        failed(1.0, 2.0, "timeout_idle"),
        failed(1.0, 2.0, None),
        failed(1.0, 2.0, None, outcome="cancelled"),
        failed(11.0, 12.0, None, outcome="cancelled", phase="drain"),
    ]
    made = summary(records, TEN)
    assert (made.requests.started, made.requests.ok, made.requests.error) == (6, 1, 3)
    assert (made.requests.incomplete, made.requests.cancelled, made.requests.censored) == (1, 1, 0)
    assert made.requests.errors == {"http_429": 2, "timeout_idle": 1}
    assert (made.run_requests.started, made.run_requests.cancelled) == (7, 2)


def test_requests_cut_at_the_drain_limit_are_censored_and_mark_the_tail() -> None:
    cut = failed(9.0, 12.0, None, outcome="cancelled")
    many = [answered(i * 0.005, [i * 0.005 + 0.2, i * 0.005 + 0.3]) for i in range(1_200)]
    borders = phases(0, 10, 12, cut_at_drain_limit=True)
    within = summary([*many, *[cut] * 12], borders)
    assert within.requests.censored == 12
    assert within.latency_ms["ttft"].marked == []
    over = summary([*many, *[cut] * 13], borders)
    assert over.requests.censored == 13
    assert over.latency_ms["ttft"].marked == ["p95", "p99", "max"]
    assert over.latency_ms["start_lag"].marked == []
    assert over.requests.started == (over.requests.ok or 0) + (over.requests.cancelled or 0)


def test_a_latency_starts_at_due_where_there_is_one() -> None:
    due = answered(1.0, [1.5], due_ns=at(0.9))
    sent = answered(2.0, [2.5])
    assert summary([due], TEN).latency_from == "due"
    assert summary([due, sent], TEN).latency_from == "mixed"
    assert summary([failed(1.0, 2.0)], TEN).latency_from == "sent"
    assert summary([], TEN, spec(concurrency=None, rate_per_s=2.0)).latency_from == "due"
    made = summary([due], TEN)
    assert made.latency_ms["start_lag"].p50 == pytest.approx(100.0)
    assert made.latency_ms["ttft"].p50 == pytest.approx(600.0)
    assert made.latency_ms["ttft_from_sent"].p50 == pytest.approx(500.0)


def test_a_due_request_belongs_to_the_window_it_was_due_in() -> None:
    early = answered(5.1, [5.5], due_ns=at(4.9))
    assert summary([early], TEN, spec(window="5..10")).requests.started == 0
    assert summary([early], TEN, spec(window="0..5")).requests.started == 1


def test_failures_do_not_enter_the_latencies() -> None:
    seen = {"first_token_ns": at(1.05), "last_token_ns": at(1.08), "frames": frames([1.05, 1.08])}
    broken = failed(1.0, 1.1, "stream_error", **seen)
    made = summary([answered(1.0, [2.0, 2.5]), broken], TEN)
    assert {made.latency_ms[name].n for name in ("ttft", "e2e", "frame_gap", "tpot")} == {1}


def test_itl_only_where_every_frame_of_the_run_carries_one_token() -> None:
    single = answered(1.0, [2.0, 2.1, 2.2])
    bundled = answered(-1.0 + 1, [0.5, 0.6], output_tokens=5, phase="warmup")
    alone = summary([single, whole(1.0, 2.0, 9)], phases(0.9, 10))
    assert (alone.latency_ms["itl"].n, alone.latency_ms["frame_gap"].n) == (2, 2)
    beside = summary([bundled, single], phases(0.9, 10))
    assert beside.requests.started == 1
    assert (beside.latency_ms["itl"].n, beside.latency_ms["frame_gap"].n) == (0, 2)
    nothing = summary([whole(1.0, 2.0, 9)], TEN)
    assert nothing.latency_ms["itl"].n == 0


def test_lengths_asked_and_got() -> None:
    records = [
        answered(1.0, [2.0, 3.0], output_tokens=n, prompt_tokens=100 + n, asked_input=100, asked_output=n + 1)
        for n in (2, 4, 12)
    ]
    made = summary([*records, failed(1.0, 2.0, prompt_tokens=9_999, asked_input=9_999)], TEN).lengths
    assert (made.output.mean, made.output.p50, made.output.max) == (6.0, 4.0, 12)
    assert made.output.p95 == pytest.approx(4 + 0.9 * 8)
    assert (made.input.mean, made.asked_input.mean, made.asked_input.max) == (106.0, 100.0, 100)
    assert made.asked_output.p50 == 5.0
    assert made.tokens_per_frame == pytest.approx(18 / 6)
    assert made.token_source == {"usage": 3}


def test_tokens_per_frame_needs_a_count_that_streamed() -> None:
    guess = answered(1.0, [2.0, 3.0], token_source="estimated")
    hidden = answered(1.0, [2.0, 3.0], output_tokens=500, hidden_tokens=True)
    made = summary([guess, hidden], TEN)
    assert made.lengths.tokens_per_frame is None
    assert made.lengths.token_source == {"usage": 1, "estimated": 1}
    assert made.latency_ms["tpot"].n == 0
    assert summary([whole(1.0, 2.0, 5)], TEN).lengths.tokens_per_frame is None


def test_what_the_server_took_from_its_prefix_cache() -> None:
    told = answered(1.0, [2.0], prompt_tokens=100, cached_tokens=25)
    assert summary([told, told], TEN).server == {"prefix_hit_ratio": 0.25}
    assert summary([answered(1.0, [2.0])], TEN).server == {}


def test_nothing_measured_is_a_summary_of_nothing() -> None:
    made = summary([], TEN)
    assert made.requests.started == made.run_requests.started == 0
    assert all(one.n == 0 and one.p50 is None for one in made.latency_ms.values())
    assert made.window.steady is None
    assert made.generator.verdict == "unknown"
    assert made.lengths.output.mean is None
    assert len(made.timeline) == 12


def test_records_are_taken_once() -> None:
    taken = 0

    def once() -> Iterator[Record]:
        nonlocal taken
        for i in range(3):
            taken += 1
            yield answered(i, [i + 0.5])

    memory = Memory(server_rss_peak_bytes=5, source="psutil")
    made = summarise(once(), spec(), TEN, Health(), memory)
    assert (taken, made.requests.ok, made.memory) == (3, 3, memory)


def test_the_order_of_the_records_does_not_matter() -> None:
    records = [answered(i * 0.1, [i * 0.1 + 0.2, i * 0.1 + 0.3], 5.0 + i % 7) for i in range(80)]
    one, other = summary(records, TEN), summary(records[::-1], TEN)
    assert (one.window, one.requests, one.throughput, one.lengths) == (
        other.window, other.requests, other.throughput, other.lengths,
    )  # fmt: skip
    for name, made in one.latency_ms.items():
        assert (made.n, made.min, made.p50, made.p95, made.max) == (
            other.latency_ms[name].n, other.latency_ms[name].min, other.latency_ms[name].p50,
            other.latency_ms[name].p95, other.latency_ms[name].max,
        )  # fmt: skip


def test_a_summary_is_plain_data() -> None:
    made = summary([answered(1.0, [2.0, 2.5], cached_tokens=4)], TEN)
    assert msgspec.json.decode(msgspec.json.encode(made), type=Summary) == made


@pytest.mark.parametrize(("load", "slug"), [({"window": "5..1"}, "window_invalid"), ({}, "slo_invalid")])
def test_what_cannot_be_read_is_refused(load: dict[str, str], slug: str) -> None:
    asked = spec(**load) if load else msgspec.structs.replace(spec(), slo="fast")
    with pytest.raises(SpecError) as refused:
        summary([], TEN, asked)
    assert refused.value.slug == slug


def test_each_scenario_has_its_own_figures() -> None:
    records = [
        *(answered(s, [s + 0.1, s + 0.2], scenario="chat") for s in (1.0, 2.0, 3.0)),
        answered(4.0, [4.5, 4.7], scenario="code"),
        failed(5.0, 5.1, "http_5xx", scenario="code"),
    ]
    made = summary(records, TEN, spec(window="0..10"))
    assert list(made.scenarios) == ["chat", "code"]
    chat, code = made.scenarios.values()
    assert (chat.started, chat.ok, code.started, code.ok) == (3, 3, 2, 1)
    assert chat.latency_ms["ttft"].p50 == pytest.approx(100.0)
    assert code.latency_ms["ttft"].p50 == pytest.approx(500.0)
    assert code.latency_ms["e2e"].p50 == pytest.approx(700.0)


def test_lengths_asked_are_known_of_all_requests_or_not_told() -> None:
    first = answered(1.0, [1.5, 1.6], asked_input=100, asked_output=2)
    later = answered(2.0, [2.5, 2.6], asked_output=2, conversation="0", turn=1)
    known = summary([first, first], TEN, spec(window="0..10")).lengths
    grown = summary([first, later], TEN, spec(window="0..10")).lengths
    assert known.asked_input.mean == 100
    assert grown.asked_input.mean is None
    assert grown.asked_output.mean == 2
