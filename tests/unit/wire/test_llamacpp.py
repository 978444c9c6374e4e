"""Answers of llama.cpp's own API: running counts, how they end, the body."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from nilometer.wire import llamacpp
from nilometer.wire.answer import Answer
from nilometer.wire.ask import Ask


def event(content: str, predicted: int | None = None, **more: Any) -> bytes:
    told = {"index": 0, "content": content, "stop": False, "tokens_predicted": predicted, "tokens_evaluated": 4, **more}
    return b"data: " + msgspec.json.encode(told) + b"\n\n"


def answered(*events: bytes) -> tuple[Answer, list[int]]:
    reader = llamacpp.reader(True, True)
    for one in events:
        reader.feed(one)
    return reader.close(), reader.tokens


def test_running_counts_give_the_tokens_of_each_event() -> None:
    answer, tokens = answered(event("a", 1), event("bc", 3), event("", 3, stop=True, stop_type="eos"))
    assert (tokens, answer.output_tokens, answer.prompt_tokens, answer.finish_reason) == ([1, 2], 3, 4, "stop")


@pytest.mark.parametrize(("stop_type", "reason"), [("limit", "length"), ("word", "stop"), (None, "stop")])
def test_how_it_ends(stop_type: str | None, reason: str) -> None:
    assert answered(event("a", 1), event("", 1, stop=True, stop_type=stop_type))[0].finish_reason == reason


@pytest.mark.parametrize(
    ("timings", "cached"), [({"cache_n": 3}, 3), ({"cache_n": None}, None), ({}, None), (None, None)]
)
def test_its_timings_tell_what_of_the_prompt_was_cached(timings: dict[str, Any] | None, cached: int | None) -> None:
    answer = answered(event("a", 1), event("", 1, stop=True, timings=timings))[0]
    assert (answer.prompt_tokens, answer.cached_tokens) == (4, cached)


def test_prompt_progress_is_no_matter() -> None:
    assert answered(event("", 0, prompt_progress={"total": 4}))[1] == []


def test_body() -> None:
    ask = Ask(model="m", prompt="p", max_tokens=8, temperature=0.0, seed=3, extra={"ignore_eos": True})
    told = {"prompt": "p", "n_predict": 8, "stream": True, "temperature": 0.0, "seed": 3, "ignore_eos": True}
    assert msgspec.json.decode(llamacpp.body(ask)) == told
