"""Long gaps in the middle of streams: how many, whether they hit all streams at once, and what else went on then."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nilometer.metrics.quantiles import Floats, Ints
from nilometer.metrics.table import NONE

from ..figure import Figure, mean, share
from ..streams import Long, Streams

OVERLAP = 0.5
"""Another stream is hit by the same stall when one of its gaps covers more than half of it."""
_MOST = 1_000
_MOST_PAIRS = 2_000_000
"""So many long gaps (and gaps beside streams) are looked at, evenly taken from all."""


class _Pairs(NamedTuple):
    """For each long gap (place) the other streams (row) that were alive in its middle."""

    gap: Ints
    row: Ints


def long_gaps_per_request(streams: Streams) -> Figure | None:
    """Long gaps for each stream that had gaps in the window; n such streams.

    Long: above five times the median gap and above 50 ms.
    """
    firsts = np.searchsorted(streams.gaps.place, streams.first_frame)
    n = int((np.diff(firsts) > 0).sum())
    return Figure(len(streams.long_gaps.row) / n, n) if n else None


def gap_simultaneity(streams: Streams) -> Figure | None:
    """Mean share of the other live streams that have a gap over more than half of a long gap.

    A stream is live when the middle of the long gap lies between its first and last frame: only its gap there can cover
    more than half. n long gaps beside which another stream was live. A prefill that blocks all has 1, a victim 0.
    """
    long = _some(streams.long_gaps, _MOST)
    pairs = _beside(streams, long)
    if not len(pairs.gap):
        return None
    begin, end = long.begin_ns[pairs.gap], long.end_ns[pairs.gap]
    other_begin, other_end = _gap_at(streams, pairs.row, _middle(long)[pairs.gap])
    overlap = np.minimum(end, other_end) - np.maximum(begin, other_begin)
    hit = np.bincount(pairs.gap, weights=overlap > OVERLAP * (end - begin), minlength=len(long.row))
    beside = np.bincount(pairs.gap, minlength=len(long.row))
    return mean(hit[beside > 0] / beside[beside > 0])


def gap_prefill_share(streams: Streams) -> Figure | None:
    """Share of the long gaps that overlap another request's time between `sent` and first token; n long gaps.

    To be held against `prefill_time_share`: where somebody waits all the time, every gap overlaps.
    """
    long, (sent, until) = streams.long_gaps, _prefills(streams)
    begun = np.searchsorted(np.sort(sent), long.end_ns, side="left")
    over = np.searchsorted(np.sort(until), long.begin_ns, side="right")
    return share(begun > over)


def gap_first_token_share(streams: Streams) -> Figure | None:
    """Share of the long gaps during which, or within a median gap after which, another stream's first token came.

    A prefill that holds up the others ends with its own first token. n long gaps.
    """
    long = streams.long_gaps
    first = np.sort(streams.table.first_token_ns[streams.spoke])
    after = long.end_ns + (streams.token_gap_ns or 0.0)
    return share(np.searchsorted(first, after, side="right") > np.searchsorted(first, long.begin_ns, side="right"))


def prefill_time_share(streams: Streams) -> Figure | None:
    """Share of the window in which at least one request was between `sent` and first token; n requests in it."""
    flow = streams.flow
    total = int(flow.length_ns.sum())
    if not total:
        return None
    return Figure(int(flow.length_ns[flow.waiting > 0].sum()) / total, int(streams.stretch.started.sum()))


def _prefills(streams: Streams) -> tuple[Ints, Ints]:
    """From when to when each request that was sent waited for its first token (until its end, where none came)."""
    table = streams.table
    gone = table.sent_ns != NONE
    end = np.where(table.end_ns == NONE, streams.run.phases.end_ns, table.end_ns)
    until = np.where(table.first_token_ns == NONE, end, table.first_token_ns)[gone]
    return table.sent_ns[gone], np.maximum(until, table.sent_ns[gone])


def _some(long: Long, most: int) -> Long:
    """At most so many of them, evenly taken."""
    if len(long.row) <= most:
        return long
    chosen = np.linspace(0, len(long.row) - 1, most).astype(np.int64)
    return Long(long.row[chosen], long.begin_ns[chosen], long.end_ns[chosen])


def _middle(long: Long) -> Floats:
    middle: Floats = (long.begin_ns + long.end_ns) / 2
    return middle


def _beside(streams: Streams, long: Long) -> _Pairs:
    """The streams alive in the middle of each long gap, but for its own."""
    rows = np.flatnonzero(streams.table.frames >= 2)
    if not len(long.row) or not len(rows):
        return _Pairs(long.row[:0], long.row[:0])
    first = streams.at_ns[streams.first_frame[rows]]
    order = np.argsort(first, kind="stable")
    rows, first = rows[order], first[order]
    last = streams.at_ns[streams.first_frame[rows + 1] - 1]
    middle = _middle(long)
    low = np.searchsorted(np.maximum.accumulate(last), middle, side="right")
    high = np.maximum(np.searchsorted(first, middle, side="left"), low)
    gaps = np.arange(len(middle))[:: max(1, -(-int((high - low).sum()) // _MOST_PAIRS))]
    counts = (high - low)[gaps]
    gap = np.repeat(gaps, counts)
    ends = counts.cumsum()
    place = np.arange(int(counts.sum())) - np.repeat(ends - counts, counts) + low[gap]
    alive = (last[place] > middle[gap]) & (rows[place] != long.row[gap])
    return _Pairs(gap[alive], rows[place[alive]])


def _gap_at(streams: Streams, rows: Ints, moments: Floats) -> tuple[Ints, Ints]:
    """Begin and end of the gap of each stream around a moment between its first and last frame: by halving."""
    at = streams.at_ns
    low, high = streams.first_frame[rows] + 1, streams.first_frame[rows + 1] - 1
    while (low < high).any():
        middle = (low + high) // 2
        before = at[middle] <= moments
        low, high = np.where(before, np.minimum(middle + 1, high), low), np.where(before, high, middle)
    return at[low - 1], at[low]
