"""Answers of Ollama's own API: lines, thoughts, counts that leave out a zero, the body."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from nilometer.wire import ollama
from nilometer.wire.answer import Answer
from nilometer.wire.ask import Ask


def line(content: str = "", done: bool = False, **fields: Any) -> bytes:
    message = {"role": "assistant", "content": content, **fields.pop("message", {})}
    return msgspec.json.encode({"model": "m", "message": message, "done": done, **fields}) + b"\n"


def answered(*lines: bytes) -> tuple[Answer, list[int]]:
    reader = ollama.reader(True, True)
    counts = [reader.feed(one) for one in lines]
    return reader.close(), counts


def test_what_is_matter() -> None:
    tool = {"tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]}
    answer, counts = answered(
        line(), line(message={"thinking": "a"}), line("b"), line(message=tool), line(done=True, done_reason="stop")
    )
    assert (counts, answer.first_answer, answer.complete) == ([0, 1, 1, 1, 0], 1, True)
    assert (answer.text, answer.reasoning, answer.tool_arguments, answer.model) == ("b", "a", '{"a":1}', "m")


def test_a_count_that_is_absent_is_unknown() -> None:
    answer, _ = answered(line("abcd"), line(done=True, done_reason="stop", eval_count=3))
    assert (answer.prompt_tokens, answer.output_tokens, answer.token_source) == (None, 3, "usage")
    answer, _ = answered(line("abcd"), line(done=True, done_reason="stop"))
    assert (answer.usage_seen, answer.output_tokens, answer.token_source) == (False, 1, "estimated")


def test_a_stream_that_is_cut_is_not_complete() -> None:
    answer, counts = answered(line("a"), line("b", done=True)[:-9])
    assert (counts, answer.complete, answer.fault, answer.output_tokens) == ([1, 0], False, None, None)


@pytest.mark.parametrize("error", [b'{"error":"no room"}\n', b'{"error":{"message":"no room"}}\n'])
def test_an_error_line(error: bytes) -> None:
    fault = answered(line("a"), error)[0].fault
    assert fault is not None
    assert (fault.kind, fault.detail) == ("stream_error", "no room")


def test_body() -> None:
    ask = Ask(
        model="m", prompt="p", max_tokens=8, temperature=0.0, top_p=0.5, seed=3, extra={"options": {"num_ctx": 4096}}
    )
    assert msgspec.json.decode(ollama.body(ask)) == {
        "model": "m",
        "messages": [{"role": "user", "content": "p"}],
        "stream": True,
        "options": {"num_predict": 8, "temperature": 0.0, "top_p": 0.5, "seed": 3, "num_ctx": 4096},
    }
