"""The stream cases of this project, fed in the pieces of their schedule; `tests/cases/INDEX.md` says why."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from nilometer.core.record import Record
from nilometer.wire.answer import Answer
from nilometer.wire.dialects import DIALECTS
from nilometer.wire.outcome import Verdict, is_event_stream, judge

CASES = Path(__file__).parents[2] / "cases" / "sse"
OTHER_DIALECTS = ("s19", "s21", "s23")
STEMS = sorted(path.name.removesuffix(".expected.json") for path in CASES.glob("*.expected.json"))
OURS = [stem for stem in STEMS if not stem.startswith(OTHER_DIALECTS)]


class Reading(NamedTuple):
    """A case read: the answer, the verdict, and when each event with matter was complete."""

    expected: dict[str, Any]
    answer: Answer
    verdict: Verdict
    matter_ms: list[float]
    tokens: list[int]
    body: bytes


def read(stem: str) -> Reading:
    expected: dict[str, Any] = msgspec.json.decode((CASES / f"{stem}.expected.json").read_bytes())
    (path,) = (path for path in CASES.glob(f"{stem}.*") if not path.name.endswith(".expected.json"))
    body = path.read_bytes()
    stream = is_event_stream(expected["content_type"], body[:400])
    assert stream is not None
    (dialect,) = (row for row in DIALECTS.values() if f"/v1{row.path}" == expected["endpoint"])
    reader = dialect.reader(stream, True)
    matter_ms: list[float] = []
    at = 0
    for ms, size in expected["schedule_ms_bytes"]:
        matter_ms += [ms] * reader.feed(body[at : at + size])
        at += size
    assert at == len(body)
    answer = reader.close()
    verdict = judge(
        status=expected["status"], content_type=expected["content_type"], head=body[:400], answer=answer, whole=True
    )
    return Reading(expected, answer, verdict, matter_ms, reader.tokens, body)


def record(reading: Reading) -> Record:
    """The record a load loop would make of it, in ns from `sent`."""
    matter_ns = [round(ms * 1_000_000) for ms in reading.matter_ms]
    answer = reading.answer
    return Record(
        id="case",
        seq=0,
        phase="measured",
        outcome=reading.verdict.outcome,
        sent_ns=0,
        first_token_ns=matter_ns[0] if matter_ns else None,
        last_token_ns=matter_ns[-1] if matter_ns else None,
        output_tokens=answer.output_tokens,
        token_source=answer.token_source,
        choices=answer.choices,
        hidden_tokens=answer.hidden_tokens,
    )


def tpot_ms(one: Record) -> float | None:
    if not one.has_tpot:
        return None
    assert one.first_token_ns is not None and one.last_token_ns is not None and one.output_tokens is not None
    return (one.last_token_ns - one.first_token_ns) / (one.output_tokens - 1) / 1_000_000


def test_every_case_of_these_dialects_is_here() -> None:
    assert [stem[:3] for stem in OURS] == [
        "s01", "s02", "s04", "s06", "s07", "s09", "s10", "s13", "s14", "s17", "s25",
    ]  # fmt: skip


@pytest.mark.parametrize("stem", OURS)
def test_times_of_the_case(stem: str) -> None:
    reading = read(stem)
    expected, times = reading.expected, reading.matter_ms
    first_answer = reading.answer.first_answer
    assert len(times) == reading.answer.matter_events == expected["token_events"]
    assert (times[0] if times else None) == expected["ttft_ms"]
    assert (None if first_answer is None else times[first_answer]) == expected["ttfa_ms"]
    assert (times[-1] if times else None) == expected["last_token_ms"]
    if "chunk_gaps_ms" in expected:
        assert [after - before for before, after in itertools.pairwise(times)] == expected["chunk_gaps_ms"]


@pytest.mark.parametrize("stem", [stem for stem in OURS if stem != "s25_non_streaming"])
def test_events_of_the_case(stem: str) -> None:
    expected, body = read(stem).expected, read(stem).body
    events = re.split(rb"(?:\r\n|\n){2}", body)
    data_events = [event for event in events if re.search(rb"^data:", event, re.MULTILINE)]
    reader = DIALECTS["chat"].reader(True, False)
    matter = [number for number, event in enumerate(data_events) if reader.feed(event + b"\n\n")]
    assert matter[0] == expected["first_token_event"]
    assert matter[-1] == expected["last_token_event"]
    assert reader.first_answer is not None
    assert matter[reader.first_answer] == expected["first_answer_event"]


@pytest.mark.parametrize("stem", OURS)
def test_counts_of_the_case(stem: str) -> None:
    reading = read(stem)
    expected, answer = reading.expected, reading.answer
    assert answer.token_source == expected["token_source"]
    if answer.token_source == "usage":
        assert answer.output_tokens == expected["completion_tokens"]
    assert answer.prompt_tokens == expected["prompt_tokens"]
    assert answer.reasoning_tokens == expected["reasoning_tokens"]
    assert answer.cached_tokens == expected["cached_tokens"]
    assert tpot_ms(record(reading)) == pytest.approx(expected["tpot_ms"], abs=1e-5)
    if "tokens_per_event" in expected:
        assert reading.tokens == expected["tokens_per_event"]


@pytest.mark.parametrize("stem", OURS)
def test_verdict_and_texts_of_the_case(stem: str) -> None:
    reading = read(stem)
    expected, answer, verdict = reading.expected, reading.answer, reading.verdict
    assert verdict.outcome == expected["outcome"]
    assert answer.finish_reason == expected["finish_reason"]
    assert answer.text == expected["text"]
    assert answer.reasoning == expected.get("reasoning_text")
    assert answer.tool_arguments == expected.get("tool_arguments")
    if "error_contains" in expected:
        assert verdict.error == "stream_error"
        assert expected["error_contains"] in (verdict.detail or "")
    else:
        assert verdict.error is None


def test_s13_is_estimated_from_its_frames() -> None:
    answer = read("s13_no_done_no_usage").answer
    assert answer.output_tokens == 3  # 12 bytes are 3 tokens, and so are 3 frames
    assert not answer.usage_seen


def test_s10_counts_no_tokens() -> None:
    answer = read("s10_error_frame_midstream").answer
    assert (answer.output_tokens, answer.matter_events) == (None, 2)
