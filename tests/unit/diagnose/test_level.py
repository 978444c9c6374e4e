"""All evidence of one load: every feature filed under its name, None where it was not measured, and the laws of all."""

from __future__ import annotations

from math import fsum, isfinite

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.diagnose.made import even, run_of, shifted, stream
from tests.unit.metrics.made import failed, spec, whole

from nilometer.core.record import Frames, Record
from nilometer.core.run import Run
from nilometer.diagnose.level import FEATURES, LevelEvidence, evidence_of, level_number, window_of

NAMES = {feature.name for feature in FEATURES} | {"line_slope", "line_r"}


def some_records() -> list[Record]:
    return [even(i / 4, i / 4 + 0.1 + i / 1000, 9, 0.02, prompt_tokens=100 + 10 * i) for i in range(30)]


def test_each_figure_says_what_it_is_of() -> None:
    run = run_of(some_records(), 9, start_s=1, level=2)
    found = evidence_of(run, some_records())
    assert (found.run, found.level, found.window, found.is_open) == ("run", 2.0, "1..9", False)
    assert set(found.figures) == NAMES
    for name, figure in found.figures.items():
        assert figure is None or (figure.name, figure.level, figure.window) == (name, "2", "1..9")
        assert figure is None or (figure.n is not None and figure.source in ("client", "server", "both"))
    gap = found.figures["token_gap"]
    assert gap is not None
    assert (gap.unit, gap.source) == ("ms", "client")
    assert found.value("token_gap") == pytest.approx(20)
    assert len(list(found.measured())) == len([one for one in found.figures.values() if one is not None])


def test_what_the_server_told_is_filed_as_its_word() -> None:
    told = {"kv_usage_max": 0.97, "waiting_mean": 3.5, "queue_mean_s": 0.25, "running_max": None}
    found = evidence_of(run_of(some_records(), 9, server=told), some_records())
    assert (found.value("kv_usage_max"), found.value("waiting_mean"), found.value("running_max")) == (0.97, 3.5, None)
    queue = found.figures["server_queue_mean"]
    assert queue is not None
    assert (queue.value, queue.unit, queue.source) == (250.0, "ms", "server")


def test_a_name_that_is_none_is_an_error() -> None:
    found = evidence_of(run_of([], 5), [])
    with pytest.raises(KeyError):
        found.value("no_such_feature")


def test_a_run_without_requests_has_no_evidence() -> None:
    found = evidence_of(run_of([], 5), [])
    assert {one.name for one in found.measured()} == {
        "in_flight",
        "waiting",
        "decoding",
        "decoding_most",
        "prefill_time_share",
        "little_asked",
        "achieved_over_asked",
        "requests_per_s",
        "output_tokens_per_s",
    }
    assert found.ttft is found.e2e is None
    assert found.means is None


def test_failures_alone_are_told_as_shares() -> None:
    found = evidence_of(run_of([failed(i, i + 0.1, "http_429", status=429) for i in range(5)], 9), _refused())
    assert found.value("refused_share") == 1.0
    assert found.value("join_share") is found.value("stream_share") is None


def _refused() -> list[Record]:
    return [failed(i, i + 0.1, "http_429", status=429) for i in range(5)]


def test_requests_whose_frames_are_not_kept_have_no_gaps() -> None:
    """As in a file of another tool that tells the latencies of each request."""
    records = [msgspec.structs.replace(record, frames=Frames()) for record in some_records()]
    found = evidence_of(run_of(records, 9), records, lowest=True)
    assert found.value("token_gap") is found.value("burst_share") is found.value("gap_simultaneity") is None
    assert found.value("stream_share") is not None
    assert found.value("decoding") == pytest.approx(30 * 8 * 0.02 / 9, rel=1e-3)
    assert found.e2e is not None
    assert found.e2e.part("stalls").ms is None


def test_the_lowest_level_is_its_own_base_and_others_need_one() -> None:
    records = some_records()
    run = run_of(records, 9)
    alone, lowest = evidence_of(run, records), evidence_of(run, records, lowest=True)
    above = evidence_of(run, records, base=lowest.base)
    assert alone.ttft is not None
    assert alone.ttft.part("prefill").ms is None
    assert lowest.ttft is not None
    assert lowest.ttft.part("prefill").ms == pytest.approx(lowest.ttft.total_ms, rel=0.02)
    assert (above.ttft, above.e2e) == (lowest.ttft, lowest.e2e)


def test_the_records_may_come_in_any_order() -> None:
    records = some_records()
    run = run_of(records, 9)
    assert _same(evidence_of(run, records[::-1]), evidence_of(run, records))


def _same(one: LevelEvidence, other: LevelEvidence) -> bool:
    """Equal but for rounding."""
    return all(
        (figure is None) == (other.figures[name] is None)
        and (figure is None or figure.value == pytest.approx(other.value(name), rel=1e-6, abs=1e-9))
        for name, figure in one.figures.items()
    )


