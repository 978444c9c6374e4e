"""What a machine tells: one event for each thing that a client or an operator could see."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Literal, NamedTuple

Kind = Literal["first", "token", "finish", "preempted", "rejected"]
Why = Literal["rate_limit", "too_long", "timeout"]


class Answer(NamedTuple):
    """A finished request: when its tokens came, seconds; `counts` of them at each stamp, None = one each."""

    stamps: array[float]
    counts: Sequence[int] | None
    tokens: int
    cached: int
    """Prompt tokens that were taken from the prefix cache."""
    entered_s: float
    """When it reached the engine: before that it was on its way or in front of it."""
    admitted_s: float
    """When it first got a slot."""
    preemptions: int
    replica: int = 0
    at_limit: bool = True
    """Whether the limit of tokens ended it, and not the model."""
    written: array[float] | None = None
    """When the engine wrote its tokens, where a proxy passed them on at other moments; `counts` are not of these."""

    @property
    def engine_stamps(self) -> array[float]:
        """When the engine wrote."""
        return self.stamps if self.written is None else self.written


class Event(NamedTuple):
    """At `at_s` this happened to the request `key`. `tokens`: how many came with it."""

    at_s: float
    kind: Kind
    key: int
    tokens: int = 0
    answer: Answer | None = None
    """Of a `finish`."""
    why: Why | None = None
    """Of a `rejected`."""
    replica: int = 0
    """Whose it is; 0 for a `rejected`."""


class Gauges(NamedTuple):
    """What an engine would show on its page of metrics; tokens, steps and preemptions count since it began."""

    running: int
    waiting: int
    blocks_held: int
    blocks_kept: int
    steps: int
    preemptions: int
    prefilled: int
    """Prompt tokens computed, again after preemptions included."""
    written: int
    prompts_asked: int
    """Prompt tokens of admitted requests."""
    prompts_found: int
    """Those that were taken from the prefix cache."""
    busy_s: float
    tokens_held: int = 0
    """Prompt and written tokens of the running, whatever was set aside for them."""
