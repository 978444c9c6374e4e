"""Completion answers: pieces of text, several choices, whole answers, the body."""

from __future__ import annotations

from typing import Any

import msgspec

from nilometer.wire import completions
from nilometer.wire.ask import Ask


def frame(text: str | None, finish: str | None = None, index: int = 0, **more: Any) -> bytes:
    choice = {"text": text, "index": index, "logprobs": None, "finish_reason": finish}
    return b"data: " + msgspec.json.encode({"id": "c", "model": "m", "choices": [choice], **more}) + b"\n\n"


def test_text_is_matter_and_an_empty_text_is_none() -> None:
    reader = completions.reader(True, True)
    assert [reader.feed(frame(text)) for text in ("", None, " a", "\n", " b")] == [0, 0, 1, 1, 1]
    assert (reader.first_answer, reader.complete) == (0, False)
    assert reader.feed(frame("", "length", usage={"prompt_tokens": 4, "completion_tokens": 3})) == 0
    answer = reader.close()
    assert (answer.text, answer.finish_reason, answer.output_tokens) == (" a\n b", "length", 3)
    assert (answer.reasoning, answer.tool_arguments) == (None, None)


def test_choices_are_followed_apart() -> None:
    reader = completions.reader(True, True)
    for chunk in (frame("a"), frame("b", index=1), frame("c"), frame("", "stop", index=1), frame("d")):
        reader.feed(chunk)
    assert not reader.complete
    reader.feed(frame("", "length"))
    answer = reader.close()
    assert (answer.complete, answer.choices, answer.text, answer.finish_reason) == (True, 2, "acd", "length")


def test_a_whole_answer() -> None:
    reader = completions.reader(False, True)
    assert reader.feed(frame(" a gauge", "length", usage={"prompt_tokens": 4, "completion_tokens": 2})[6:]) == 0
    answer = reader.close()
    assert (answer.text, answer.output_tokens, answer.matter_events, answer.complete) == (" a gauge", 2, 0, True)


def test_body() -> None:
    ask = Ask(model="m", prompt="p", max_tokens=4, stream=False, extra={"ignore_eos": True})
    assert msgspec.json.decode(completions.body(ask)) == {
        "model": "m",
        "prompt": "p",
        "max_tokens": 4,
        "stream": False,
        "ignore_eos": True,
    }
