"""What one request asks of a model, before a dialect turns it into a body. No defaults of a server are guessed here."""

from __future__ import annotations

from typing import Any

import msgspec


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """One request. None leaves the key out of the body; `extra` is merged last and so wins."""

    model: str | None
    prompt: str
    max_tokens: int | None
    stream: bool = True
    include_usage: bool = True
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    extra: dict[str, Any] = {}


def encode(ask: Ask, subject: dict[str, object]) -> bytes:
    """The JSON body of an OpenAI-like request: `subject` is the key that holds the prompt, in the dialect's form."""
    body: dict[str, object] = {
        "model": ask.model,
        **subject,
        "max_tokens": ask.max_tokens,
        "stream": ask.stream,
        "stream_options": {"include_usage": True} if ask.stream and ask.include_usage else None,
        "temperature": ask.temperature,
        "top_p": ask.top_p,
        "seed": ask.seed,
    }
    told = {key: value for key, value in body.items() if value is not None}
    return msgspec.json.encode({**told, **ask.extra})
