"""What an engine's memory holds of a mix of lengths: in pages, and in places made for the longest allowed request."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from .budget import Memory
from .flight import Demand, Fit, Pairs, demand, fit
from .pool import Group, blocks_of


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
    requests = tuple(pairs)
    capacity, one = _room(plan, requests)
    paged = fit(capacity, one, share)
    if plan.slots is not None:
        limit = plan.slots.slots
    elif plan.batch is not None:
        limit = plan.batch.seqs
    return MixFit(
        paged=paged,
        contiguous=int(plan.kv_bytes.mid // plan.longest_bytes) if plan.longest_bytes else 0,
        contiguous_used=min(1.0, in_tokens(requests).mean / plan.context),
        limit=limit,
    )


def _room(plan: Memory, requests: Pairs) -> tuple[float, Demand]:
    """(capacity, what a request takes of it) in blocks, slots or tokens; shared cells count by the token."""
    if plan.slots is not None:
        slots = plan.slots
        return (
            (slots.cells, in_tokens(requests))
            if slots.unified
            else (slots.slots, _in_slots(requests, slots.slot_context))
        )
    layout, blocks = plan.pool.layout, plan.pool.blocks
    if layout is None or blocks is None:
        return plan.pool.tokens, in_tokens(requests)
    return blocks, _in_blocks(requests, layout.groups)


# Advice asks hundreds of devices and settings about the same requests, and a demand takes some 20 ms to count.


@lru_cache(maxsize=16)
def in_tokens(requests: Pairs) -> Demand:
    """What a request holds in tokens; hand in a tuple."""
    return demand(requests, float)


@lru_cache(maxsize=64)
def _in_blocks(requests: Pairs, groups: tuple[Group, ...]) -> Demand:
    return demand(requests, lambda tokens: blocks_of(groups, tokens))


@lru_cache(maxsize=64)
def _in_slots(requests: Pairs, slot_context: int) -> Demand:
    """Split cells by the slot, however little of it is filled."""
    return demand(requests, lambda tokens: 1.0 if tokens <= slot_context else float("inf"))
