"""Generated matter: its two channels, the piece of text a frame carries, and the texts that are kept when asked for."""

from __future__ import annotations

from typing import NamedTuple

REASONING = 1
"""Bit of a frame's matter: thoughts."""
ANSWER = 2
"""Bit of a frame's matter: anything else the model generated."""


class Piece(NamedTuple):
    """Some text of one channel; `matter` is the channel's bit."""

    matter: int
    text: str


class Kept:
    """The generated text of the first choice."""

    __slots__ = ("_calls", "_reasoning", "_text")

    def __init__(self) -> None:
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls: dict[int, list[str]] = {}

    def add(self, matter: int, text: str) -> None:
        """Append a piece to its channel."""
        (self._reasoning if matter == REASONING else self._text).append(text)

    def add_arguments(self, call: int, text: str) -> None:
        """Append a piece of the arguments of tool call number `call`."""
        self._calls.setdefault(call, []).append(text)

    @property
    def text(self) -> str:
        return "".join(self._text)

    @property
    def reasoning(self) -> str | None:
        return "".join(self._reasoning) if self._reasoning else None

    @property
    def tool_arguments(self) -> str | None:
        """One line a call, in the order of the calls' numbers."""
        return "\n".join("".join(texts) for _, texts in sorted(self._calls.items())) if self._calls else None
