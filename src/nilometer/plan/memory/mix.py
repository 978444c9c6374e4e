"""What an engine's memory holds of a mix of lengths: in pages, and in places made for the longest allowed request."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from .budget import Memory
from .flight import Fit, Pairs, demand, fit
from .pool import blocks_needed
from .slots import Slots


class MixFit(msgspec.Struct, frozen=True, kw_only=True):
    """`paged` by the quantile of the sum, the mean and the worst case; `contiguous` with a whole place for each."""

    paged: Fit
    contiguous: int
    contiguous_used: float
    """Share of such a place that a request in flight fills on average: the rest is reserved and empty."""
    limit: int | None
    """The engine's own limit of requests at once; None = not known."""

    @property
    def requests(self) -> int:
        """In flight at once, the engine's limit heeded."""
        return self.paged.by_quantile if self.limit is None else min(self.paged.by_quantile, self.limit)


def mix_fit(plan: Memory, pairs: Pairs, share: float = 0.95, limit: int | None = None) -> MixFit:
    """How many requests of these (input, output) tokens a planned memory holds at once, this share of the time.

    `limit`: the engine's limit of requests where it is given; vLLM's and llama.cpp's are in the plan. What is counted
    is decoding: the chunk that a prompt adds while it is computed is not. SpecError for lengths that cannot be used.
    """
    capacity, need = _room(plan)
    paged = fit(capacity, demand(pairs, need), share)
    if plan.slots is not None:
        limit = plan.slots.slots
    elif plan.batch is not None:
        limit = plan.batch.seqs
    return MixFit(
        paged=paged,
        contiguous=int(plan.kv_bytes.mid // plan.longest_bytes) if plan.longest_bytes else 0,
        contiguous_used=min(1.0, demand(pairs, _tokens).mean / plan.context),
        limit=limit,
    )


def _tokens(tokens: float) -> float:
    return tokens


def _room(plan: Memory) -> tuple[float, Callable[[float], float]]:
    """(capacity, what so many tokens take of it) in blocks, slots, tokens or bytes."""
    if plan.slots is not None:
        return _slot_room(plan.slots)
    pool = plan.pool
    if pool.kept is not None:
        return pool.bytes, pool.kept.bytes
    layout, blocks = pool.layout, pool.blocks
    if layout is None or blocks is None:
        return pool.tokens, _tokens
    return blocks, lambda tokens: blocks_needed(layout, tokens)


def _slot_room(slots: Slots) -> tuple[float, Callable[[float], float]]:
    """Shared cells by the token; split ones by the slot, however little of it is filled."""
    if slots.unified:
        return slots.cells, _tokens
    return slots.slots, lambda tokens: 1.0 if tokens <= slots.slot_context else float("inf")
