"""A server that stands still: pauses of all its streams, by a clock or by chance, and moments at which it never writes.

A quota of processor time (Linux: `cpu.max`, a period of 100 ms unless somebody changed it) stops the processes for the
rest of each period. Where a step fits into the time that is left between two stops, the stops are long gaps. Where it
does not, every gap holds some and none stands out; but tokens come in one part of the period alone.
"""

from __future__ import annotations

import numpy as np

from nilometer.core.clock import NS_PER_S
from nilometer.metrics.quantiles import Ints
from nilometer.metrics.table import NONE

from ..figure import Figure, median
from ..streams import Streams

LEAST_PAUSES = 8
PAUSE_RATIO = 2.5
"""A gap of so many usual ones is a pause, whatever its length."""
TOGETHER = 0.5
"""Pauses of several streams that begin within this share of a pause are one."""
QUOTA_NS = 100_000_000
"""The period of a quota in Linux (`cpu.cfs_period_us`, default)."""
LEAST_STEPS = 60
_ONE_STEP_NS = 1_000_000
"""Tokens closer than this are of one step."""
_REGULAR = 0.05
_MOST_PAUSES, _MOST_PRODUCTS = 200, 4_000_000
_CHANCE = 1e-4


def pauses_per_s(streams: Streams) -> Figure | None:
    """Pauses a second of the whole server: gaps of more than PAUSE_RATIO usual ones, those that begin together as one.

    n pauses.
    """
    starts = streams.once(_pauses)
    length_s = streams.span.length_s
    return Figure(len(starts) / length_s, len(starts)) if starts is not None and length_s > 0 else None


def pause_period_s(streams: Streams) -> Figure | None:
    """Median time from one pause to the next, s; n pauses."""
    starts = streams.once(_pauses)
    if starts is None or len(starts) < LEAST_PAUSES:
        return None
    found = median(np.diff(starts))
    return None if found is None else Figure(found.value / NS_PER_S, len(starts))


def pause_length_s(streams: Streams) -> Figure | None:
    """Median length of a pause, s; n gaps. As long as the time between two where all gaps of a spell are long."""
    gaps, usual = streams.gaps, streams.gap_p50_p99_ns
    if usual is None or usual[0] <= 0:
        return None
    found = median(gaps.length_ns[gaps.length_ns > PAUSE_RATIO * usual[0]])
    return None if found is None else Figure(found.value / NS_PER_S, found.n)


def pause_unevenness(streams: Streams) -> Figure | None:
    """(p75 - p25) / p50 of the time between pauses: near 0 a clock makes them, 1.6 where they come at random.

    That of the exponential distribution is ln 3 / ln 2. n pauses.
    """
    starts = streams.once(_pauses)
    if starts is None or len(starts) < LEAST_PAUSES:
        return None
    low, middle, high = np.percentile(np.diff(starts), [25, 50, 75])
    return Figure(float((high - low) / middle), len(starts)) if middle > 0 else None


def pause_clock(streams: Streams) -> Figure | None:
    """How well pauses keep to a clock, some of whose strokes may be missed: 0 not at all, 1 all at one phase of it.

    The length of their mean vector at the best of all periods, 0 where chance makes as long a one (Rayleigh's test, for
    as many periods as were tried). n pauses; None of fewer than LEAST_PAUSES. A period is longer than a pause.
    """
    starts, length = streams.once(_pauses), pause_length_s(streams)
    if starts is None or len(starts) < LEAST_PAUSES or length is None or length.value <= 0:
        return None
    at_s = (starts[:_MOST_PAUSES] - starts[0]) / NS_PER_S
    lasts_s, usual_s = float(at_s[-1]), float(np.median(np.diff(at_s)))
    if lasts_s <= 0 or usual_s <= 0:
        return None
    slowest, fastest = 0.67 / usual_s, 1 / length.value
    rates = np.arange(slowest, max(fastest, 1.5 * slowest), 0.25 / lasts_s)
    if len(rates) * len(at_s) > _MOST_PRODUCTS:
        return None
    vectors = np.abs(np.exp(2j * np.pi * rates[:, None] * at_s[None, :]).mean(axis=1))
    longest = float(vectors.max())
    by_chance = len(rates) * np.exp(-len(at_s) * longest**2)
    return Figure(longest if by_chance < _CHANCE else 0.0, len(at_s))


def pause_time_share(streams: Streams) -> Figure | None:
    """Share of all time between tokens that lies in pauses, beyond the usual gap; n gaps."""
    gaps, usual = streams.gaps, streams.gap_p50_p99_ns
    if usual is None or usual[0] <= 0 or not len(gaps.length_ns):
        return None
    long = gaps.length_ns > PAUSE_RATIO * usual[0]
    return Figure(float((gaps.length_ns[long] - usual[0]).sum() / max(gaps.length_ns.sum(), 1)), len(gaps.length_ns))


def _pauses(streams: Streams) -> Ints | None:
    """When each pause began, in order; None without gaps."""
    gaps, usual = streams.gaps, streams.gap_p50_p99_ns
    if usual is None or usual[0] <= 0:
        return None
    chosen = np.flatnonzero(gaps.length_ns > PAUSE_RATIO * usual[0])
    starts = np.sort(streams.at_ns[gaps.place[chosen]])
    if not len(starts):
        return starts
    apart = TOGETHER * float(np.median(gaps.length_ns[chosen]))
    fresh: Ints = starts[np.concatenate([[True], np.diff(starts) > apart])]
    return fresh


def quota_quiet_share(streams: Streams) -> Figure | None:
    """Longest part of the quota's period in which no step ever ends, as a share of it; n steps of the window.

    n steps at random leave about ln n / n of it. None of fewer than LEAST_STEPS, and of steps so regular (p10 to p90
    within 5 % of the median) that their own rhythm would leave as much.
    """
    stamps = np.sort(streams.at_ns[streams.at_ns != NONE])
    stamps = stamps[(stamps >= streams.span.start_ns) & (stamps < streams.span.end_ns)]
    if len(stamps) < LEAST_STEPS:
        return None
    steps = stamps[np.concatenate([[True], np.diff(stamps) > _ONE_STEP_NS])]
    if len(steps) < LEAST_STEPS:
        return None
    low, middle, high = np.percentile(np.diff(steps), [10, 50, 90])
    if high - low < _REGULAR * middle:
        return None
    phases = np.sort(steps % QUOTA_NS)
    arcs = np.diff(np.concatenate([phases, [phases[0] + QUOTA_NS]]))
    return Figure(float(arcs.max() / QUOTA_NS), len(steps))
