"""Answers of Gemini: candidates, thoughts, counts apart, blocked prompts, the body."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from nilometer.wire import gemini
from nilometer.wire.answer import Answer
from nilometer.wire.ask import Ask


def chunk(*parts: dict[str, Any], finish: str | None = None, **usage: int) -> bytes:
    candidate = {"content": {"parts": list(parts)}, "finishReason": finish}
    return b"data: " + msgspec.json.encode({"candidates": [candidate], "usageMetadata": usage}) + b"\r\n\r\n"


def answered(*chunks: bytes) -> tuple[Answer, list[int]]:
    reader = gemini.reader(True, True)
    for one in chunks:
        reader.feed(one)
    return reader.close(), reader.tokens


def test_thoughts_belong_to_the_output_and_are_shown_apart() -> None:
    answer, tokens = answered(
        chunk({"text": "hm", "thought": True}, thoughtsTokenCount=2),
        chunk({"text": "a"}, finish="STOP", promptTokenCount=7, candidatesTokenCount=1, thoughtsTokenCount=2),
    )
    assert (tokens, answer.output_tokens, answer.reasoning_tokens, answer.hidden_tokens) == ([2, 1], 3, 2, False)
    assert (answer.text, answer.reasoning, answer.prompt_tokens, answer.complete) == ("a", "hm", 7, True)


def test_without_a_finish_reason_it_is_not_complete() -> None:
    assert not answered(chunk({"text": "a"}))[0].complete


@pytest.mark.parametrize(
    ("native", "reason"),
    [("MAX_TOKENS", "length"), ("SAFETY", "content_filter"), ("IMAGE_SAFETY", "content_filter"), ("OTHER", "other")],
)
def test_finish_reasons(native: str, reason: str) -> None:
    answer, _ = answered(chunk({"text": "a"}, finish=native))
    assert (answer.native_finish_reason, answer.finish_reason) == (native, reason)


def test_candidates_are_followed_apart() -> None:
    told = {"candidates": [{"index": 0, "finishReason": "STOP"}, {"index": 1, "content": {"parts": [{"text": "a"}]}}]}
    answer, _ = answered(b"data: " + msgspec.json.encode(told) + b"\n\n")
    assert (answer.choices, answer.complete) == (2, False)


@pytest.mark.parametrize("part", [{"executableCode": {"code": "1"}}, {"inlineData": {"data": "AAAA"}}])
def test_what_is_generated_and_no_text_is_matter_all_the_same(part: dict[str, Any]) -> None:
    answer, tokens = answered(chunk(part, candidatesTokenCount=3), chunk({"text": "a"}, finish="STOP"))
    assert (len(tokens), answer.first_answer, answer.text) == (2, 0, "a")


FULL = b'{\n  "error": {\n    "code": 503,\n    "message": "The river is full.",\n    "status": "UNAVAILABLE"\n  }\n}\n'


@pytest.mark.parametrize("before", [chunk({"text": "a"}), chunk({"text": "a"}, finish="STOP")])
@pytest.mark.parametrize("error", [FULL, FULL.replace(b"\n", b"\r\n"), b"[" + FULL + b"]", FULL + b"\n", FULL.strip()])
def test_an_error_that_stands_bare_in_the_stream(before: bytes, error: bytes) -> None:
    for size in (1, 7, 1000):
        body = before + error
        answer, _ = answered(*(body[at : at + size] for at in range(0, len(body), size)))
        assert answer.fault == ("stream_error", "The river is full."), size


def test_an_array_of_one_error_is_an_error() -> None:
    reader = gemini.reader(False, False)
    reader.feed(b"[" + FULL + b"]")
    assert reader.close().fault == ("stream_error", "The river is full.")


def test_body() -> None:
    ask = Ask(model="m", prompt="p", max_tokens=8, temperature=0.0, top_p=0.5, seed=3)
    assert msgspec.json.decode(gemini.body(ask)) == {
        "contents": [{"role": "user", "parts": [{"text": "p"}]}],
        "generationConfig": {"maxOutputTokens": 8, "temperature": 0.0, "topP": 0.5, "seed": 3},
    }
