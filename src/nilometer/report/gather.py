"""One pass over the records of a run: what its charts, its slowest requests and its failures are made from.

A record is looked at once and let go, but for the slowest few.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from itertools import count
from typing import NamedTuple

from nilometer.core.clock import NS_PER_S
from nilometer.core.record import Record
from nilometer.core.run import Run
from nilometer.metrics.request import e2e_ns
from nilometer.metrics.table import Rows, Table
from nilometer.metrics.window import Span

from .failures import Failing, Failures

SLOWEST = 50


class Gathered(NamedTuple):
    """What a run's records told. `slowest`: those of the window that took longest, the slowest first."""

    table: Table
    slowest: list[Record]
    failures: Failures


def span_of(run: Run) -> Span:
    """The window of a run on its clock."""
    window = run.summary.window
    start_ns = run.phases.measured_ns + round(window.start_s * NS_PER_S)
    return Span(start_ns, start_ns + round(window.length_s * NS_PER_S))


def gather(run: Run, records: Iterable[Record], slowest: int = SLOWEST) -> Gathered:
    """Take the records of `run` once, in any order, and keep none but the `slowest`."""
    rows, failing, longest = Rows(), Failing(run.phases.measured_ns), _Longest(span_of(run), slowest)
    for record in records:
        rows.add(record)
        failing.add(record)
        longest.add(record)
    return Gathered(rows.table(), longest.found(), failing.found())


class _Longest:
    """The few requests that started in the window and took longest, however they ended."""

    def __init__(self, span: Span, most: int) -> None:
        self._span = span
        self._most = most
        self._heap: list[tuple[int, int, Record]] = []
        self._numbers = count()

    def add(self, record: Record) -> None:
        start_ns, took_ns = record.start_ns, e2e_ns(record)
        if start_ns is None or took_ns is None or not self._span.start_ns <= start_ns < self._span.end_ns:
            return
        entry = (took_ns, -next(self._numbers), record)
        if len(self._heap) < self._most:
            heapq.heappush(self._heap, entry)
        elif self._heap and entry > self._heap[0]:
            heapq.heappushpop(self._heap, entry)

    def found(self) -> list[Record]:
        return [record for _, _, record in sorted(self._heap, reverse=True)]
