"""How tokens reach the client: as they are made, in bursts, or all at the end; and how long their gaps are."""

from __future__ import annotations

import numpy as np

from nilometer.core.clock import NS_PER_MS
from nilometer.metrics.quantiles import percentile

from ..figure import Figure, median, share
from ..streams import Streams

BURST_NS = 1_000_000
"""No model makes a token in less: frames that come this close were held back somewhere."""
LEAST_GAPS = 100
"""Fewer gaps have no p99."""


def requests_per_s(streams: Streams) -> Figure | None:
    """Ok requests a second as in the run's figures; n ok requests that start in the window."""
    return _rate(streams, streams.run.summary.throughput.requests_per_s)


def output_tokens_per_s(streams: Streams) -> Figure | None:
    """Output tokens a second as in the run's figures; n ok requests that start in the window."""
    return _rate(streams, streams.run.summary.throughput.output_tokens_per_s)


def stream_share(streams: Streams) -> Figure | None:
    """Median of TTFT over E2E, ok requests of the window: 1 where the whole answer comes at the end.

    Both from `sent`: what the client waited for before it is no part of the stream.
    """
    table, measured = streams.table, streams.measured
    end = table.latency("e2e_from_sent")[measured]
    first = table.latency("ttft_from_sent")[measured]
    return median(first[end > 0] / end[end > 0])


def burst_share(streams: Streams) -> Figure | None:
    """Share of the gaps that are shorter than BURST_NS; n gaps."""
    return share(streams.gaps.length_ns < BURST_NS)


def tokens_per_frame(streams: Streams) -> Figure | None:
    """Output tokens a frame as in the run's figures, `lengths.tokens_per_frame`; n requests of the window.

    Above 1, a frame gap is no token gap.
    """
    value = streams.run.summary.lengths.tokens_per_frame
    return None if value is None else Figure(value, int((streams.measured & (streams.table.frames > 0)).sum()))


def token_gap_ms(streams: Streams) -> Figure | None:
    """Median gap per token over the window, ms; n gaps."""
    value = streams.token_gap_ns
    return None if value is None else Figure(value / NS_PER_MS, len(streams.gaps.length_ns))


def gap_tail_ratio(streams: Streams) -> Figure | None:
    """p99 of the gaps over their median; n gaps. None where the median is 0 or fewer than 100 were seen."""
    known, n = streams.gap_p50_p99_ns, len(streams.gaps.length_ns)
    return Figure(known[1] / known[0], n) if known and known[0] > 0 and n >= LEAST_GAPS else None


def first_token_tail_ratio(streams: Streams) -> Figure | None:
    """p95 of TTFT over its median; n requests. Near 1 where every prompt is alike and nothing waits."""
    values = np.sort(streams.table.latency("ttft_from_sent")[streams.measured])
    values = values[~np.isnan(values)]
    middle, tail = percentile(values, 50), percentile(values, 95)
    return Figure(tail / middle, len(values)) if middle and tail is not None else None


def _rate(streams: Streams, value: float | None) -> Figure | None:
    return None if value is None else Figure(value, int(streams.measured.sum()))
