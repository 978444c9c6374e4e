"""Requests of two kinds, fast and slow: beside each other by nothing that the client knows, by replica, or in time.

Where the two kinds take turns in time something slowed the whole server down; where they stand beside each other the
requests met different servers, or a first attempt that was lost.
"""

from __future__ import annotations

import numpy as np

from nilometer.metrics.quantiles import Floats, Ints

from ..figure import Figure, between_groups
from ..streams import Streams
from .over_time import Split, two_groups

LEAST_REQUESTS = 20
_TIME_BLOCKS = 20


def mode_ratio(streams: Streams, latency: str) -> Figure | None:
    """The slow requests' latency over that of the others (means of logs); n requests of the window."""
    split = streams.once(_split, latency)
    return None if split is None else Figure(split.ratio, len(split.slow))


def mode_separation(streams: Streams, latency: str) -> Figure | None:
    """Share of the variance of the log that lies between the two kinds: 1 two values, 0.64 of normal ones."""
    split = streams.once(_split, latency)
    return None if split is None else Figure(split.between, len(split.slow))


def mode_share(streams: Streams, latency: str) -> Figure | None:
    """Share of the requests that are slow."""
    split = streams.once(_split, latency)
    return None if split is None else Figure(float(split.slow.mean()), len(split.slow))


def mode_in_time(streams: Streams, latency: str) -> Figure | None:
    """How far the time of its start tells whether a request is slow: adjusted eta squared over stretches of the window.

    Near 0 where slow and fast ones stand beside each other; n requests.
    """
    split = streams.once(_split, latency)
    if split is None:
        return None
    starts = streams.table.start_ns[_rows(streams, latency)]
    order = np.argsort(np.argsort(starts, kind="stable"), kind="stable")
    blocks: Ints = order * min(_TIME_BLOCKS, len(order) // 5) // len(order)
    return between_groups(split.slow.astype(np.float64), blocks)


def slow_mode_spread(streams: Streams, latency: str) -> Figure | None:
    """Distance of p90 and p10 of the slow ones' latency over their median: small where one and the same wait made them.

    n slow requests; None with fewer than 5.
    """
    split = streams.once(_split, latency)
    if split is None or split.slow.sum() < 5:
        return None
    slow = _values(streams, latency)[split.slow == 1]
    low, middle, high = np.percentile(slow, [10, 50, 90])
    return Figure(float((high - low) / middle), len(slow))


def replica_share(streams: Streams, latency: str) -> Figure | None:
    """Share of the variance of the log of a latency that lies between the replicas that answered; None with one."""
    rows = _rows(streams, latency)
    replica = streams.replica[rows]
    known = replica >= 0
    return between_groups(np.log(_values(streams, latency)[known]), replica[known])


def _rows(streams: Streams, latency: str) -> Ints:
    values = streams.table.latency(latency)
    return np.flatnonzero(streams.measured & (np.nan_to_num(values) > 0))


def _values(streams: Streams, latency: str) -> Floats:
    values: Floats = streams.table.latency(latency)[_rows(streams, latency)]
    return values


def _split(streams: Streams, latency: str) -> Split | None:
    values = _values(streams, latency)
    return two_groups(values) if len(values) >= LEAST_REQUESTS and np.ptp(values) > 0 else None
