"""How many parameters a shape has, part by part: what each is, how ranks share it, whether a step reads it.

Pure arithmetic. How many bits one takes is `precision`'s part, bytes are `weights`'.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

import msgspec

from .shape import Attention, Block, Dense, Experts, Latent, Mixer, Recurrent, Shape

What = Literal["embedding", "head", "linear", "norm", "bias", "router", "experts", "shared", "recurrent", "extra"]
Split = Literal["divided", "kv_heads", "experts", "replicated"]
Read = Literal["always", "row", "experts", "never"]

KEPT = 512
"""Answers about a shape that are kept: a plan asks the same of it for every load."""


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """Parameters of one sort, of all layers that were asked for together."""

    name: str
    """Where they are: `attention.value`, `experts.down`, ..."""
    parameters: int
    what: What
    split: Split = "divided"
    """Over the tensor ranks: evenly, at most by `ways` KV heads, as experts or parts of them, or whole on each."""
    read: Read = "always"
    """In a decode step: all of it, one row a token, `per_token` of `ways` experts a token, or never."""
    ways: int = 1
    per_token: int = 0
    width: int = 0
    """The length of a row, where formats that quantise in blocks ask for it; 0 = not a matrix."""


@lru_cache(maxsize=KEPT)
def parts(shape: Shape, start: int = 0, stop: int | None = None) -> tuple[Part, ...]:
    """Of the layers `start` to `stop` of a shape, with the embedding before the first and the head behind the last.

    A tied head that is on another stage than the embedding is a part of its own there. Extras that an engine loads
    stand with the first layer; one whose size is not known is left out.
    Sources: the modules of transformers (`modeling_*.py`) of each family.
    """
    stop = shape.layers if stop is None else stop
    merged: dict[Part, int] = {}
    for part, times in _all(shape, start, stop):
        one = msgspec.structs.replace(part, parameters=0)
        merged[one] = merged.get(one, 0) + part.parameters * times
    return tuple(msgspec.structs.replace(part, parameters=total) for part, total in merged.items() if total)


def parameters(shape: Shape) -> int:
    """All of them, extras that an engine loads included."""
    return sum(part.parameters for part in parts(shape))


def active_parameters(shape: Shape, tokens: int = 1) -> float:
    """Those of which a step of `tokens` tokens makes use on average, where experts are chosen independently.

    An expert is left alone by all of B tokens with the probability (1 - k/E)^B. Embedding and head count whole.
    """
    return sum(part.parameters * covered(part, tokens) for part in parts(shape) if part.what != "extra")


def covered(part: Part, tokens: float) -> float:
    """The share of a part that a step of `tokens` tokens makes use of."""
    if part.read != "experts":
        return 1.0
    return float(1.0 - (1.0 - part.per_token / part.ways) ** tokens)


def _all(shape: Shape, start: int, stop: int) -> Iterator[tuple[Part, int]]:
    yield from ((part, 1) for part in _ends(shape, first=start == 0, last=stop >= shape.layers))
    for block, count in shape.counted(start, stop):
        yield from ((part, count) for part in block_parts(block, shape.hidden))


def _ends(shape: Shape, *, first: bool, last: bool) -> Iterator[Part]:
    table = shape.vocab * shape.hidden
    if first:
        read: Read = "always" if shape.tied and last else "row"
        yield Part(name="embedding", parameters=table, what="embedding", read=read, width=shape.hidden)
        for extra in shape.extras:
            if extra.loaded and extra.parameters is not None:
                yield Part(name=extra.name, parameters=extra.parameters, what="extra", split="replicated", read="never")
    if last:
        if not (shape.tied and first):
            yield Part(name="head", parameters=table, what="head", width=shape.hidden)
        if shape.head_bias:
            yield Part(name="head.bias", parameters=shape.vocab, what="bias")
        norm = shape.hidden * (2 if shape.final_norm_bias else 1)
        yield Part(name="norm", parameters=norm, what="norm", split="replicated")


def block_parts(block: Block, hidden: int) -> Iterator[Part]:
    """Of one layer."""
    if block.mixer is not None:
        yield from _mixer(block.mixer, hidden)
    if isinstance(block.feed_forward, Dense):
        yield from _dense(block.feed_forward, hidden)
    elif block.feed_forward is not None:
        yield from _experts(block.feed_forward, hidden)
    norms = block.norms * hidden * (2 if block.norm_bias else 1)
    yield Part(name="norm", parameters=norms, what="norm", split="replicated")


def _mixer(mixer: Mixer, hidden: int) -> Iterator[Part]:
    if isinstance(mixer, Attention):
        return _attention(mixer, hidden)
    if isinstance(mixer, Latent):
        return _latent(mixer, hidden)
    return _recurrent(mixer, hidden)


def _attention(of: Attention, hidden: int) -> Iterator[Part]:
    queries, keys = of.heads * of.head_dim, of.kv_heads * of.head_dim
    gates = 2 if of.output_gate else 1
    yield Part(name="attention.query", parameters=hidden * queries * gates, what="linear", width=hidden)
    for name in ("attention.key", "attention.value"):
        yield Part(name=name, parameters=hidden * keys, what="linear", split="kv_heads", ways=of.kv_heads, width=hidden)
    yield Part(name="attention.output", parameters=queries * hidden, what="linear", width=queries)
    if of.qkv_bias:
        yield Part(name="attention.bias", parameters=queries * gates + 2 * keys, what="bias")
    if of.out_bias:
        yield Part(name="attention.output.bias", parameters=hidden, what="bias", split="replicated")
    if of.sinks:
        yield Part(name="attention.sinks", parameters=of.heads, what="bias")
    if of.wide_norm:
        yield Part(name="attention.norm", parameters=queries + keys, what="norm", split="replicated")
    elif of.qk_norm:
        yield Part(name="attention.norm", parameters=2 * of.head_dim, what="norm", split="replicated")


def _latent(of: Latent, hidden: int) -> Iterator[Part]:
    """Down-projections are whole on every rank, what fans out to heads is divided (vLLM, `DeepseekV2MLAAttention`)."""
    width = of.query_rank or hidden
    norms = of.kv_rank
    if of.query_rank is not None:
        norms += of.query_rank
        yield _whole("attention.query.down", hidden * of.query_rank, hidden)
    queries = width * of.heads * (of.nope_dim + of.rope_dim)
    yield Part(name="attention.query", parameters=queries, what="linear", width=width)
    yield _whole("attention.kv.down", hidden * (of.kv_rank + of.rope_dim), hidden)
    pairs = of.kv_rank * of.heads * (of.nope_dim + of.value_dim)
    yield Part(name="attention.kv", parameters=pairs, what="linear", width=of.kv_rank)
    out = of.heads * of.value_dim
    yield Part(name="attention.output", parameters=out * hidden, what="linear", width=out)
    if of.index_heads:
        norms += 2 * of.index_dim
        yield _whole("index.query", width * of.index_heads * of.index_dim, width)
        yield _whole("index.key", hidden * of.index_dim, hidden)
        yield Part(name="index.weights", parameters=hidden * of.index_heads, what="router", split="replicated")
    yield Part(name="attention.norm", parameters=norms, what="norm", split="replicated")


def _whole(name: str, count: int, width: int) -> Part:
    return Part(name=name, parameters=count, what="linear", split="replicated", width=width)


def _recurrent(of: Recurrent, hidden: int) -> Iterator[Part]:
    yield Part(name=f"recurrent.{of.kind}", parameters=of.parameters, what="recurrent", width=hidden)


def _dense(of: Dense, hidden: int) -> Iterator[Part]:
    ups = 2 if of.gated else 1
    count = hidden * of.intermediate
    yield Part(name="feed_forward.up", parameters=ups * count, what="linear", width=hidden)
    yield Part(name="feed_forward.down", parameters=count, what="linear", width=of.intermediate)
    if of.bias:
        yield Part(name="feed_forward.bias", parameters=ups * of.intermediate + hidden, what="bias")


def _experts(of: Experts, hidden: int) -> Iterator[Part]:
    ups = 2 if of.gated else 1
    count = of.experts * hidden * of.intermediate
    chosen = Part(
        name="experts",
        parameters=0,
        what="experts",
        split="experts",
        read="experts",
        ways=of.experts,
        per_token=of.per_token,
    )
    change = msgspec.structs.replace
    yield change(chosen, name="experts.up", parameters=ups * count, width=hidden)
    yield change(chosen, name="experts.down", parameters=count, width=of.intermediate)
    if of.bias:
        biases = of.experts * (ups * of.intermediate + hidden)
        yield change(chosen, name="experts.bias", parameters=biases, what="bias")
    router = of.experts * (hidden + of.router_bias)
    yield Part(name="router", parameters=router, what="router", split="replicated", width=hidden)
    if of.shared_intermediate:
        shared = hidden * of.shared_intermediate
        yield Part(name="shared.up", parameters=ups * shared, what="shared", width=hidden)
        yield Part(name="shared.down", parameters=shared, what="shared", width=of.shared_intermediate)
    if of.shared_gate:
        yield Part(name="shared.gate", parameters=hidden, what="router", split="replicated")
