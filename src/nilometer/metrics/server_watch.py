"""A server's pages over a stretch of a run: what it counted between the first and the last, and its gauges throughout.

A gauge of one page is a moment; a queue is judged by many. Takes pages with their stamps and computes, no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec

from nilometer.core.clock import NS_PER_S

from .page_engines import adapter_waits, loads
from .page_growth import Engine
from .pages import Page
from .server_figures import ServerFigures, figures

_ROOM = 0.9
"""A KV cache that is less full than this still has room: an engine admits up to some headroom, never to the brim."""


class Seen(NamedTuple):
    """A page, and the two moments between which it was true (ns, monotonic)."""

    asked_ns: int
    answered_ns: int
    page: Page

    @property
    def at_ns(self) -> int:
        """In the middle of the two."""
        return (self.asked_ns + self.answered_ns) // 2


class Gauge(msgspec.Struct, frozen=True, kw_only=True):
    """What a gauge showed: over `n` pages that had it. `above_zero` is the share of them where it was more than 0."""

    n: int
    mean: float
    max: float
    above_zero: float


class Watch(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch as the server itself saw it. `figures` are of the time between its first and its last page.

    `covered_s` is how long that is; after a restart it begins with the first page behind it, for what was counted
    before is lost. None of a gauge: no page told it.
    """

    pages: int
    covered_s: float
    figures: ServerFigures
    running: Gauge | None = None
    waiting: Gauge | None = None
    kv_usage: Gauge | None = None
    """Of the fullest engine."""
    restarts: int = 0
    """Between how many neighbouring pages a counter went back."""
    waiting_with_room: float | None = None
    """Share of the pages on which requests waited though the fullest KV cache was less than 0.9 full."""
    running_spread: float | None = None
    """Of two engines or more: the greatest over the least of their mean numbers of requests, waiting ones among them.

    None where one of them had none at all.
    """
    adapters_waiting: float | None = None
    """Share of the pages on which requests waited for an adapter to be loaded."""


def watch(seen: Sequence[Seen], start_ns: int, end_ns: int) -> Watch | None:
    """What the pages within [start, end) say together; None of fewer than two, which are no stretch."""
    inside = [one for one in seen if start_ns <= one.asked_ns and one.answered_ns < end_ns]
    if len(inside) < 2:
        return None
    restarted = [i for i, (a, b) in enumerate(pairwise(inside), 1) if figures(b.page, a.page).reset]
    first, last = inside[restarted[-1] if restarted else 0], inside[-1]
    covered_s = (last.at_ns - first.at_ns) / NS_PER_S
    each = [figures(one.page) for one in inside]
    return Watch(
        pages=len(inside),
        covered_s=covered_s,
        figures=figures(last.page, first.page, covered_s or None),
        running=_gauge(each, lambda one: one.running),
        waiting=_gauge(each, lambda one: one.waiting),
        kv_usage=_gauge(each, lambda one: None if one.kv_usage is None else one.kv_usage.max),
        restarts=len(restarted),
        waiting_with_room=_share(_waits_with_room(one) for one in each),
        running_spread=_spread([loads(one.page) for one in inside]),
        adapters_waiting=_share(adapter_waits(one.page) for one in inside),
    )


def _waits_with_room(page: ServerFigures) -> bool | None:
    if page.waiting is None or page.kv_usage is None:
        return None
    return page.waiting > 0 and page.kv_usage.max < _ROOM


def _share(told: Iterable[bool | None]) -> float | None:
    """Of those that are known."""
    known = [one for one in told if one is not None]
    return sum(known) / len(known) if known else None


def _spread(pages: Sequence[Mapping[Engine, float]]) -> float | None:
    """Over the engines that were there throughout."""
    engines = set(pages[0]).intersection(*pages)
    sums = [sum(page[engine] for page in pages) for engine in engines]
    return max(sums) / min(sums) if len(sums) > 1 and min(sums) > 0 else None


def _gauge(each: Sequence[ServerFigures], of: Callable[[ServerFigures], float | None]) -> Gauge | None:
    values = [value for one in each if (value := of(one)) is not None]
    if not values:
        return None
    above = sum(value > 0 for value in values)
    return Gauge(n=len(values), mean=sum(values) / len(values), max=max(values), above_zero=above / len(values))
