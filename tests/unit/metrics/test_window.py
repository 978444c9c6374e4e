from __future__ import annotations

import numpy as np
import pytest

from nilometer.core.errors import SpecError
from nilometer.core.record import Record
from nilometer.core.run import Phases
from nilometer.core.spec import Load
from nilometer.core.summary import Summary
from nilometer.metrics.window import Rule, parse, rule_of

from .made import answered, failed, phases, spec, summary, whole


def steady_load(until_s: float, every_s: float = 0.5, ttft_s: float = 0.2) -> list[Record]:
    """A request every half second with ten tokens, 20 ms apart."""
    starts = [i * every_s for i in range(int(until_s / every_s))]
    return [answered(s, [s + ttft_s + 0.02 * i for i in range(10)]) for s in starts]


def figures(records: list[Record], borders: Phases, window: str = "auto", requests: int | None = None) -> Summary:
    return summary(records, borders, spec(window=window, requests=requests))


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("auto", Rule("auto")),
        ("count", Rule("count")),
        ("guide", Rule("guide", (60.0, 180.0))),
        ("60..180", Rule("asked", (60.0, 180.0))),
        (" 2.5s..10s ", Rule("asked", (2.5, 10.0))),
    ],
)
def test_rules_are_read(text: str, rule: Rule) -> None:
    assert parse(text) == rule


@pytest.mark.parametrize("text", ["", "60", "60..", "..60", "60..60", "90..30", "-1..5", "1...5", "a..b", "full"])
def test_what_is_no_window_is_refused(text: str) -> None:
    with pytest.raises(SpecError) as refused:
        parse(text)
    assert (refused.value.slug, refused.value.params) == ("window_invalid", {"text": text})


def test_a_number_of_requests_needs_no_window() -> None:
    assert rule_of(Load(concurrency=1, requests=100)) == Rule("count")
    assert rule_of(Load(concurrency=1, requests=100, window="0..10")) == Rule("asked", (0.0, 10.0))
    assert rule_of(Load(concurrency=1)) == Rule("auto")


def test_auto_begins_after_the_asked_warmup_where_nothing_warms_up_any_more() -> None:
    made = figures(steady_load(120), phases(20, 120)).window
    assert (made.start_s, made.end_s, made.warmup_cut_s, made.rule, made.steady) == (0.0, 100.0, 0.0, "auto", True)


def test_auto_cuts_a_warmup_that_outlasts_the_asked_one() -> None:
    cold = [answered(s, [s + 2.0 + 0.02 * i for i in range(10)]) for s in [i * 0.5 for i in range(60)]]
    made = figures(cold + steady_load(120)[60:], phases(20, 120)).window
    assert made.start_s == made.warmup_cut_s
    assert 10.0 <= made.warmup_cut_s <= 13.0, "the cold half minute ends 10 s after the asked warm-up"
    assert made.steady is True


def test_completions_that_are_late_to_come_are_warmup_too() -> None:
    """No first token to look at, and answers of equal length: only the rate of completions tells."""
    slow = [whole(i * 0.5, i * 0.5 + 30.0, 10) for i in range(240)]
    made = figures(slow, phases(0, 120, 150)).window
    assert 25.0 <= made.warmup_cut_s <= 35.0


def test_guide_and_asked_windows_are_taken_as_they_are() -> None:
    records = steady_load(240)
    guide = figures(records, phases(60, 240), "guide").window
    assert (guide.start_s, guide.end_s, guide.warmup_cut_s, guide.rule) == (60.0, 180.0, 0.0, "guide")
    asked = figures(records, phases(60, 240), "10..20").window
    assert (asked.start_s, asked.end_s, asked.rule) == (10.0, 20.0, "asked")


def test_a_window_ends_where_the_load_did() -> None:
    records = steady_load(100)
    cut = figures(records, phases(60, 100, interrupted=True), "guide").window
    assert (cut.start_s, cut.end_s) == (40.0, 40.0)
    part = figures(records, phases(60, 160, interrupted=True), "guide").window
    assert (part.start_s, part.end_s) == (60.0, 100.0)


def test_interrupted_in_the_warmup_leaves_an_empty_window() -> None:
    made = figures(steady_load(10), phases(10, 10, interrupted=True))
    assert made.window.start_s == made.window.end_s == 0.0
    assert made.requests.started == 0
    assert made.run_requests.ok == 20
    assert made.throughput.output_tokens_per_s is None


def test_count_holds_every_measured_request_to_its_last_byte() -> None:
    early = [answered(-0.5 + 1, [0.8], 1.2, phase="warmup")]
    measured = [whole(2.0 + i, 5.0 + i, 10) for i in range(3)]
    made = figures(early + measured, phases(2, 4, 7), "auto", requests=3)
    assert made.window.rule == "count"
    assert (made.window.start_s, made.window.end_s) == (0.0, 5.000000001)
    assert made.requests.ok == 3
    assert made.throughput.requests_per_s == pytest.approx(3 / 5)
    assert made.throughput.output_tokens_per_s == pytest.approx(30 / 5)


def test_borders_belong_to_the_window_on_the_left_only() -> None:
    records = [answered(s, [s + 0.1, s + 0.2]) for s in (9.9, 10.0, 19.9, 20.0)]
    made = figures(records, phases(0, 30), "10..20")
    assert made.requests.started == 2
    assert made.latency_ms["ttft"].n == 2


def test_fewer_than_fifty_requests_say_nothing_about_steadiness() -> None:
    records = steady_load(24.5)
    assert len(records) == 49
    assert figures(records, phases(0, 25)).window.steady is None
    assert figures(steady_load(25), phases(0, 25)).window.steady is True


def test_a_growing_ttft_is_not_steady() -> None:
    records = [
        answered(s, [s + 0.2 * (1 + s / 240) + 0.02 * i for i in range(10)]) for s in [i * 0.5 for i in range(240)]
    ]
    assert figures(records, phases(0, 120), "0..120").window.steady is False


def test_a_decode_that_slows_down_is_not_steady_though_ttft_is() -> None:
    records = [
        answered(s, [s + 0.2 + 0.02 * (1 + s / 240) * i for i in range(10)]) for s in [i * 0.5 for i in range(240)]
    ]
    assert figures(records, phases(0, 120), "0..120").window.steady is False


def test_whole_answers_are_judged_by_e2e() -> None:
    assert figures([whole(i * 0.5, i * 0.5 + 1, 5) for i in range(200)], phases(0, 100), "0..100").window.steady is True
    slower = [whole(i * 0.5, i * 0.5 + 1 + i / 200, 5) for i in range(200)]
    assert figures(slower, phases(0, 100), "0..100").window.steady is False


def test_noise_is_steady() -> None:
    random = np.random.default_rng(11)
    records = []
    for i in range(400):
        first = i * 0.5 + 0.2 * float(np.exp(random.normal(0, 0.3)))
        gap = 0.02 * float(np.exp(random.normal(0, 0.1)))
        records.append(answered(i * 0.5, [first + gap * k for k in range(10)]))
    assert figures(records, phases(0, 200), "0..200").window.steady is True


def test_a_request_that_found_no_connection_counts_by_its_phase() -> None:
    nowhere = [
        failed(1.0, 1.0, "connect", sent_ns=None, end_ns=None, phase=phase) for phase in ("warmup", "measured", "drain")
    ]
    made = figures([*nowhere, *steady_load(20)], phases(5, 20))
    assert made.requests.errors == {"connect": 1}
    assert made.run_requests.errors == {"connect": 3}
