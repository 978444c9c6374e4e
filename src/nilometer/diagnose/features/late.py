"""Requests whose first token is late by one and the same time: something gave up on a first attempt and asked again.

Lateness is what the TTFT has beyond the level's own line over the prompt. A few requests are late where they stand
apart from all others, with nothing between; a queue spreads its requests over the whole range, and then none is.
"""

from __future__ import annotations

import numpy as np

from nilometer.core.clock import NS_PER_MS
from nilometer.metrics.quantiles import Floats
from nilometer.metrics.table import NONE

from ..base import base_line
from ..figure import Figure
from ..streams import Streams

LEAST_REQUESTS = 20
LATE = 1.5
"""Late by so many median TTFT at least."""
APART = 2.0
"""The least late of the late is so many times as late as the latest of the others."""
MOST_SHARE = 0.34
LEAST_LATE = 3


def late_share(streams: Streams) -> Figure | None:
    """Share of the requests that are late; 0 where none stands apart. n requests."""
    found = streams.once(_late_ms)
    return None if found is None else Figure(len(found[0]) / found[1], found[1])


def late_by_ms(streams: Streams) -> Figure | None:
    """Median lateness of the late, ms; n late requests; None without one."""
    found = streams.once(_late_ms)
    return None if found is None or not len(found[0]) else Figure(float(np.median(found[0])), len(found[0]))


def late_spread(streams: Streams) -> Figure | None:
    """(p75 - p25) / p50 of their lateness: small where one timer made them. n late requests; None of fewer than 3."""
    found = streams.once(_late_ms)
    if found is None or len(found[0]) < LEAST_LATE:
        return None
    low, middle, high = np.percentile(found[0], [25, 50, 75])
    return Figure(float((high - low) / middle), len(found[0]))


def _late_ms(streams: Streams) -> tuple[Floats, int] | None:
    """How late each late request is, ms, and of how many; None of too few."""
    ttft_ms = streams.table.latency("ttft_from_sent") / NS_PER_MS
    rows = np.flatnonzero(streams.measured & ~np.isnan(ttft_ms))
    line = streams.once(base_line)
    if len(rows) < LEAST_REQUESTS or line is None:
        return None
    prompts = streams.table.prompt_tokens[rows]
    usual = line.at_ms(np.where(prompts == NONE, 0, prompts)) if line.slope_ms else line.intercept_ms
    beyond = np.sort(ttft_ms[rows] - usual)
    least = LATE * float(np.median(ttft_ms[rows]))
    first = _where_apart(beyond, least)
    late = beyond[first:] if len(beyond) - first <= MOST_SHARE * len(beyond) else beyond[:0]
    return late, len(rows)


def _where_apart(ordered: Floats, least: float) -> int:
    """Where the widest step up leads to values above `least` and APART times as great; the end without one."""
    below = np.maximum(ordered[:-1], least / APART)
    steps = ordered[1:] / below
    steps[ordered[1:] < least] = 0.0
    best = int(steps.argmax())
    return best + 1 if steps[best] >= APART else len(ordered)
