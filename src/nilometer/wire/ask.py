"""What one request asks of a model, before a dialect turns it into a body. No defaults of a server are guessed here."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

SYSTEM = "system"


class Turn(NamedTuple):
    """What was said before the prompt, and by whom: `system`, `user`, `assistant`."""

    role: str
    text: str


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """One request. None leaves the key out of the body; `extra` is laid over it last and so wins.

    `turns` come before the prompt, which is the user's.
    """

    model: str | None
    prompt: str
    max_tokens: int | None
    stream: bool = True
    include_usage: bool = True
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    extra: dict[str, Any] = {}
    turns: tuple[Turn, ...] = ()

    def messages(self) -> list[dict[str, object]]:
        """The conversation as most APIs take it."""
        said = [*self.turns, Turn("user", self.prompt)]
        return [{"role": turn.role, "content": turn.text} for turn in said]

    def system(self) -> str | None:
        """What the system says, for an API that takes it apart from the messages; None where it says nothing."""
        return "\n\n".join(turn.text for turn in self.turns if turn.role == SYSTEM) or None

    def text(self) -> str:
        """The conversation as one text, for an API that knows no messages."""
        return "\n\n".join([*(turn.text for turn in self.turns), self.prompt])


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
