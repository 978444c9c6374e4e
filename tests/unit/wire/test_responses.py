"""Answers of the responses API: what is matter, what repeats it, how they end, the body."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from nilometer.wire import responses
from nilometer.wire.answer import Answer
from nilometer.wire.ask import Ask


def event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: ".encode() + msgspec.json.encode({"type": kind, **fields}) + b"\n\n"


def answered(*events: bytes) -> tuple[Answer, list[int]]:
    reader = responses.reader(True, True)
    counts = [reader.feed(one) for one in events]
    return reader.close(), counts


def ended(status: str = "completed", **more: Any) -> bytes:
    return event(f"response.{status}", response={"id": "r", "model": "m", "status": status, "output": [], **more})


@pytest.mark.parametrize(
    ("one", "counts"),
    [
        (event("response.output_text.delta", delta="a"), 1),
        (event("response.output_text.delta", delta=""), 0),
        (event("response.output_text.done", text="a"), 0),
        (event("response.refusal.delta", delta="a"), 1),
        (event("response.reasoning_text.delta", delta="a"), 1),
        (event("response.reasoning_summary_text.delta", delta="a"), 1),
        (event("response.custom_tool_call_input.delta", delta="a"), 1),
        (event("response.mcp_call_arguments.delta", delta="a"), 1),
        (event("response.code_interpreter_call_code.delta", delta="a"), 1),
        (event("response.output_item.added", item={"type": "message"}), 0),
        (event("response.output_item.added", item={"type": "function_call", "name": "f", "arguments": ""}), 1),
        (event("response.output_item.done", item={"type": "function_call", "name": "f", "arguments": "{}"}), 0),
        (event("response.audio.delta", delta="AAAA"), 0),
        (event("response.news", delta={"a": 1}, item=7, response="x"), 0),
    ],
)
def test_what_is_matter(one: bytes, counts: int) -> None:
    answer, seen = answered(one)
    assert (seen, answer.fault) == ([counts], None)


def test_a_summary_shows_thoughts_but_hides_those_that_are_counted() -> None:
    usage = {"input_tokens": 3, "output_tokens": 9, "output_tokens_details": {"reasoning_tokens": 7}}
    for kind, hidden in (("reasoning_summary_text", True), ("reasoning_text", False)):
        answer, _ = answered(event(f"response.{kind}.delta", delta="a"), ended(usage=usage))
        assert (answer.hidden_tokens, answer.reasoning, answer.reasoning_tokens) == (hidden, "a", 7)


def test_what_a_server_says_of_its_own_time_is_kept() -> None:
    response = {"status": "completed"}
    answer, _ = answered(event("response.completed", response=response, timings={"predicted_ms": 3.5}))
    assert answer.server == {"predicted_ms": 3.5}


def test_details_may_be_null() -> None:
    usage = {"input_tokens": 3, "output_tokens": 9, "input_tokens_details": None, "output_tokens_details": None}
    answer, _ = answered(ended(usage=usage))
    assert (answer.prompt_tokens, answer.output_tokens, answer.complete, answer.model) == (3, 9, True, "m")


@pytest.mark.parametrize(
    "one",
    [
        ended("failed", error={"code": "x", "message": "no water"}),
        event("error", code="x", message="no water", sequence_number=3),
        b'data: {"type":"error","message":"no water"}\n\n',
        b'data: {"error":{"message":"no water"}}\n\n',
    ],
)
def test_failures_inside_an_accepted_answer(one: bytes) -> None:
    fault = answered(event("response.output_text.delta", delta="a"), one)[0].fault
    assert fault is not None
    assert (fault.kind, fault.detail) == ("stream_error", "no water")


def test_a_whole_answer_with_a_tool_call() -> None:
    reader = responses.reader(False, True)
    item = {"type": "function_call", "name": "gauge", "arguments": "{}"}
    reader.feed(msgspec.json.encode({"id": "r", "model": "m", "status": "completed", "output": [item]}))
    answer = reader.close()
    assert (answer.complete, answer.tool_arguments, answer.matter_events) == (True, "{}", 0)


def test_a_response_that_was_cancelled_was_given_up() -> None:
    fault = answered(event("response.output_text.delta", delta="a"), ended("cancelled"))[0].fault
    assert fault == ("stream_error", "cancelled")


@pytest.mark.parametrize("status", ["queued", "in_progress"])
def test_a_response_that_is_only_begun_is_no_answer(status: str) -> None:
    assert not answered(ended(status))[0].complete
    reader = responses.reader(False, True)
    reader.feed(msgspec.json.encode({"id": "r", "status": status, "output": []}))
    answer = reader.close()
    assert (answer.complete, answer.choices, answer.output_tokens) == (False, 0, None)


def test_body() -> None:
    ask = Ask(model="m", prompt="p", max_tokens=8, temperature=0.0, top_p=0.5, seed=3, extra={"store": True})
    assert msgspec.json.decode(responses.body(ask)) == {
        "model": "m",
        "input": "p",
        "max_output_tokens": 8,
        "stream": True,
        "temperature": 0.0,
        "top_p": 0.5,
        "store": True,
    }
