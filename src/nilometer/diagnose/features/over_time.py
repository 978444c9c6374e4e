"""What changes while the load stays: cold starts, drift, slow spells, a step from one moment on."""

from __future__ import annotations

from math import isfinite
from typing import NamedTuple

import numpy as np

from nilometer.core.clock import NS_PER_S
from nilometer.metrics import trend
from nilometer.metrics.quantiles import Floats, Ints
from nilometer.metrics.table import NONE
from nilometer.metrics.timeline import flights
from nilometer.metrics.window import LEAST_REQUESTS

from ..figure import Figure, correlation, median, ratio, runs
from ..streams import Streams

HEAD = 3
"""The first requests of a run, which a cold engine serves slowly."""
LEAST_REST = 10
IDLE_NS = NS_PER_S
"""An engine with nothing to do for so long may have let its clocks fall, or slept."""
LEAST_SLICES = 20
BLOCKS = 60
"""A step is looked for between so many stretches of equal length at most."""
LEAST_CUT_GAPS = 200
LEAST_SIDE = 5
"""Stretches on either side of a step."""


class Split(NamedTuple):
    """Values in two groups: the mean of the logs of each, and the share of the variance that lies between them."""

    slow: Ints
    """Which of the values belong to the upper group (1) or the lower (0); of a step, those behind it."""
    ratio: float
    between: float


def head_ratio(streams: Streams) -> Figure | None:
    """Mean TTFT of the run's first HEAD requests over the median of the rest, warm-up included; n of the rest.

    Of ok requests in the order of sending. To be read at the lowest level: at others the head has no queue before it.
    """
    ttft = _by_sending(streams)
    if len(ttft) < HEAD + LEAST_REST:
        return None
    rest = median(ttft[HEAD:])
    return ratio(Figure(float(ttft[:HEAD].mean()), len(ttft)), rest)


def after_idle_ratio(streams: Streams) -> Figure | None:
    """Median TTFT of the first request after each idle spell over that of all others; n spells, None without one.

    Idle: nothing was in flight for IDLE_NS. The run's first request is no such one.
    """
    table = streams.table
    sent, end = flights(table, streams.run.phases)
    order = np.argsort(sent, kind="stable")
    before = np.maximum.accumulate(end[order])[:-1]
    woke = np.flatnonzero(sent[order][1:] - before > IDLE_NS) + 1
    rows = np.flatnonzero(table.sent_ns != NONE)[order]
    ttft = table.latency("ttft_from_sent")[rows]
    others = np.ones(len(rows), dtype=np.bool_)
    others[woke] = False
    return ratio(median(ttft[woke]), median(ttft[others]))


def drift_share(streams: Streams, latency: str) -> Figure | None:
    """Drift of a latency over the window as a share of its median (Theil-Sen over 10 blocks); n requests.

    In the order of starts. None with fewer requests than tell whether a window was steady.
    """
    found = _drift(_in_order(streams, streams.table.latency(latency)))
    return None if found is None else Figure(found[0].share, found[1])


def drift_p(streams: Streams, latency: str) -> Figure | None:
    """p of Kendall's test that it does not drift."""
    found = _drift(_in_order(streams, streams.table.latency(latency)))
    return None if found is None else Figure(found[0].p, found[1])


def tokens_drift_share(streams: Streams, column: str) -> Figure | None:
    """The same of a count of tokens, `prompt_tokens` or `output_tokens`: what drifts with them is no fault."""
    counts: Ints = getattr(streams.table, column)
    found = _drift(_in_order(streams, np.where(counts == NONE, np.nan, counts)))
    return None if found is None else Figure(found[0].share, found[1])


def in_flight_drift_share(streams: Streams) -> Figure | None:
    """Drift of the number in flight over the window, from its seconds; n seconds. An open loop that grows is lost."""
    first, last = streams.run.summary.window.start_s, streams.run.summary.window.end_s
    seconds = streams.run.summary.timeline
    inside = [one.in_flight for one in seconds if last is not None and first <= one.at_s and one.at_s + 1 <= last]
    if len(inside) < trend.BLOCKS:
        return None
    share = trend.drift(np.array(inside)).share
    return Figure(share, len(inside)) if isfinite(share) else None


def slow_split(streams: Streams) -> Split | None:
    """The slices of the window in two groups by their token gap; None with fewer than LEAST_SLICES."""
    gap_ms = streams.slices.gap_ms
    return two_groups(gap_ms) if len(gap_ms) >= LEAST_SLICES and (gap_ms > 0).all() else None


def slow_ratio(streams: Streams) -> Figure | None:
    """Token gap of the slow slices over that of the others (means of logs); n slices."""
    split = streams.once(slow_split)
    return None if split is None else Figure(split.ratio, len(split.slow))


def slow_separation(streams: Streams) -> Figure | None:
    """Share of the variance that lies between slow and other slices: 1 two modes, 0.64 of normal values."""
    split = streams.once(slow_split)
    return None if split is None else Figure(split.between, len(split.slow))


def slow_time_share(streams: Streams) -> Figure | None:
    """Share of the slices that are slow; n slices."""
    split = streams.once(slow_split)
    return None if split is None else Figure(float(split.slow.mean()), len(split.slow))


