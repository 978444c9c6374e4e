"""What one request asks of a model, before a dialect turns it into a body. No defaults of a server are guessed here."""

from __future__ import annotations

from typing import Any

import msgspec


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """One request. None leaves the key out of the body; `extra` is laid over it last and so wins."""

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
    return written(
        ask,
        {
            "model": ask.model,
            **subject,
            "max_tokens": ask.max_tokens,
            "stream": ask.stream,
            "stream_options": {"include_usage": True} if ask.stream and ask.include_usage else None,
            "temperature": ask.temperature,
            "top_p": ask.top_p,
            "seed": ask.seed,
        },
    )


def written(ask: Ask, body: dict[str, object]) -> bytes:
    """`body` as JSON, what is None left out at any depth, the ask's `extra` laid over it."""
    return msgspec.json.encode(laid_over(_told(body), ask.extra))


def laid_over(body: dict[str, Any], extra: dict[str, Any]) -> dict[str, Any]:
    """`extra` over `body`: objects key by key, anything else in the place of what was there."""
    merged = dict(body)
    for key, value in extra.items():
        below = merged.get(key)
        merged[key] = laid_over(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged


def _told(body: dict[str, object]) -> dict[str, Any]:
    return {key: _told(value) if isinstance(value, dict) else value for key, value in body.items() if value is not None}
