"""The run second by second: in flight, tokens, arrivals, errors. From the columns of all requests, no window."""

from __future__ import annotations

import numpy as np

from nilometer.core.clock import NS_PER_S
from nilometer.core.run import Phases
from nilometer.core.summary import Second

from .collect import Seen
from .quantiles import Floats, Ints
from .table import NONE, Mask, Table


def timeline(seen: Seen, phases: Phases) -> list[Second]:
    """One Second for each that the run touched, counted from the end of the asked warm-up (negative before it).

    In flight is the mean over that second; tokens are those of ok requests that arrived in it, estimates included;
    arrivals are requests sent; errors are requests that ended in an error or were cut by the server.
    """
    table = seen.table
    first = (phases.start_ns - phases.measured_ns) // NS_PER_S
    last = (max(phases.end_ns - 1, phases.start_ns) - phases.measured_ns) // NS_PER_S
    seconds = _Seconds(phases.measured_ns + first * NS_PER_S, int(last - first) + 1)
    flight = in_flight(table, phases, seconds.borders_ns())
    arrived = seconds.tokens(seen)
    sent = seconds.count(table.sent_ns)
    failed = seconds.count(table.end_ns[table.of("error") | table.of("incomplete")])
    return [
        Second(at_s=int(first) + i, in_flight=float(flight[i]), output_tokens=float(arrived[i]), arrivals=a, errors=e)
        for i, (a, e) in enumerate(zip(sent.tolist(), failed.tolist(), strict=True))
    ]


def in_flight(table: Table, phases: Phases, borders_ns: Ints) -> Floats:
    """Mean number of requests between `sent` and last byte in each stretch between neighbouring borders."""
    sent, end = flights(table, phases)
    lengths = np.diff(borders_ns) / NS_PER_S
    mean: Floats = np.diff(_waited_s(sent, borders_ns) - _waited_s(end, borders_ns)) / lengths
    return mean


def flights(table: Table, phases: Phases) -> tuple[Ints, Ints]:
    """When each request that was sent was sent, and when it ended (the run's end where that was not seen)."""
    gone: Mask = table.sent_ns != NONE
    end = table.end_ns[gone]
    return table.sent_ns[gone], np.where(end == NONE, phases.end_ns, end)


def _waited_s(moments_ns: Ints, until_ns: Ints) -> Floats:
    """For each border, the seconds that have passed since each of the moments before it, summed."""
    since = np.sort(moments_ns - until_ns[0]) / NS_PER_S
    borders = (until_ns - until_ns[0]) / NS_PER_S
    before = np.searchsorted(since, borders)
    sums = np.concatenate([[0.0], since.cumsum()])
    waited: Floats = before * borders - sums[before]
    return waited


class _Seconds:
    """Whole seconds from `origin_ns` on."""

    def __init__(self, origin_ns: int, n: int) -> None:
        self._origin_ns = origin_ns
        self._n = n

    def borders_ns(self) -> Ints:
        return self._origin_ns + np.arange(self._n + 1, dtype=np.int64) * NS_PER_S

    def count(self, moments_ns: Ints, weights: Floats | None = None) -> Floats | Ints:
        """How many of the moments (or how much of their weights) each second holds; those outside count nowhere."""
        at = (moments_ns - self._origin_ns) // NS_PER_S
        inside = (moments_ns != NONE) & (at >= 0) & (at < self._n)
        if not inside.all():
            at, weights = at[inside], None if weights is None else weights[inside]
        return np.bincount(at, weights=weights, minlength=self._n)

    def tokens(self, seen: Seen) -> Floats:
        """Output tokens that arrived in each second."""
        arrived = np.zeros(self._n)
        for at_ns, tokens in seen.arrivals():
            arrived += self.count(at_ns, tokens)
        return arrived
