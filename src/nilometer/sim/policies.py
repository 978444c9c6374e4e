"""How a step is put together: one function for each policy. First come, first served; the preempted come first.

A policy admits sequences, deals out prompt tokens, and answers whether the decoding sequences take part in the step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from .setting import Policy


class Bench(Protocol):
    """What a policy sees of an engine, and what it may do."""

    budget: int
    """Tokens that this step may still take."""

    @property
    def running(self) -> int: ...

    @property
    def decoded(self) -> int: ...

    @property
    def next_prompt(self) -> int | None: ...

    def make_room(self) -> bool: ...

    def admit(self) -> bool: ...

    def prefill_all(self) -> None: ...

    def prefill_newest(self, *, whole: bool = False) -> None: ...


def chunked(bench: Bench) -> bool:
    """Decoding sequences always take part; prompts fill what is left. A full pool admits nobody."""
    roomy = bench.make_room()
    bench.budget -= bench.decoded
    bench.prefill_all()
    while roomy and bench.budget > 0 and bench.admit():
        bench.prefill_newest()
    return True


def blocking(bench: Bench) -> bool:
    """Whole prompts, as many as a step takes and at least one, in steps of their own; who decodes waits."""
    first = True
    while (prompt := bench.next_prompt) is not None and (first or prompt <= bench.budget) and bench.admit():
        bench.prefill_newest(whole=True)
        first = False
    if first:
        bench.make_room()
    return first


def static(bench: Bench) -> bool:
    """A batch is formed when the one before it is done, takes all its prompts in one step, and lets nobody join."""
    if bench.running:
        bench.make_room()
        return True
    while bench.admit():
        bench.prefill_newest(whole=True)
    return False


POLICIES: dict[Policy, Callable[[Bench], bool]] = {"chunked": chunked, "blocking": blocking, "static": static}