def test_the_level_of_a_run() -> None:
    assert level_number(run_of([], 5, level=8)) == 8.0
    asked = spec(concurrency=6, window="0..5")
    assert level_number(run_of([], 5, level=None, spec=asked)) == 6.0
    rate = run_of([], 5, level=None, spec=spec(concurrency=None, rate_per_s=2.5, window="0..5"))
    assert level_number(rate) == 2.5
    assert level_number(msgspec.structs.replace(rate, level="pp512")) is None
    assert evidence_of(msgspec.structs.replace(rate, level="pp512"), []).rung is None
    assert level_number(msgspec.structs.replace(rate, origin="imported")) == 2.5
    found = evidence_of(rate, [])
    assert (found.is_open, found.means, found.value("little_asked")) == (True, None, None)
    varies = spec(concurrency=None, arrivals="ramp:1..5", rate_per_s=None, window="0..5")
    assert level_number(run_of([], 5, level=None, spec=varies)) is None


def test_a_window_without_a_known_end() -> None:
    run = run_of(some_records(), 9)
    window = msgspec.structs.replace(run.summary.window, end_s=None)
    cut = msgspec.structs.replace(run, summary=msgspec.structs.replace(run.summary, window=window))
    assert window_of(cut) == "0.."
    assert evidence_of(cut, some_records()).value("token_gap") == pytest.approx(20)


@st.composite
def mixed(draw: st.DrawFn) -> list[Record]:
    made: list[Record] = []
    for _ in range(draw(st.integers(0, 14))):
        sent = draw(st.integers(0, 700)) / 100
        kind = draw(st.sampled_from(["stream", "stream", "stream", "failed", "whole", "cut"]))
        if kind == "failed":
            made.append(failed(sent, sent + 0.1, draw(st.sampled_from(["http_429", "http_5xx", None]))))
        elif kind == "whole":
            made.append(whole(sent, sent + 0.5, draw(st.sampled_from([None, 1, 20]))))
        else:
            gaps = draw(st.lists(st.integers(0, 300), max_size=10))
            made.append(
                stream(
                    sent,
                    sent + draw(st.integers(1, 2000)) / 1000,
                    [gap / 1000 for gap in gaps],
                    outcome="ok" if kind == "stream" else "incomplete",
                    prompt_tokens=draw(st.sampled_from([None, 10, 500])),
                    finish_reason=draw(st.sampled_from([None, "stop", "length"])),
                    asked_output=draw(st.sampled_from([None, 5])),
                    target=draw(st.integers(0, 1)),
                )
            )
    return made


SIGNED = {"ttft_drift", "tpot_drift", "prompt_drift", "output_drift", "in_flight_drift", "unprocessed_prompt_share"}
"""Shares that may be negative, or more than all."""
UNBOUND = SIGNED | {
    "achieved_over_asked",
    "generator_cpu_share",
    "little",
    "little_asked",
    "little_decoding",
    "little_waiting",
}


@settings(max_examples=30, deadline=None)
@given(mixed(), st.integers(1, 10**12))
def test_shares_are_shares_and_time_may_shift(records: list[Record], by_ns: int) -> None:
    run = run_of(records, 8, start_s=1)
    found = evidence_of(run, records, lowest=True)
    for figure in found.measured():
        assert figure.n is not None
        assert isinstance(figure.value, float)
        assert isfinite(figure.value), figure.name
        if figure.unit == "share" and figure.name not in UNBOUND:
            assert -1e-12 <= figure.value <= 1 + 1e-12, figure
    later = evidence_of(_later(run, by_ns), [shifted(record, by_ns) for record in records], lowest=True)
    assert _same(found, later)


def _later(run: Run, by_ns: int) -> Run:
    stamps = {name: getattr(run.phases, name) + by_ns for name in ("start_ns", "measured_ns", "stop_ns", "end_ns")}
    return msgspec.structs.replace(run, phases=msgspec.structs.replace(run.phases, **stamps))


stamp = st.none() | st.integers(-(10**9), 12 * 10**9)


@st.composite
def torn(draw: st.DrawFn) -> Record:
    """A request with any stamps at all, in any order, and frames that know nothing of them."""
    stamps = {name: draw(stamp) for name in ("due_ns", "sent_ns", "first_token_ns", "last_token_ns", "end_ns")}
    record = stream(1, 1.5, [draw(st.integers(-500, 500)) / 1000 for _ in range(draw(st.integers(0, 5)))])
    shown = {name: None if value is None else 1_000 * 10**9 + value for name, value in stamps.items()}
    if shown["sent_ns"] is None:
        shown["first_token_ns"] = None
    outcome = draw(st.sampled_from(["ok", "error", "incomplete", "cancelled"]))
    return msgspec.structs.replace(record, outcome=outcome, **shown)


@settings(max_examples=40, deadline=None)
@given(st.lists(torn(), max_size=8))
def test_torn_requests_break_nothing(records: list[Record]) -> None:
    found = evidence_of(run_of(records, 8), records, lowest=True)
    assert set(found.figures) == NAMES
    for budget in (found.ttft, found.e2e):
        assert budget is None or fsum(part.ms or 0 for part in budget.parts) == pytest.approx(budget.total_ms, abs=1e-6)
    for figure in found.measured():
        assert isinstance(figure.value, float)
        assert isfinite(figure.value), figure.name
