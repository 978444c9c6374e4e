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
        """Take over what an OpenAI-like `usage` states."""
        prompt, output = usage.prompt_tokens_details, usage.completion_tokens_details
        self.state(
            prompt=usage.prompt_tokens,
            output=usage.completion_tokens,
            cached=None if prompt is None else prompt.cached_tokens,
            reasoning=None if output is None else output.reasoning_tokens,
        )

    def state(
        self,
        *,
        prompt: int | None = None,
        output: int | None = None,
        cached: int | None = None,
        reasoning: int | None = None,
    ) -> None:
        """Take over what a server states; None and a count below 0 state nothing, nor does a prompt of no tokens."""
        self.seen = True
        self.prompt = _newer(prompt or None, self.prompt)
        self.output = _newer(output, self.output)
        self.cached = _newer(cached, self.cached)
        self.reasoning = _newer(reasoning, self.reasoning)

    def of_frame(self, index: int, total: int | None) -> int:
        """Tokens of the frame with matter number `index`, from 0, by its running total; -1 unknown.

        That is the total less the total at the frame with matter before. Where that one had no total, the
        difference would belong to several frames, so it is unknown for each.
        """
        if total is None or total < 0:
            return -1
        own = total - self._total if index == self._frames else -1
        self._frames = index + 1
        self._total = total
        return max(own, -1)


def _newer(stated: int | None, known: int | None) -> int | None:
    return known if stated is None or stated < 0 else stated
