"""What the mock understands of a request."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nilometer.engines.mock_ask import Refusal, decode, tokenize


def body(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


def test_chat_words_are_counted_over_all_messages_and_parts() -> None:
    messages = [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": "how high is"}, {"type": "image_url"}]},
        {"role": "assistant", "content": None},
    ]
    assert decode(body(messages=messages), chat=True).words == 5


def test_prompts_may_be_a_list() -> None:
    assert decode(body(prompt="a b  c\n"), chat=False).words == 3
    assert decode(body(prompt=["a b", "c"]), chat=False).words == 3


@pytest.mark.parametrize(
    ("fields", "limit"), [({}, None), ({"max_tokens": 4}, 4), ({"max_tokens": 4, "max_completion_tokens": 6}, 6)]
)
def test_the_newer_limit_wins(fields: dict[str, int], limit: int | None) -> None:
    assert decode(body(prompt="x", **fields), chat=False).limit == limit


def test_stream_options_are_told_apart_from_wanting_usage() -> None:
    assert not decode(body(prompt="x"), chat=False).has_stream_options
    asked = decode(body(prompt="x", stream=True, stream_options={"include_usage": False}), chat=False)
    assert (asked.has_stream_options, asked.include_usage) == (True, False)


@pytest.mark.parametrize(
    ("raw", "chat"),
    [
        (b"", True),
        (b"{", True),
        (b'{"prompt":"x"}', True),
        (b'{"messages":[]}', False),
        (b'{"messages":"x"}', True),
        (b'{"prompt":"x","max_tokens":0}', False),
        (b'{"prompt":"x","n":2}', False),
        (b'{"prompt":"\xff"}', False),
    ],
)
def test_bad_requests_are_refused_with_400(raw: bytes, chat: bool) -> None:
    with pytest.raises(Refusal) as refused:
        decode(raw, chat)
    assert refused.value.status == 400


def test_tokenize_gives_one_token_a_word() -> None:
    assert len(json.loads(tokenize(body(content="one two  two")))["tokens"]) == 3
    with pytest.raises(Refusal):
        tokenize(b"[")
