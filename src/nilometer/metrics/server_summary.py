"""What a server's pages told over the window, as the figures of a Summary: one flat table, only what was measured.

Names are those of the contract's `server`; units stand in them, counts are over the stretch between the pages.
"""

from __future__ import annotations

from collections.abc import Iterator

from .server_figures import ServerFigures
from .server_watch import Gauge, Watch

_COUNTED = (
    "kv_capacity_tokens",
    "preemptions",
    "prompt_tokens",
    "cached_tokens",
    "generation_tokens",
    "prefix_hit_ratio",
    "requests",
    "failed",
    "step_tokens_mean",
    "tokens_per_decode",
    "busy_slots_mean",
)
"""Figures that keep their name."""
_LATENCIES = {
    "ttft": "ttft_mean_s",
    "queue": "queue_mean_s",
    "prefill": "prefill_mean_s",
    "decode": "decode_mean_s",
    "e2e": "e2e_mean_s",
    "per_token": "per_token_mean_s",
}


def told(watch: Watch) -> dict[str, float]:
    """The figures by name; none that no page told, and none at all of an engine that is not known."""
    if watch.figures.engine is None:
        return {}
    return {name: float(value) for name, value in _all(watch) if value is not None}


def _all(watch: Watch) -> Iterator[tuple[str, float | None]]:
    figures = watch.figures
    yield "pages", watch.pages
    yield "covered_s", watch.covered_s
    yield "restarts", watch.restarts
    yield "engines", figures.engines
    yield from _gauge("running", watch.running)
    yield from _gauge("waiting", watch.waiting)
    yield "waiting_above_zero", None if watch.waiting is None else watch.waiting.above_zero
    yield from _gauge("kv_usage", watch.kv_usage)
    for name in ("waiting_with_room", "running_spread", "adapters_waiting"):
        yield name, getattr(watch, name)
    for name in _COUNTED:
        yield name, getattr(figures, name)
    yield from _speculation(figures)
    for latency, name in _LATENCIES.items():
        spread = figures.latencies.get(latency)
        yield name, None if spread is None else spread.mean_s
    yield from _slots(figures)


def _gauge(name: str, gauge: Gauge | None) -> Iterator[tuple[str, float]]:
    if gauge is not None:
        yield f"{name}_mean", gauge.mean
        yield f"{name}_max", gauge.max


def _speculation(figures: ServerFigures) -> Iterator[tuple[str, float | None]]:
    if figures.spec is not None:
        yield "draft_tokens", figures.spec.draft_tokens
        yield "acceptance_ratio", figures.spec.acceptance_ratio
        yield "acceptance_length", figures.spec.acceptance_length


def _slots(figures: ServerFigures) -> Iterator[tuple[str, float | None]]:
    if figures.slots is not None:
        yield "slots", figures.slots.total
        yield "context_tokens", figures.slots.context_tokens
