"""How first tokens come: into running decodes or only between batches, evenly spaced or in bursts."""

from __future__ import annotations

import numpy as np

from nilometer.core.clock import NS_PER_MS
from nilometer.metrics.quantiles import Ints, percentile

from ..figure import Figure, share
from ..streams import Streams

STARTED_GAPS = 3
"""A stream that is joined began more than so many token gaps earlier: those that begin together join nobody."""
LEAST_TURNS = 5


def join_share(streams: Streams) -> Figure | None:
    """Share of the first tokens in the window at which another stream that began earlier is still emitting.

    Earlier: by more than STARTED_GAPS median token gaps; still emitting: its last token is yet to come. n first tokens.
    Static batching has 0, unless the prompts of a batch take longer than that: see `refill_share`. None without gaps.
    """
    if streams.token_gap_ns is None:
        return None
    first, latest = _starts(streams)
    moments = first[streams.span.holds(first)]
    earlier = np.searchsorted(first, moments - STARTED_GAPS * streams.token_gap_ns)
    return share((earlier > 0) & (latest[np.maximum(earlier - 1, 0)] > moments))


def refill_share(streams: Streams) -> Figure | None:
    """Share of the first tokens in the window that come while a stream goes on that has seen another one end.

    A static batch takes nobody in once its first stream has ended, so it has 0 however long its prompts take. n first
    tokens; None without any.
    """
    first, latest = _starts(streams)
    ended = np.sort(streams.last_token_ns[streams.spoke])
    moments = first[streams.span.holds(first)]
    oldest = np.searchsorted(latest, moments, side="right")
    begun = first[np.minimum(oldest, max(len(first) - 1, 0))] if len(first) else moments
    alive = (oldest < len(first)) & (begun < moments)
    since = np.searchsorted(ended, moments, side="left") - np.searchsorted(ended, begun, side="right")
    return share(alive & (since > 0))


def first_token_spacing_ms(streams: Streams) -> Figure | None:
    """Median time from one first token to the next, over all streams of the window, ms; n spacings."""
    return _spacing(streams, 50)


def first_token_spacing_p10_ms(streams: Streams) -> Figure | None:
    """p10 of the same."""
    return _spacing(streams, 10)


def spacing_evenness(streams: Streams) -> Figure | None:
    """p10 over p50 of the spacing of first tokens: near 1 where something lets one through at a time.

    0.15 is what random arrivals make (the exponential distribution's ln(10/9) / ln 2).
    """
    low, middle = _spacing(streams, 10), _spacing(streams, 50)
    return Figure(low.value / middle.value, middle.n) if low and middle and middle.value > 0 else None


def turn_gap_ms(streams: Streams) -> Figure | None:
    """Median time from a stream's end to the first token of the one that takes its place, ms; n first tokens.

    With at most k streams decoding at once the (k + i)th first token follows the ith end. Where k is the number of
    slots and somebody always waits, that is what a request alone takes for its first token; where something before
    the engine lets one through at a time, it is a matter of its pace.
    """
    first = np.sort(streams.table.first_token_ns[streams.spoke])
    ended = np.sort(streams.last_token_ns[streams.spoke])
    before = np.searchsorted(ended, first, side="right")
    most = int((np.arange(1, len(first) + 1) - before).max(initial=0))
    gaps = first[most:] - ended[: len(first) - most]
    gaps = np.sort(gaps[streams.span.holds(first[most:])])
    value = percentile(gaps, 50)
    return None if value is None or len(gaps) < LEAST_TURNS else Figure(value / NS_PER_MS, len(gaps))


def _spacing(streams: Streams, percent: float) -> Figure | None:
    at_ns = np.sort(_first_tokens(streams))
    gaps = np.sort(at_ns[1:] - at_ns[:-1])
    value = percentile(gaps, percent)
    return None if value is None else Figure(value / NS_PER_MS, len(gaps))


def _starts(streams: Streams) -> tuple[Ints, Ints]:
    """First tokens in their order, and by when the last of the streams begun until then will have ended.

    The first stream whose end exceeds a moment is the oldest one that goes on then.
    """
    first, last = streams.table.first_token_ns[streams.spoke], streams.last_token_ns[streams.spoke]
    order = np.argsort(first, kind="stable")
    return first[order], np.maximum.accumulate(last[order])


def _first_tokens(streams: Streams) -> Ints:
    first = streams.table.first_token_ns
    return first[streams.spoke & streams.span.holds(first)]
