"""What a pool of KV memory holds: blocks, tokens, requests of one length. vLLM's blocks and groups, and a plain pool.

vLLM hands out blocks of a fixed number of tokens. Where a model has layers that cache differently (windows, recurrent
states), its layers are dealt into groups of one size whose pages are alike, and each group draws from the same blocks.
Source of every rule here: vLLM, `v1/core/kv_cache_utils.py` and `v1/kv_cache_interface.py`, checked against start-up
logs (benchmarks/plan_memory.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from ..versions import Span, Version
from .kv import Cache, CacheLayers, CachePrecision, bytes_per_token, layer_bytes, layer_state_bytes, need_bytes

BLOCK_TOKENS = 16
GROUPS_SINCE: Version = (0, 10)
"""Before it, vLLM kept every layer as if it had no window."""
TOKENS_BY_CONCURRENCY: Version = (0, 21)
"""From it on, the tokens shown are the concurrency times the context (vllm#54662), no longer a count of places."""
STATE_BLOCKS = ((Span(since=(0, 10), until=(0, 20)), 1), (Span(since=(0, 20)), 2))
"""Blocks of each group of recurrent layers that a request holds: with prefix caching one more, the last checkpoint."""
_PADDING_ALLOWED = 1.25
_ALIGNMENT = 16


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """`count` groups of layers that need the same number of blocks of `block` tokens for a request."""

    count: int
    block: int
    window: int | None = None
    state_blocks: int | None = None
    """Blocks a request holds however long it is; None = by its tokens."""


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """How the cache of one rank is cut: a block is a page in each of the `places` that a group's layers have."""

    kind: str
    """uniform, groups (windows), or states (recurrent layers)."""
    block: int
    page_bytes: float
    places: int
    groups: tuple[Group, ...]

    @property
    def block_bytes(self) -> float:
        """Of one block in all places."""
        return self.page_bytes * self.places


class Pool(msgspec.Struct, frozen=True, kw_only=True):
    """What fits. `concurrency` is requests of the asked context, with their fraction, as engines print it."""

    bytes: float
    tokens: int
    concurrency: float
    block: int = 1
    blocks: int | None = None
    layout: Layout | None = None
    """How the blocks are cut, where there are groups of them."""

    @property
    def requests(self) -> int:
        """Whole ones."""
        return math.floor(self.concurrency)


def vllm_layout(
    cached: Cache,
    precision: CachePrecision,
    tensor: int = 1,
    *,
    version: Version = (0, 19),
    block: int = BLOCK_TOKENS,
    prefix_caching: bool = True,
) -> Layout:
    """How vLLM cuts the cache of one rank."""
    if version < GROUPS_SINCE:
        cached = tuple(msgspec.structs.replace(part, window=None) for part in cached)
    states = [part for part in cached if not part.grows]
    grown = [part for part in cached if part.grows]
    windows = {part.window for part in grown}
    if not states and len(windows) <= 1:
        total = sum(part.count * layer_bytes(part, precision, tensor) for part in grown)
        groups = (Group(count=1, block=block, window=next(iter(windows), None)),)
        return Layout(kind="uniform", block=block, page_bytes=block * total, places=1, groups=groups)
    held = _state_blocks(version, prefix_caching)
    return _grouped(grown, states, precision, tensor, block, held)


def _state_blocks(version: Version, prefix_caching: bool) -> int:
    return next((held for span, held in STATE_BLOCKS if prefix_caching and span.holds(version)), 1)


def _grouped(
    grown: Sequence[CacheLayers],
    states: Sequence[CacheLayers],
    precision: CachePrecision,
    tensor: int,
    block: int,
    state_blocks: int,
) -> Layout:
    """Groups of one size, the smallest kind's, or the largest's where that pads little; pages as the largest needs."""
    widest = max((layer_bytes(part, precision, tensor) for part in grown), default=0.0)
    state_page = max((layer_state_bytes(part, precision, tensor) for part in states), default=0.0)
    if widest and block * widest < state_page:
        block = _ALIGNMENT * math.ceil(state_page / (_ALIGNMENT * widest))
    page = max(block * widest, state_page)
    counts = [part.count for part in (*grown, *states)]
    size = max(counts) if max(counts) < _PADDING_ALLOWED * min(counts) else min(counts)
    groups = [
        Group(
            count=math.ceil(part.count / size),
            block=int(block * widest / layer_bytes(part, precision, tensor)),
            window=part.window,
        )
        for part in grown
    ]
    groups += [Group(count=math.ceil(part.count / size), block=block, state_blocks=state_blocks) for part in states]
    kind = "states" if states else "groups"
    return Layout(kind=kind, block=block, page_bytes=page, places=size, groups=tuple(groups))


def blocks_needed(layout: Layout, tokens: float, ahead: int = 1) -> int:
    """Blocks that a request of `tokens` holds while `ahead` further ones are computed with it.

    A windowed group keeps the window before them and the new ones, and may begin within a block.
    """
    return blocks_of(layout.groups, tokens, ahead)


def blocks_of(groups: Sequence[Group], tokens: float, ahead: int = 1) -> int:
    """The same of groups alone: neither pages nor places count in it."""
    needed = 0
    for group in groups:
        if group.state_blocks is not None:
            one = group.state_blocks
        elif group.window is None:
            one = math.ceil(tokens / group.block)
        else:
            one = math.ceil(min(group.window - 1 + ahead, tokens) / group.block) + 1
        needed += group.count * one
    return needed


def vllm_pool(
    layouts: Sequence[Layout],
    pool_bytes: Sequence[float],
    context: int,
    *,
    batched_tokens: int = 8192,
    version: Version = (0, 19),
) -> Pool:
    """What vLLM says it holds; one layout and one pool per pipeline stage, of which the fewest blocks count;
    one whose layers keep nothing sets no limit.

    The groups of the first layout give the need of a request: with a pipeline, hand in those of the whole model.
    """
    stages = zip(layouts, pool_bytes, strict=True)
    blocks = min((max(0, int(has // cut.block_bytes)) for cut, has in stages if cut.block_bytes), default=0)
    layout = layouts[0]
    concurrency = blocks / max(1, blocks_needed(layout, context, batched_tokens))
    if version >= TOKENS_BY_CONCURRENCY:
        tokens = int(concurrency * context)
    else:
        tokens = blocks // sum(group.count for group in layout.groups) * layout.block
    return Pool(
        bytes=min(pool_bytes),
        tokens=tokens,
        concurrency=concurrency,
        block=layout.block,
        blocks=blocks,
        layout=layout,
    )


def stage_layout(whole: Layout, share: float) -> Layout:
    """The layout of a pipeline stage that has this share of what the whole model caches for a token.

    Uniform layers take their share of a block; a group takes whole places for the layers that it has there.
    """
    if whole.kind == "uniform":
        return msgspec.structs.replace(whole, page_bytes=whole.page_bytes * share)
    return msgspec.structs.replace(whole, places=math.ceil(round(whole.places * share, 6)))


def flat_pool(
    cached: Cache, precision: CachePrecision, pool_bytes: float, context: int, tensor: int = 1, block: int = 1
) -> Pool:
    """A pool without groups: tokens by what a token adds in all layers, requests by what `context` tokens need.

    Blocks of `block` tokens; a window and a state count in the requests, not in the tokens.
    """
    each = bytes_per_token(cached, precision, tensor)
    usable = max(0.0, pool_bytes)
    tokens = int(usable // (each * block)) * block if each else 0
    rounded = math.ceil(context / block) * block
    need = need_bytes(cached, precision, rounded, 1, tensor)
    return Pool(bytes=pool_bytes, tokens=tokens, concurrency=usable / need if need else 0.0, block=block)