def slow_spell_s(streams: Streams) -> Figure | None:
    """Mean length of a slow spell, s; n spells. Slices without a token do not break one."""
    split = streams.once(slow_split)
    if split is None:
        return None
    spells = runs(flag == 1 for flag in split.slow)
    return Figure(sum(spells) / len(spells) * streams.slices.length_ns / NS_PER_S, len(spells)) if spells else None


def slow_prefill_r(streams: Streams) -> Figure | None:
    """Correlation of slow slices with the first tokens in them: what is tied to prompts is the load's own doing."""
    split = streams.once(slow_split)
    return None if split is None else correlation(split.slow, streams.slices.first_tokens)


def step_split(streams: Streams) -> Split | None:
    """The moment before and after which the token gap differs most; of the medians of BLOCKS stretches at most."""
    blocks = [
        float(np.median(block)) for block in np.array_split(streams.slices.gap_ms, _blocks(streams)) if len(block)
    ]
    return in_order(np.array(blocks)) if len(blocks) >= LEAST_SLICES and min(blocks) > 0 else None


def step_ratio(streams: Streams) -> Figure | None:
    """Token gap after the step over that before it; n stretches."""
    split = step_split(streams)
    return None if split is None else Figure(split.ratio, len(split.slow))


def step_separation(streams: Streams) -> Figure | None:
    """Share of the variance that the step explains: 1 a clean step, 0.75 a straight drift."""
    split = step_split(streams)
    return None if split is None else Figure(split.between, len(split.slow))


def step_at_s(streams: Streams) -> Figure | None:
    """When it came, s from the start of the window; n stretches."""
    split = step_split(streams)
    if split is None:
        return None
    blocks = np.array_split(streams.slices.place, _blocks(streams))
    began = int(blocks[int(split.slow.argmax())][0])
    return Figure(began * streams.slices.length_ns / NS_PER_S, len(split.slow))


def cut_ratio(streams: Streams) -> Figure | None:
    """Median frame gap of the window over that of the stretch that its rule cut off before it; n gaps of that stretch.

    A warm-up is slow at first and has less than 1; more is a service that got slower, and was cut for what it no longer
    was. None where too little was cut.
    """
    known, at = streams.gap_p50_p99_ns, streams.at_ns
    if known is None or len(at) < 2:
        return None
    before = (at[:-1] >= streams.run.phases.measured_ns) & (at[1:] < streams.span.start_ns)
    borders = streams.first_frame[1:-1]
    before[borders[(borders > 0) & (borders < len(at))] - 1] = False
    gaps = (at[1:] - at[:-1])[before]
    if len(gaps) < LEAST_CUT_GAPS:
        return None
    return ratio(Figure(known[0], len(gaps)), median(gaps))


def two_groups(values: Floats) -> Split:
    """The split of values above 0 into low and high with the most variance (of logs) between them (Otsu 1979)."""
    order = np.argsort(values, kind="stable")
    at, gain = _best(np.log(values[order]), 1)
    slow = np.zeros(len(values), dtype=np.int64)
    slow[order[at:]] = 1
    return _split(values, slow, gain)


def in_order(values: Floats) -> Split | None:
    """The split of a series of values above 0 into before and after; None where a side would have too few."""
    if len(values) < 2 * LEAST_SIDE:
        return None
    at, gain = _best(np.log(values), LEAST_SIDE)
    return _split(values, (np.arange(len(values)) >= at).astype(np.int64), gain)


def _best(logs: Floats, least: int) -> tuple[int, float]:
    """Where to split a series so that the most of its variance lies between both sides, and what share that is."""
    n, total = len(logs), float(((logs - logs.mean()) ** 2).sum())
    left = np.arange(least, n - least + 1)
    sums = (logs - logs.mean()).cumsum()[left - 1]
    between = sums**2 * n / (left * (n - left))
    best = int(between.argmax())
    return int(left[best]), min(float(between[best]) / total, 1.0) if total > 0 else 0.0


def _split(values: Floats, slow: Ints, between: float) -> Split:
    logs = np.log(values)
    return Split(slow, float(np.exp(logs[slow == 1].mean() - logs[slow == 0].mean())), between)


def _blocks(streams: Streams) -> int:
    return min(BLOCKS, max(len(streams.slices.gap_ms), 1))


def _by_sending(streams: Streams) -> Floats:
    """TTFT from `sent` of all ok requests of the run that have one, in the order of sending."""
    table = streams.table
    ttft = table.latency("ttft_from_sent")
    rows = np.flatnonzero(table.of("ok") & ~np.isnan(ttft))
    ordered: Floats = ttft[rows[np.argsort(table.sent_ns[rows], kind="stable")]]
    return ordered


def _in_order(streams: Streams, column: Floats) -> Floats:
    """A column of the ok requests of the window in the order of starts, without NaN."""
    rows = np.flatnonzero(streams.measured & ~np.isnan(column))
    ordered: Floats = column[rows[np.argsort(streams.table.start_ns[rows], kind="stable")]]
    return ordered


def _drift(values: Floats) -> tuple[trend.Drift, int] | None:
    """Drift and count; None of too few values, and where what is 0 in the middle grows: that has no share."""
    if len(values) < LEAST_REQUESTS:
        return None
    found = trend.drift(values)
    return (found, len(values)) if isfinite(found.share) else None
