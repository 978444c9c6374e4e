"""The most tokens per second: every request there at once, as many in flight as the KV cache holds."""

from __future__ import annotations

import msgspec

from nilometer.core.errors import SpecError

from ..memory.kv import cache, need_bytes
from .factors import factors
from .roofline import PRIOR, Latency, Lengths, Tuning, latency
from .work import Setup

MOST_SEQUENCES = 2048
"""TensorRT-LLM's default --max_batch_size; SGLang and vLLM stop earlier, by their own flags."""


def held_requests(setup: Setup, lengths: Lengths, kv_bytes: float) -> int:
    """Requests in flight that `kv_bytes` of one rank hold on average: each is half through its output."""
    one = need_bytes(
        cache(setup.shape), setup.cached, round(lengths.input + lengths.output / 2), 1, setup.parallel.tensor
    )
    one /= setup.parallel.pipeline
    held = int(kv_bytes / one) if one else MOST_SEQUENCES
    if held < 1:
        raise SpecError("kv_holds_no_request", kv_bytes=int(kv_bytes), need_bytes=int(one))
    return held


def max_throughput(
    setup: Setup, lengths: Lengths, kv_bytes: float, *, most: int = MOST_SEQUENCES, tuning: Tuning = PRIOR
) -> Latency:
    """The load at which the engine is full, all copies together: at most `most` sequences in each.

    `kv_bytes`: KV cache of one rank (`memory`). The work of a cycle is what it is whether prompts come in a wave or
    one by one, so the figure needs no queue.
    """
    running = min(most, held_requests(setup, lengths, kv_bytes))
    full = msgspec.structs.replace(setup, slots=running)
    spread = factors(setup.engine, setup.device.kind, setup.version).full_spread
    if not tuning.anchors:
        tuning = msgspec.structs.replace(tuning, tpot_spread=spread, ttft_spread=spread)
    return latency(full, lengths, running * setup.parallel.data, tuning)
