"""The stream cases and the captures of every dialect, fed in the pieces of their schedule.

`tests/cases/INDEX.md` says why each case is there.
"""

from __future__ import annotations

import itertools
import re
from typing import Any, NamedTuple

import pytest
from tests.loopback.replay import case, dialect_of, stems

from nilometer.core.record import Record
from nilometer.wire.answer import Answer
from nilometer.wire.dialects import DIALECTS
from nilometer.wire.outcome import Verdict, is_stream, judge

STEMS = stems()


class Reading(NamedTuple):
    """A case read: the answer, the verdict, and when each event with matter was complete."""

    expected: dict[str, Any]
    answer: Answer
    verdict: Verdict
    matter_ms: list[float]
    tokens: list[int]
    body: bytes


def read(stem: str) -> Reading:
    reply, expected = case(stem)
    body = reply.body
    dialect = DIALECTS[dialect_of(expected)]
    stream = is_stream(expected["content_type"], body[:400], lines=dialect.lines)
    assert stream is not None
    reader = dialect.reader(stream, True)
    matter_ms: list[float] = []
    at = 0
    for ms, size in expected["schedule_ms_bytes"]:
        matter_ms += [ms] * reader.feed(body[at : at + size])
        at += size
    assert at == len(body)
    answer = reader.close()
    verdict = judge(
        status=expected["status"],
        content_type=expected["content_type"],
        head=body[:400],
        answer=answer,
        whole=True,
        lines=dialect.lines,
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


@pytest.mark.parametrize("stem", STEMS)
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


@pytest.mark.parametrize("stem", [stem for stem in STEMS if case(stem)[1]["token_events"]])
def test_events_of_the_case(stem: str) -> None:
    reply, expected = case(stem)
    dialect = DIALECTS[dialect_of(expected)]
    blocks = reply.body.splitlines(True) if dialect.lines else re.split(rb"(?<=\n\n)|(?<=\r\n\r\n)", reply.body)
    events = [block for block in blocks if dialect.lines or re.search(rb"^data:", block, re.MULTILINE)]
    reader = dialect.reader(True, False)
    matter = [number for number, event in enumerate(events) if reader.feed(event)]
    assert (matter[0], matter[-1]) == (expected["first_token_event"], expected["last_token_event"])
    assert reader.first_answer is not None
    assert matter[reader.first_answer] == expected["first_answer_event"]
    assert matter == expected.get("token_event_numbers", matter)


@pytest.mark.parametrize("stem", STEMS)
def test_any_split_of_the_case_reads_the_same(stem: str) -> None:
    reply, expected = case(stem)
    dialect = DIALECTS[dialect_of(expected)]
    stream = is_stream(expected["content_type"], reply.body[:400], lines=dialect.lines)
    assert stream is not None
    whole, bytewise = dialect.reader(stream, True), dialect.reader(stream, True)
    assert whole.feed(reply.body) == sum(bytewise.feed(bytes([byte])) for byte in reply.body)
    assert (whole.close(), whole.tokens) == (bytewise.close(), bytewise.tokens)


@pytest.mark.parametrize("stem", STEMS)
def test_counts_of_the_case(stem: str) -> None:
    reading = read(stem)
    expected, answer = reading.expected, reading.answer
    assert answer.token_source == expected["token_source"]
    if answer.token_source == "usage":
        assert answer.output_tokens == expected["completion_tokens"]
    assert answer.prompt_tokens == expected["prompt_tokens"]
    assert answer.reasoning_tokens == expected["reasoning_tokens"]
    assert answer.hidden_tokens is expected.get("hidden", False)
    assert answer.server == expected.get("server_sent", answer.server)
    assert answer.cached_tokens == expected["cached_tokens"]
    assert tpot_ms(record(reading)) == pytest.approx(expected["tpot_ms"], abs=1e-5)
    if "tokens_per_event" in expected:
        assert reading.tokens == expected["tokens_per_event"]


@pytest.mark.parametrize("stem", STEMS)
def test_verdict_and_texts_of_the_case(stem: str) -> None:
    reading = read(stem)
    expected, answer, verdict = reading.expected, reading.answer, reading.verdict
    assert verdict.outcome == expected["outcome"]
    assert answer.finish_reason == expected["finish_reason"]
    assert answer.native_finish_reason == expected.get("native_finish_reason", answer.native_finish_reason)
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


def test_s19_states_its_times_in_nanoseconds() -> None:
    server = read("s19_ollama_chat_ndjson").answer.server
    assert server is not None
    told = read("s19_ollama_chat_ndjson").expected["server"]
    eval_ns, load_ns, prompt_ns = (server[f"{name}_duration"] for name in ("eval", "load", "prompt_eval"))
    assert isinstance(eval_ns, int) and isinstance(load_ns, int) and isinstance(prompt_ns, int)
    assert 5 / eval_ns * 1e9 == pytest.approx(told["eval_tps"], abs=1e-5)
    assert (load_ns / 1e6, prompt_ns / 1e6) == (told["load_ms"], told["prompt_eval_ms"])
