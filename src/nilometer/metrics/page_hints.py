"""What must be known to read a server's figures rightly: slugs with parameters, in the order they should be told.

These are traps of reading and what stands on the page itself. What limits a service is concluded elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from nilometer.core.errors import Param

from .buckets import Bound
from .server_figures import ServerFigures

KV_FULL = 0.9
"""From this share of the KV cache on, waiting requests may wait for room in it."""
_NAMES_TOLD = 8


class Hint(NamedTuple):
    """A slug, and what fills its sentence."""

    slug: str
    params: Mapping[str, Param] = {}


def hints(figures: ServerFigures) -> list[Hint]:
    """All that hold; the gravest first."""
    if figures.engine is None:
        names = ", ".join(figures.names[:_NAMES_TOLD])
        return [Hint("names_unknown", {"n": len(figures.names), "names": names}), *_of_lines(figures)]
    return [
        *_of_change(figures),
        *_of_load(figures),
        *_of_absence(figures),
        *_of_percentiles(figures),
        *_of_lines(figures),
    ]


def _of_change(figures: ServerFigures) -> Iterator[Hint]:
    if figures.reset:
        yield Hint("counters_reset")
    if figures.appeared:
        yield Hint("engine_appeared", {"n": figures.appeared})
    if figures.vanished:
        yield Hint("engine_vanished", {"n": figures.vanished})
    if figures.compared and figures.elapsed_s is None:
        yield Hint("elapsed_unknown")


def _of_load(figures: ServerFigures) -> Iterator[Hint]:
    waiting = figures.waiting or 0
    if waiting and figures.engine == "llama.cpp":
        slots = None if figures.slots is None else figures.slots.total
        yield Hint("slots_limit", {"waiting": waiting, "busy": slots or figures.busy_slots_mean or figures.running})
    if waiting and figures.kv_usage is not None and figures.kv_usage.max >= KV_FULL:
        yield Hint("kv_full", {"waiting": waiting, "share": figures.kv_usage.max})
    if figures.preemptions:
        yield Hint("preempted", {"n": figures.preemptions})


def _of_absence(figures: ServerFigures) -> Iterator[Hint]:
    if not figures.compared and figures.loaded is None:
        yield Hint("since_start")
    if figures.loaded is not None:
        yield Hint("no_metrics_page")
    elif figures.kv_usage is None:
        yield Hint("kv_unknown")


def _of_percentiles(figures: ServerFigures) -> Iterator[Hint]:
    told = [(one.p50_s, one.p95_s) for one in figures.latencies.values()]
    why = {bound.why for pair in told for bound in pair if isinstance(bound, Bound)}
    if "inf_bucket" in why:
        yield Hint("beyond_buckets")
    if "first_bucket" in why:
        yield Hint("first_bucket")


def _of_lines(figures: ServerFigures) -> Iterator[Hint]:
    if figures.broken_lines:
        yield Hint("lines_broken", {"n": figures.broken_lines})
