"""Bytes of weights on each rank: what a shape takes in a precision, dealt over tensor ranks and pipeline stages."""

from __future__ import annotations

from functools import lru_cache

from .parallel import Parallel, stage_bounds
from .parameters import KEPT, Part, parts
from .precision import Precision, part_bits, precision_of
from .shape import Shape


def rank_parameters(part: Part, parallel: Parallel) -> float:
    """Of a part, how many one rank holds.

    Experts are dealt whole to `expert` ranks where these are more than one, the largest hand counting; else each is
    cut like any other matrix. KV heads are copied where there are more ranks than heads (vLLM, `QKVParallelLinear`).
    """
    if part.split == "replicated":
        return part.parameters
    if part.split == "kv_heads":
        return part.parameters / min(parallel.tensor, part.ways)
    if part.split == "experts" and parallel.expert > 1:
        hands = -(-part.ways // parallel.expert) / part.ways
        cut = max(1, parallel.tensor // parallel.expert)
        return part.parameters * hands / cut
    return part.parameters / parallel.tensor


def stage_weight_bytes(
    shape: Shape, precision: Precision | str | None = None, parallel: Parallel | None = None
) -> tuple[float, ...]:
    """Bytes on one rank of each pipeline stage; without a precision in the one the weights are published in.

    SpecError: `precision_unknown`, `pipeline_too_long`.
    """
    row = precision if isinstance(precision, Precision) else precision_of(precision or shape.dtype)
    split = parallel or Parallel()
    return _stage_bytes(shape, row, split)


@lru_cache(maxsize=KEPT)
def _stage_bytes(shape: Shape, precision: Precision, split: Parallel) -> tuple[float, ...]:
    return tuple(
        sum(rank_bytes(part, precision, split, tied=shape.tied) for part in parts(shape, start, stop))
        for start, stop in stage_bounds(shape.layers, split.pipeline)
    )


def rank_bytes(part: Part, precision: Precision, parallel: Parallel, *, tied: bool) -> float:
    """Bytes of a part on one rank."""
    return rank_parameters(part, parallel) * part_bits(part, precision, tied=tied) / 8


def weight_bytes(shape: Shape, precision: Precision | str | None = None, parallel: Parallel | None = None) -> float:
    """Bytes on one rank of the fullest stage: for one device all of them."""
    return max(stage_weight_bytes(shape, precision, parallel))
