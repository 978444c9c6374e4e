"""Seconds of one step of an engine, from the prompt tokens in it, the tokens that sequences decode, and the cached
tokens that are read. While a batch stays as it is only the cached tokens change, and the seconds are the greatest of a
few straight lines in them: a simulator may leap over such steps and stay exact.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, Protocol

import msgspec

from nilometer.plan.latency.step import decode_step, prefill_step
from nilometer.plan.latency.work import Setup

KEPT = 1 << 14
"""Compositions whose lines are kept."""


class Line(NamedTuple):
    """Seconds = `at_s` + `cached_token_s` x cached tokens read."""

    at_s: float
    cached_token_s: float


class Cost(Protocol):
    """What an engine asks. `decoded` counts tokens: with speculation several of one sequence."""

    def seconds(self, prefilled: int, decoded: int, cached: int) -> float: ...

    def lines(self, prefilled: int, decoded: int) -> tuple[Line, ...]: ...


class Linear(msgspec.Struct, frozen=True, kw_only=True):
    """fixed + prompt tokens x b + decoded tokens x c + cached tokens x d, in seconds."""

    fixed_s: float = 0.0
    prefill_token_s: float = 0.0
    decode_token_s: float = 0.0
    cached_token_s: float = 0.0

    def seconds(self, prefilled: int, decoded: int, cached: int) -> float:
        """Of one step."""
        return (
            self.fixed_s
            + prefilled * self.prefill_token_s
            + decoded * self.decode_token_s
            + cached * self.cached_token_s
        )

    def lines(self, prefilled: int, decoded: int) -> tuple[Line, ...]:
        """The one line of this composition."""
        return (Line(self.seconds(prefilled, decoded, 0), self.cached_token_s),)


class Kinked(msgspec.Struct, frozen=True):
    """The slowest of several costs: bytes to be read or operations to be made, whichever takes longer."""

    parts: tuple[Linear, ...]

    def seconds(self, prefilled: int, decoded: int, cached: int) -> float:
        """Of one step."""
        return max(part.seconds(prefilled, decoded, cached) for part in self.parts)

    def lines(self, prefilled: int, decoded: int) -> tuple[Line, ...]:
        """One line for each part."""
        return tuple(part.lines(prefilled, decoded)[0] for part in self.parts)


class Roofline:
    """Steps of a model on a device by the roofline of `plan.latency`, without any tuning.

    A chunk of a prompt beside decoding sequences adds what it computes and sends (`Step.riding_s`); by itself it also
    reads the weights. What a cached token costs is taken at sequences of `context` tokens: for layers with a window,
    whose cache stops growing, the line is true near there only. Raises no errors of its own.
    """

    def __init__(self, setup: Setup, context: int = 1024) -> None:
        one = decode_step(setup, 1, context)
        self._setup = setup
        self._cached_token_s = (max if one.overlaps else _both)(one.cache_s, one.attention_s) / context
        self.lines = lru_cache(maxsize=KEPT)(self._lines)

    def seconds(self, prefilled: int, decoded: int, cached: int) -> float:
        """Of one step."""
        return max(at_s + slope_s * cached for at_s, slope_s in self.lines(prefilled, decoded))

    def _lines(self, prefilled: int, decoded: int) -> tuple[Line, ...]:
        if not decoded:
            return (Line(prefill_step(self._setup, prefilled).seconds, 0.0),)
        step = decode_step(self._setup, decoded, 0)
        riding_s = prefill_step(self._setup, prefilled).riding_s if prefilled else 0.0
        return Line(step.device_s + riding_s, self._cached_token_s), Line(step.host_s + riding_s, 0.0)


def _both(first: float, second: float) -> float:
    return first + second
