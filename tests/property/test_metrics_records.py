"""Laws of Records and what is made from them, held against slow oracles in plain Python."""

from __future__ import annotations

from array import array
from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.core.record import LATE, SHARED, Frames, Outcome, Record
from nilometer.core.run import Health, Phases
from nilometer.core.spec import Load, Spec
from nilometer.metrics import request
from nilometer.metrics.quantiles import percentile
from nilometer.metrics.summary import summarise

SECOND = 10**9
RUN = Phases(started_wall_ns=0, start_ns=0, measured_ns=3 * SECOND, stop_ns=10 * SECOND, end_ns=14 * SECOND)
WINDOW_NS = (5 * SECOND, 9 * SECOND)
ASKED = Spec(target="http://127.0.0.1:1", load=Load(concurrency=4, window="2..6"))
OUTCOMES: list[Outcome] = ["ok", "ok", "ok", "error", "incomplete", "cancelled"]


@st.composite
def made_records(draw: st.DrawFn) -> Record:
    """A request as it could have been seen, with or without frames, stated tokens, kernel stamps."""
    sent = draw(st.integers(0, 10 * SECOND))
    due = draw(st.none() | st.integers(0, sent))
    gaps = draw(st.lists(st.integers(0, SECOND), max_size=12))
    stamps, at = [], sent + draw(st.integers(0, 2 * SECOND))
    for gap in gaps:
        at += gap
        stamps.append(at)
    stated = draw(st.none() | st.lists(st.integers(-1, 5), min_size=len(stamps), max_size=len(stamps)))
    lags = draw(st.none() | st.lists(st.integers(-1, 10**7), min_size=len(stamps), max_size=len(stamps)))
    extra = draw(st.integers(0, 6))
    tokens = draw(st.none() | st.just(sum(max(s, 0) for s in stated or []) + len(stamps) + extra))
    outcome = draw(st.sampled_from(OUTCOMES))
    user = [stamp + max(lag, 0) for stamp, lag in zip(stamps, lags, strict=True)] if lags else stamps
    kernel = [stamp if lag >= 0 else -1 for stamp, lag in zip(stamps, lags, strict=True)] if lags else None
    return Record(
        id="r",
        seq=0,
        phase="measured" if sent >= RUN.measured_ns else "warmup",
        outcome=outcome,
        error="http_5xx" if outcome == "error" else None,
        due_ns=due,
        sent_ns=sent,
        first_token_ns=stamps[0] if stamps else None,
        first_answer_ns=stamps[-1] if stamps else None,
        last_token_ns=stamps[-1] if stamps else None,
        end_ns=(stamps[-1] if stamps else sent) + draw(st.integers(0, SECOND)),
        prompt_tokens=draw(st.none() | st.integers(0, 100)),
        output_tokens=tokens,
        token_source="none" if tokens is None else draw(st.sampled_from(["usage", "estimated"])),
        frames=Frames(
            user=array("q", user).tobytes(),
            kernel=array("q", kernel).tobytes() if kernel else b"",
            tokens=array("i", stated).tobytes() if stated else b"",
        ),
    )


RECORDS = st.lists(made_records(), max_size=12)


def oracle_arrivals(record: Record) -> list[tuple[int, float]]:
    """(moment, tokens) of one request, frame by frame, by the contract's words."""
    if record.outcome != "ok" or record.output_tokens is None:
        return []
    frames = list(record.frames)
    if not frames:
        return [] if record.end_ns is None else [(record.end_ns, float(record.output_tokens))]
    said = sum(frame.tokens or 0 for frame in frames)
    silent = [frame for frame in frames if frame.tokens is None] or frames
    rest = max(record.output_tokens - said, 0)
    return [
        (frame.at_ns, (frame.tokens or 0) + (rest / len(silent) if any(frame is one for one in silent) else 0.0))
        for frame in frames
    ]


def inside(moment_ns: int | None) -> bool:
    return moment_ns is not None and WINDOW_NS[0] <= moment_ns < WINDOW_NS[1]


@given(made_records())
def test_times_of_one_request_hang_together(record: Record) -> None:
    ttft, ttfa, e2e = request.ttft_ns(record), request.ttfa_ns(record), request.e2e_ns(record)
    assert e2e is not None
    if ttft is not None:
        assert ttfa is not None
        assert ttft <= ttfa <= e2e
        tail = (record.end_ns or 0) - (record.last_token_ns or 0)
        assert ttft + int(request.frame_gaps_ns(record.frames).sum()) + tail == e2e
    tpot = request.tpot_ns(record)
    if tpot is not None:
        assert record.output_tokens is not None
        span = (record.last_token_ns or 0) - (record.first_token_ns or 0)
        assert tpot * (record.output_tokens - 1) == pytest.approx(span)
    lag, from_sent = request.start_lag_ns(record), request.ttft_from_sent_ns(record)
    if lag is not None and from_sent is not None and ttft is not None:
        assert ttft == from_sent + lag


