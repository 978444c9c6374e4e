"""The machine form of a metrics page: the contract's object, then what only some engines tell."""

from __future__ import annotations

import msgspec

from nilometer.metrics.buckets import Bound
from nilometer.metrics.page_hints import hints
from nilometer.metrics.server_figures import LATENCIES, ServerFigures, Spread

from .machine import head

_WHY = {"inf_bucket": "falls in the +Inf bucket", "first_bucket": "falls in the first bucket"}
_FIRST = (
    "engine",
    "dialect",
    "engines",
    "elapsed_s",
    "reset",
    "ignored_lines",
    "running",
    "waiting",
    "kv_usage",
    "kv_capacity_tokens",
    "preemptions",
    "prompt_tokens",
    "generation_tokens",
    "generation_tps",
    "prefix_hit_ratio",
    "spec",
)
_LATENCIES = ("ttft", "per_token", "queue", "e2e")


def scrape_object(figures: ServerFigures) -> dict[str, object]:
    """The object of kind `metrics`. Unknown is None; a percentile is a number, or the bounds that the buckets give."""
    told = {name: _spread(figures.latencies.get(name)) for name in LATENCIES}
    apart = {"latencies", "names", "engines", *_FIRST}
    return {
        **head("metrics"),
        **{name: msgspec.to_builtins(getattr(figures, name)) for name in _FIRST},
        **{name: told[name] for name in _LATENCIES},
        "hints": [hint.slug for hint in hints(figures)],
        **{name: value for name, value in told.items() if name not in _LATENCIES},
        **{
            name: msgspec.to_builtins(getattr(figures, name)) for name in figures.__struct_fields__ if name not in apart
        },
        "names": figures.names,
    }


def _spread(spread: Spread | None) -> dict[str, object] | None:
    if spread is None:
        return None
    return {
        "count": spread.count,
        "mean_s": spread.mean_s,
        "p50_s": _percentile(spread.p50_s),
        "p95_s": _percentile(spread.p95_s),
        "source": spread.source,
        "kind": spread.kind,
    }


def _percentile(value: float | Bound | None) -> object:
    if not isinstance(value, Bound):
        return value
    most = {} if value.at_most is None else {"at_most": value.at_most}
    return {"at_least": value.at_least, **most, "why": _WHY[value.why]}
