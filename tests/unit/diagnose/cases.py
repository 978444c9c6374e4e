"""Evidence made by hand: for each cause figures that show it, and nothing else; and the case of any figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from nilometer.core.finding import Evidence
from nilometer.diagnose.base import Base
from nilometer.diagnose.budget import Budget, Part
from nilometer.diagnose.case import Case
from nilometer.diagnose.facts import Facts
from nilometer.diagnose.group import FIGURES, GroupEvidence
from nilometer.diagnose.level import FEATURES, LevelEvidence
from nilometer.metrics.curve import Rung

FACTS = Facts(verdict="admissible", generator="fit", steady=True, ok=400, length_s=180.0)
UNITS = {feature.name: feature.unit for feature in FEATURES}
NAMES = (*UNITS, "line_slope", "line_r")


class Shown(NamedTuple):
    """Figures of the lowest and the highest level and of the step; `facts` are changes of FACTS."""

    high: Mapping[str, float] = {}
    low: Mapping[str, float] = {}
    step: Mapping[str, float] = {}
    elasticities: Sequence[float] = ()
    facts: Mapping[str, Any] = {}
    stalls: float | None = None
    """What they take of the E2E at the highest level."""


def made(figures: Mapping[str, float], names: Sequence[str], level: float) -> dict[str, Evidence | None]:
    """All of these names, those that are given as evidence."""
    return dict.fromkeys(names) | {
        name: Evidence(name=name, value=value, unit=UNITS.get(name), n=400, level=f"{level:g}", source="client")
        for name, value in figures.items()
    }


def level_of(number: float, figures: Mapping[str, float], **changes: Any) -> LevelEvidence:
    """One level; `ttft_p95`, `e2e_p50` (ms) and `ttft_parts`, `e2e_parts` among the changes make its budgets."""
    facts = msgspec.structs.replace(FACTS, **changes.pop("facts", {}))
    ttft = budget("ttft", changes.pop("ttft_p95", None), changes.pop("ttft_parts", {}))
    e2e = budget("e2e", changes.pop("e2e_p50", None), changes.pop("e2e_parts", {}))
    tokens = figures.get("output_tokens_per_s")
    level = LevelEvidence(
        run="run",
        level=number,
        is_open=False,
        window="0..180",
        figures=made(figures, NAMES, number),
        base=Base(line=None, gap_ms=None),
        ttft=ttft,
        e2e=e2e,
        facts=facts,
        means=None,
        rung=Rung(number, True, None, tokens) if tokens else None,
    )
    return msgspec.structs.replace(level, **changes)


def budget(metric: Any, total_ms: float | None, parts: Mapping[str, float]) -> Budget | None:
    """A percentile and its parts."""
    if total_ms is None:
        return None
    told = tuple(Part(name=name, ms=ms, share=ms / total_ms) for name, ms in parts.items())
    return Budget(metric=metric, stat="p95" if metric == "ttft" else "p50", total_ms=total_ms, n=20, parts=told)


def group_of(
    levels: Sequence[LevelEvidence], step: Mapping[str, float] = {}, elasticities: Sequence[float] = ()
) -> GroupEvidence:
    """Levels from the lowest up, and figures between them as given."""
    return GroupEvidence(
        levels=tuple(levels),
        base=levels[0].base,
        base_level=levels[0].level,
        figures=made(step, FIGURES, levels[-1].level or 0),
        elasticities=tuple(Evidence(name="gap_elasticity", value=value) for value in elasticities),
    )


def case_of(shown: Shown) -> Case:
    """1 in flight and 16."""
    e2e = {} if shown.stalls is None else {"e2e_p50": 1000.0, "e2e_parts": {"stalls": shown.stalls * 1000}}
    low = level_of(1, shown.low, facts=shown.facts)
    high = level_of(16, shown.high, facts=shown.facts, **e2e)
    return Case(group_of([low, high], shown.step, shown.elasticities))


WAITS = {"wait_share": 0.9}
STALLS = {"gap_tail_ratio": 12.0, "long_gaps_per_request": 0.8, "gap_simultaneity": 0.9}
SHOWN: Mapping[str, Shown] = {
    "generator_limited": Shown(facts={"generator": "limited"}),
    "too_short": Shown(facts={"ok": 12}),
    "buffered_stream": Shown(
        low={"stream_share": 0.99, "burst_share": 1.0}, high={"burst_share": 1.0, "output_tokens": 64.0}
    ),
    "rate_limit": Shown(high={"refused_share": 0.4}),
    "failures": Shown(high={"failed_share": 0.05}),
    "client_pool": Shown(high={"little_asked": 0.5, "in_flight": 8.0, "loop_lag_p99": 1.0}),
    "static_batching": Shown(high={"refill_share": 0.0, "decoding": 7.0, "in_flight": 16.0, "join_share": 0.0}),
    "prefill_stalls": Shown(high={**STALLS, "gap_first_token_share": 0.9}, stalls=0.4),
    "throttling": Shown(high={"step_ratio": 1.5, "step_separation": 0.97}),
    "growing_state": Shown(high={"tpot_drift": 0.3, "tpot_drift_p": 0.001}),
    "noisy_neighbour": Shown(
        low={"slow_ratio": 4.0, "slow_separation": 0.95, "slow_spell": 1.0, "slow_time_share": 0.3},
        high={"slow_ratio": 3.0, "slow_separation": 0.95, "slow_spell": 1.0, "slow_time_share": 0.3},
    ),
    "careful_admission": Shown(high={"waiting_with_room": 0.8, "output_over_asked": 0.2, "decoding_share": 0.4}),
    "kv_reserved": Shown(
        high={
            "context_tokens": 8192.0,
            "prompt_tokens": 400.0,
            "output_tokens": 100.0,
            "decoding_share": 0.3,
            "running_mean": 2.0,
            "slots": 2.0,
        },
        step=WAITS,
        facts={"engine": "llama-server"},
    ),
    "kv_capacity": Shown(high={"kv_usage_max": 0.99, "preemptions_per_100": 20.0, "decoding_share": 0.4}),
    "front_end": Shown(
        high={"spacing_evenness": 0.9, "first_token_spacing": 55.0, "decoding_share": 0.3},
        step={**WAITS, "gap_ratio": 1.1},
    ),
    "prefill": Shown(low={"line_r": 0.9}, step={"prefill_load": 0.9, "gap_ratio": 3.0}),
    "queue": Shown(
        high={"decoding_share": 0.2, "full_decoding": 3.1, "full_decoding_cv": 0.1, "decoding": 3.0},
        step={**WAITS, "gap_ratio": 1.05},
    ),
    "adapters": Shown(high={"adapters_waiting": 0.6}),
    "replica_imbalance": Shown(high={"replica_tpot_share": 0.7}),
    "poor_drafts": Shown(high={"acceptance_ratio": 0.2}),
    "interconnect": Shown(
        low={"token_gap": 10.0},
        step={"gap_elasticity": 0.05},
        facts={"devices": ("A10", "A10"), "weight_bytes": 3_600_000_000},
    ),
    "decode_compute": Shown(
        high={"decoding_share": 0.95}, step={"throughput_gain_last": 0.03}, elasticities=[0.4, 0.95]
    ),
    "decode_bandwidth": Shown(
        low={"token_gap": 10.0},
        step={"gap_elasticity": 0.05},
        facts={"devices": ("A10",), "weight_bytes": 4_800_000_000},
    ),
    "cold_start": Shown(low={"head_ratio": 40.0}),
    "prefix_flattered": Shown(high={"prefix_hit_ratio": 0.6}),
    "short_answers": Shown(high={"output_over_asked": 0.2}),
    "unreal_lengths": Shown(high={"prompt_cv": 0.0}),
    "grouped_tokens": Shown(high={"tokens_per_frame": 3.0}),
}
"""Figures that make each rule hold. An A10 reads 600 GB/s: 6 GB in the gap of 10 ms."""
