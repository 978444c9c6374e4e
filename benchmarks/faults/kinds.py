"""THE table of kinds: what each changes of a service that is well, and what must then be true of the play.

`size` is the severity, 0 to 1: at 0 a change is none or hardly any. A kind sees the draft with what was drawn before,
so that two can be put on one service.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple



from . import around, engine_kinds, holds, load_kinds, well
from .play import Level
from .service import Draft, Draw

Change = Callable[[Draft, Draw, float], None]
Holds = Callable[[Draft, Sequence[Level]], bool]


class Kind(NamedTuple):
    """`clean`: besides it, no slot, pool or processor of the engine is a limit."""

    slug: str
    change: Change
    holds: Holds
    clean: bool = True


KINDS: tuple[Kind, ...] = (
    Kind("queue", engine_kinds.queue, holds.queue, clean=False),
    Kind("decode_bandwidth", engine_kinds.decode_bandwidth, holds.well),
    Kind("decode_compute", engine_kinds.decode_compute, holds.decode_compute, clean=False),
    Kind("prefill", engine_kinds.prefill, holds.prefill, clean=False),
    Kind("prefill_stalls", engine_kinds.prefill_stalls, holds.stalls),
    Kind("kv_capacity", engine_kinds.kv_capacity, holds.kv_capacity, clean=False),
    Kind("static_batching", engine_kinds.static_batching, holds.static_batching, clean=False),
    Kind("kv_reserved", engine_kinds.kv_reserved, holds.reserved, clean=False),
    Kind("careful_admission", engine_kinds.careful_admission, holds.reserved, clean=False),
    Kind("interconnect", engine_kinds.interconnect, holds.well),
    Kind("poor_drafts", engine_kinds.poor_drafts, holds.well),
    Kind("adapters", engine_kinds.adapters, holds.adapters),
    Kind("cold_start", around.cold_start, holds.cold_start),
    Kind("buffered_stream", around.buffered_stream, holds.well),
    Kind("front_end", around.front_end, holds.front_end),
    Kind("rate_limit", around.rate_limit, holds.rate_limit),
    Kind("failures", around.failures, holds.failures),
    Kind("noisy_neighbour", around.noisy_neighbour, holds.noisy),
    Kind("growing_state", around.growing_state, holds.growing_state),
    Kind("throttling", around.throttling, holds.throttling),
    Kind("grouped_tokens", around.grouped_tokens, holds.well),
    Kind("replica_imbalance", around.replica_imbalance, holds.imbalance, clean=False),
    Kind("short_answers", load_kinds.short_answers, holds.short_answers),
    Kind("too_short", load_kinds.too_short, holds.too_short, clean=False),
    Kind("generator_limited", load_kinds.generator_limited, holds.generator_limited),
    Kind("client_pool", load_kinds.client_pool, holds.client_pool),
    Kind("prefix_flattered", load_kinds.prefix_flattered, holds.prefix_flattered),
    Kind("unreal_lengths", load_kinds.unreal_lengths, holds.unreal_lengths),
)
BY_SLUG = {kind.slug: kind for kind in KINDS}

HEALTHY: tuple[tuple[str, Change], ...] = (
    ("plain", lambda d, draw, size: None),
    ("idle", well.idle),
    ("comfortable", well.comfortable),
    ("near the knee", well.near_the_knee),
    ("large", well.large),
    ("small", well.small),
    ("replicas", well.replicas),
    ("drafts that pay", well.good_drafts),
    ("short by design", well.short_by_design),
    ("long prompts", well.long_prompts),
)

DOUBLES: tuple[tuple[str, str], ...] = (
    ("queue", "noisy_neighbour"),
    ("queue", "buffered_stream"),
    ("queue", "grouped_tokens"),
    ("queue", "failures"),
    ("queue", "cold_start"),
    ("prefill", "noisy_neighbour"),
    ("prefill", "buffered_stream"),
    ("prefill_stalls", "front_end"),
    ("kv_capacity", "grouped_tokens"),
    ("kv_capacity", "noisy_neighbour"),
    ("decode_compute", "throttling"),
    ("static_batching", "noisy_neighbour"),
    ("front_end", "throttling"),
    ("rate_limit", "short_answers"),
    ("prefix_flattered", "queue"),
)
"""Two at once that do not hide each other by what they are."""


def whole(kinds: Sequence[str]) -> Holds:
    """What must be true of a case of these kinds; of none: that all is well."""
    chosen = [BY_SLUG[slug] for slug in kinds]

    def check(d: Draft, levels: Sequence[Level]) -> bool:
        clean = all(kind.clean for kind in chosen)
        return (not clean or holds.clean(d, levels)) and all(kind.holds(d, levels) for kind in chosen)

    return check


__all__ = ["BY_SLUG", "DOUBLES", "HEALTHY", "KINDS", "Kind", "whole"]
