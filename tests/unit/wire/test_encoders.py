"""Answers of models that generate nothing: an end, input tokens, no output; the bodies."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from nilometer.wire import encoders
from nilometer.wire.answer import Answer
from nilometer.wire.ask import Ask


def answered(told: dict[str, Any]) -> Answer:
    reader = encoders.reader(False, True)
    assert reader.feed(msgspec.json.encode(told)) == 0
    return reader.close()


@pytest.mark.parametrize(
    ("told", "prompt_tokens"),
    [
        ({"data": [{"embedding": [0.5] * 1000}], "usage": {"prompt_tokens": 6, "total_tokens": 6}}, 6),
        ({"data": [{"embedding": "AAAA"}], "usage": {"prompt_tokens": 6}}, 6),
        ({"results": [{"index": 0, "relevance_score": 0.5}], "usage": {"total_tokens": 9}}, 9),
        ({"results": [{"index": 0, "relevance_score": 0.5}]}, None),
    ],
)
def test_an_answer_is_complete_and_has_no_output(told: dict[str, Any], prompt_tokens: int | None) -> None:
    answer = answered(told)
    assert (answer.complete, answer.choices, answer.prompt_tokens) == (True, 1, prompt_tokens)
    assert (answer.output_tokens, answer.token_source, answer.matter_events) == (None, "none", 0)


def test_without_a_vector_it_is_no_answer() -> None:
    assert not answered({"data": [], "usage": {"prompt_tokens": 6}}).complete


def test_bodies() -> None:
    ask = Ask(model="m", prompt="p", max_tokens=8, temperature=0.0, extra={"dimensions": 64})
    assert msgspec.json.decode(encoders.embeddings_body(ask)) == {"model": "m", "input": "p", "dimensions": 64}
    told = msgspec.json.decode(encoders.rerank_body(ask))
    assert told == {"model": "m", "query": encoders.RERANK_QUERY, "documents": ["p"], "dimensions": 64}
