"""Answers of text-generation-inference's own API: an event a token, the end, the body."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from nilometer.wire import tgi
from nilometer.wire.answer import Answer
from nilometer.wire.ask import Ask


def token(text: str, *, special: bool = False, **more: Any) -> bytes:
    return b"data:" + msgspec.json.encode({"index": 1, "token": {"text": text, "special": special}, **more}) + b"\n\n"


def answered(*events: bytes) -> tuple[Answer, list[int]]:
    reader = tgi.reader(True, True)
    counts = [reader.feed(one) for one in events]
    return reader.close(), counts


def test_an_event_is_a_token_whatever_its_text() -> None:
    details = {"finish_reason": "eos_token", "generated_tokens": 3, "input_length": 5}
    answer, counts = answered(token("a"), token(""), token("</s>", special=True, generated_text="a", details=details))
    assert (counts, answer.text, answer.finish_reason) == ([1, 1, 1], "a", "stop")
    assert (answer.output_tokens, answer.prompt_tokens, answer.complete) == (3, 5, True)


def test_a_stream_without_its_details_is_not_complete() -> None:
    assert not answered(token("a"))[0].complete


def test_the_whole_text_ends_a_stream_whose_details_were_left_out() -> None:
    answer, _ = answered(token("a"), token("b", generated_text="ab"))
    assert (answer.complete, answer.finish_reason, answer.output_tokens) == (True, None, 2)


@pytest.mark.parametrize(
    ("ask", "parameters"),
    [
        (Ask(model=None, prompt="p", max_tokens=8, temperature=0.0, top_p=1.0), {"do_sample": False}),
        (
            Ask(model=None, prompt="p", max_tokens=8, temperature=0.5, top_p=0.9, seed=3),
            {"do_sample": True, "temperature": 0.5, "top_p": 0.9, "seed": 3},
        ),
    ],
)
def test_body_leaves_out_what_the_server_refuses(ask: Ask, parameters: dict[str, Any]) -> None:
    told = {"max_new_tokens": 8, "details": True, **parameters}
    assert msgspec.json.decode(tgi.body(ask)) == {"inputs": "p", "parameters": told}
