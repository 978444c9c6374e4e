"""What a client asks of the mock server, decoded from the request body. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec


class _Message(msgspec.Struct):
    role: str = "user"
    content: str | list[dict[str, Any]] | None = None


class _StreamOptions(msgspec.Struct):
    include_usage: bool = False


class _Body(msgspec.Struct):
    model: str | None = None
    messages: list[_Message] | None = None
    prompt: str | list[str] | None = None
    stream: bool = False
    stream_options: _StreamOptions | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    ignore_eos: bool = False
    min_tokens: int = 0
    n: int = 1


class Refusal(Exception):  # noqa: N818 - an answer, not a fault of ours
    """The request is answered with this status and this message."""

    def __init__(self, status: int, message: str, kind: str = "invalid_request_error") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.kind = kind


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """One generation request as the mock understands it."""

    chat: bool
    model: str | None
    texts: tuple[str, ...]
    """Of its prompt, in order."""
    words: int
    stream: bool
    has_stream_options: bool
    include_usage: bool
    limit: int | None
    ignore_eos: bool
    min_tokens: int
    chunked: bool = True
    """Whether the client can read a body in chunks."""


_decode = msgspec.json.Decoder(_Body).decode


def decode(body: bytes, chat: bool) -> Ask:
    """The request; raises Refusal(400) where it is no valid one."""
    try:
        asked = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as fault:
        raise Refusal(400, f"invalid request: {fault}") from None
    if (asked.messages if chat else asked.prompt) is None:
        raise Refusal(400, f"'{'messages' if chat else 'prompt'}' is required")
    if asked.n != 1:
        raise Refusal(400, "'n' must be 1")
    limit = asked.max_tokens if asked.max_completion_tokens is None else asked.max_completion_tokens
    if limit is not None and limit < 1:
        raise Refusal(400, "'max_tokens' must be at least 1")
    texts = tuple(_chat_texts(asked.messages or []) if chat else _prompt_texts(asked.prompt or ""))
    return Ask(
        chat=chat,
        model=asked.model,
        texts=texts,
        words=sum(len(text.split()) for text in texts),
        stream=asked.stream,
        has_stream_options=asked.stream_options is not None,
        include_usage=asked.stream_options is not None and asked.stream_options.include_usage,
        limit=limit,
        ignore_eos=asked.ignore_eos,
        min_tokens=asked.min_tokens,
    )


def _chat_texts(messages: list[_Message]) -> Iterator[str]:
    for message in messages:
        if isinstance(message.content, str):
            yield message.content
        else:
            yield from (str(part.get("text", "")) for part in message.content or [])


def _prompt_texts(prompt: str | list[str]) -> list[str]:
    return [prompt] if isinstance(prompt, str) else prompt


class _Tokenize(msgspec.Struct):
    content: str = ""
    add_special: bool = False


def tokenize(body: bytes) -> bytes:
    """The answer to llama.cpp's /tokenize: one token a word; raises Refusal(400)."""
    try:
        asked = msgspec.json.decode(body, type=_Tokenize)
    except msgspec.DecodeError as fault:
        raise Refusal(400, f"invalid request: {fault}") from None
    return msgspec.json.encode({"tokens": [sum(word.encode()) for word in asked.content.split()]})