@settings(max_examples=200)
@given(RECORDS)
def test_throughput_is_that_of_the_slow_oracle(records: list[Record]) -> None:
    made = summarise(records, ASKED, RUN, Health())
    length_s = (WINDOW_NS[1] - WINDOW_NS[0]) / SECOND
    ok = [record for record in records if record.outcome == "ok"]
    expected = sum(tokens for record in records for at, tokens in oracle_arrivals(record) if inside(at)) / length_s
    if ok and all(record.output_tokens is None for record in ok):
        assert made.throughput.output_tokens_per_s is None
    else:
        assert made.throughput.output_tokens_per_s == pytest.approx(expected, rel=1e-9, abs=1e-9)
    prompts = [
        record.prompt_tokens
        for record in ok
        if record.prompt_tokens is not None and inside(record.first_token_ns or record.end_ns)
    ]
    if not ok or any(record.prompt_tokens is not None for record in ok):
        assert made.throughput.input_tokens_per_s == pytest.approx(sum(prompts) / length_s)
    assert made.throughput.requests_per_s == pytest.approx(sum(inside(r.end_ns) for r in ok) / length_s)


@settings(max_examples=200)
@given(RECORDS)
def test_requests_and_latencies_are_those_that_start_in_the_window(records: list[Record]) -> None:
    made = summarise(records, ASKED, RUN, Health())
    started = [record for record in records if inside(record.start_ns)]
    outcomes = Counter(record.outcome for record in started)
    counts = made.requests
    assert counts.started == len(started)
    assert counts.started == (counts.ok or 0) + counts.failed + (counts.cancelled or 0)
    assert (counts.ok, counts.error) == (outcomes["ok"], outcomes["error"])
    assert sum(counts.errors.values()) == counts.error
    assert made.run_requests.started == len(records)
    measured = [record for record in started if record.outcome == "ok"]
    for name, of in (("ttft", request.ttft_ns), ("tpot", request.tpot_ns), ("e2e", request.e2e_ns)):
        values = [value for record in measured if (value := of(record)) is not None]
        assert made.latency_ms[name].n == len(values)
        if values:
            assert made.latency_ms[name].max == pytest.approx(max(values) / 1e6)
    gaps = [int(gap) for record in measured for gap in request.frame_gaps_ns(record.frames)]
    assert made.latency_ms["frame_gap"].n == len(gaps)
    if gaps:
        assert made.latency_ms["frame_gap"].min == min(gaps) / 1e6
        assert made.latency_ms["frame_gap"].max == max(gaps) / 1e6


@settings(max_examples=200)
@given(RECORDS)
def test_the_timeline_holds_everything_that_happened(records: list[Record]) -> None:
    made = summarise(records, ASKED, RUN, Health()).timeline
    assert [second.at_s for second in made] == list(range(-3, 11))
    for second in made:
        start = RUN.measured_ns + second.at_s * SECOND
        flight = sum(
            max(min(record.end_ns or 0, start + SECOND) - max(record.sent_ns or 0, start), 0) for record in records
        )
        assert second.in_flight == pytest.approx(flight / SECOND, abs=1e-6)
        arrived = sum(n for r in records for at, n in oracle_arrivals(r) if start <= at < start + SECOND)
        assert second.output_tokens == pytest.approx(arrived, abs=1e-9)
        assert second.arrivals == sum(start <= (record.sent_ns or 0) < start + SECOND for record in records)


def streams(random: Random, n: int) -> list[Record]:
    """Streams whose reads hold 1 to 3 frames, at times late."""
    records = []
    for i in range(n):
        stamps: list[int] = []
        flags: list[int] = []
        at = 5 * SECOND + i
        for _ in range(random.randint(0, 8)):
            at += random.randint(1, 10**7)
            size = random.choice([1, 1, 1, 2, 3])
            stamps += [at] * size
            flags += [0 if size == 1 else SHARED | random.choice([0, LATE])] * size
        packed = Frames(user=array("q", stamps).tobytes(), flags=bytes(flags))
        changes: dict[str, Any] = {"frames": packed, "output_tokens": len(stamps), "token_source": "usage"}
        records.append(
            Record(id=str(i), seq=i, phase="measured", outcome="ok", sent_ns=5 * SECOND, end_ns=at, **changes)
        )
    return records


@given(st.randoms(use_true_random=False), st.integers(1, 20))
def test_reads_are_counted_as_a_loop_would(random: Random, n: int) -> None:
    records = streams(random, n)
    reads: list[int] = []
    late: list[int] = []
    for record in records:
        flags = record.frames.flags
        for i, frame in enumerate(record.frames):
            before = list(record.frames)[i - 1] if i else None
            if before is not None and before.user_ns == frame.user_ns:
                reads[-1] += 1
                continue
            reads.append(1)
            late.append(bool(flags and flags[i] & LATE))
    made = summarise(records, ASKED, RUN, Health()).generator
    if not reads:
        assert made.shared_reads_share is None
        return
    assert made.shared_reads_share == pytest.approx(sum(size > 1 for size in reads) / len(reads))
    assert made.late_reads_share is not None
    assert made.late_reads_share <= sum(is_late and size > 1 for size, is_late in zip(reads, late, strict=True)) / len(
        reads
    )


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=50))
def test_percentile_of_the_summary_is_that_of_the_values(ttfts: list[int]) -> None:
    import numpy as np

    records = [
        Record(
            id=str(i), seq=i, phase="measured", outcome="ok", sent_ns=6 * SECOND, first_token_ns=6 * SECOND + ttft,
            end_ns=8 * SECOND,
        )
        for i, ttft in enumerate(ttfts)
    ]  # fmt: skip
    made = summarise(records, ASKED, RUN, Health()).latency_ms["ttft"]
    expected = percentile(np.sort(np.array(ttfts)), 95)
    assert expected is not None
    assert made.p95 == pytest.approx(expected / 1e6)
