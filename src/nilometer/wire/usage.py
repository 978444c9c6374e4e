"""Token counts as a server states them: the shape of a `usage` object, and the last value of each count.

Counts are never summed: running usage repeats the total so far, and the last one is the answer's.
"""

from __future__ import annotations

import msgspec


class PromptDetails(msgspec.Struct, gc=False):
    """Of the prompt's tokens."""

    cached_tokens: int | None = None


class OutputDetails(msgspec.Struct, gc=False):
    """Of the generated tokens."""

    reasoning_tokens: int | None = None


class Usage(msgspec.Struct, gc=False):
    """A `usage` object, running or final."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: PromptDetails | None = None
    completion_tokens_details: OutputDetails | None = None


class Counts:
    """The last value of each count over all usage objects of one answer; None = never stated."""

    __slots__ = ("_frames", "_total", "cached", "output", "prompt", "reasoning", "seen")

    def __init__(self) -> None:
        self.seen = False
        self.prompt: int | None = None
        self.cached: int | None = None
        self.output: int | None = None
        self.reasoning: int | None = None
        self._frames = 0
        self._total = 0

    def take(self, usage: Usage) -> None:
        """Take over what `usage` states; a count below 0 states nothing."""
        self.seen = True
        self.prompt = _newer(usage.prompt_tokens, self.prompt)
        self.output = _newer(usage.completion_tokens, self.output)
        if usage.prompt_tokens_details is not None:
            self.cached = _newer(usage.prompt_tokens_details.cached_tokens, self.cached)
        if usage.completion_tokens_details is not None:
            self.reasoning = _newer(usage.completion_tokens_details.reasoning_tokens, self.reasoning)

    def of_frame(self, index: int, usage: Usage) -> int:
        """Tokens that `usage` states for the frame with matter number `index`, from 0; -1 unknown.

        That is its running total less the total at the frame with matter before. Where that one had no total, the
        difference would belong to several frames, so it is unknown for each.
        """
        total = usage.completion_tokens
        if total is None or total < 0:
            return -1
        own = total - self._total if index == self._frames else -1
        self._frames = index + 1
        self._total = total
        return max(own, -1)


def _newer(stated: int | None, known: int | None) -> int | None:
    return known if stated is None or stated < 0 else stated
