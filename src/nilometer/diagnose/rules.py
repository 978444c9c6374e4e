"""THE table of what can limit a service or spoil a test of it: each cause with its rule and what it would explain.

A new cause is a function in `causes`, a row here, and its words in both locales. Order matters where two hold as much:
the more special one stands before the more general.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from nilometer.core.finding import FindingClass

from .case import Case
from .causes import answers, engine, over_time, queueing, validity
from .group import FIGURES as GROUP_FIGURES
from .level import FEATURES
from .sign import Opinion

Stage = Literal["first", "cause", "last"]
"""`first`: as long as it stands nothing else can be concluded. `last`: it spoils figures without limiting anything."""


class Rule(NamedTuple):
    """One row. `explains`: causes that explain the same are rivals, any others may stand beside each other."""

    slug: str
    of: Callable[[Case], Opinion]
    kind: FindingClass
    stage: Stage
    metric: str
    explains: str
    vetoes: bool = False
    """With it the run says nothing of the service."""
    special_of: str | None = None
    """The more general cause that holds wherever this one does: this one says why, and comes before it."""


RULES: tuple[Rule, ...] = (
    Rule("generator_limited", validity.generator_limited, "validity", "first", "all", "client", vetoes=True),
    Rule("too_short", validity.too_short, "validity", "first", "all", "window", vetoes=True),
    Rule("buffered_stream", validity.buffered_stream, "validity", "cause", "ttft", "stream"),
    Rule("rate_limit", answers.rate_limit, "cause", "cause", "errors", "refusals"),
    Rule("failures", answers.failures, "validity", "cause", "errors", "losses"),
    Rule("client_pool", answers.client_pool, "cause", "cause", "throughput", "client"),
    Rule("static_batching", queueing.static_batching, "cause", "cause", "ttft", "waiting", special_of="queue"),
    Rule("prefill_stalls", engine.prefill_stalls, "cause", "cause", "tpot", "stalls"),
    Rule("throttling", over_time.throttling, "cause", "cause", "tpot", "pace"),
    Rule("growing_state", over_time.growing_state, "cause", "cause", "tpot", "pace"),
    Rule("noisy_neighbour", over_time.noisy_neighbour, "cause", "cause", "tpot", "pace"),
    Rule("careful_admission", queueing.careful_admission, "cause", "cause", "ttft", "waiting", special_of="queue"),
    Rule("kv_reserved", engine.kv_reserved, "cause", "cause", "ttft", "waiting", special_of="queue"),
    Rule("kv_capacity", engine.kv_capacity, "cause", "cause", "ttft", "waiting"),
    Rule("front_end", queueing.front_end, "cause", "cause", "ttft", "waiting"),
    Rule("prefill", engine.prefill, "cause", "cause", "ttft", "waiting"),
    Rule("queue", queueing.queue, "cause", "cause", "ttft", "waiting"),
    Rule("adapters", answers.adapters, "cause", "cause", "ttft", "unevenness"),
    Rule("replica_imbalance", answers.replica_imbalance, "cause", "cause", "tpot", "unevenness"),
    Rule("poor_drafts", engine.poor_drafts, "cause", "cause", "tpot", "drafts"),
    Rule("interconnect", engine.interconnect, "cause", "cause", "tpot", "decode"),
    Rule("decode_compute", engine.decode_compute, "cause", "cause", "tpot", "decode"),
    Rule("decode_bandwidth", engine.decode_bandwidth, "cause", "cause", "tpot", "decode"),
    Rule("cold_start", over_time.cold_start, "cause", "cause", "ttft", "start"),
    Rule("prefix_flattered", validity.prefix_flattered, "validity", "last", "ttft", "cache"),
    Rule("short_answers", validity.short_answers, "validity", "last", "throughput", "answers"),
    Rule("unreal_lengths", validity.unreal_lengths, "validity", "last", "ttft", "lengths"),
    Rule("grouped_tokens", validity.grouped_tokens, "validity", "last", "itl", "frames"),
)

Missing = Literal["server_metrics", "machine", "weights", "levels", "client"]


def missing_kind(figures: Sequence[str]) -> Missing:
    """What it would take to have these figures: the first that lacks decides."""
    for name in figures:
        if name in _KINDS:
            return _KINDS[name]
    return "client"


_KINDS: dict[str, Missing] = {
    **{
        feature.name: "machine" if feature.name.startswith("host_") else "server_metrics"
        for feature in FEATURES
        if feature.source != "client"
    },
    **dict.fromkeys(("bandwidth_use", "devices"), "weights"),
    **dict.fromkeys(GROUP_FIGURES, "levels"),
    **dict.fromkeys(("queue_over_wait", "context_use"), "server_metrics"),
}
