"""The worker's watch on itself: a heartbeat that tells how long the loop was away, and a row of health every 100 ms.

It also holds the offsets between wall and monotonic clock by which kernel stamps are converted, and the stretches in
which the wall clock stepped, where they cannot be.
"""

from __future__ import annotations

import time
from array import array
from asyncio import AbstractEventLoop
from bisect import bisect_left, bisect_right
from collections.abc import Callable

BEAT_S = 0.004
LATE_NS = 8_000_000
"""A read that comes this long after the last heartbeat comes late: the loop was away for two beats at least."""
ROW_NS = 100_000_000
STEP_NS = 1_000_000
"""Offsets of neighbouring rows that differ by more: the wall clock was stepped between them."""
_CALM_NS = 20_000
"""Offsets within this of each other are one offset: no need to look each stamp's own up."""


class Pulse:
    """`beat_ns` is the moment of the last heartbeat; `frames` counts body pieces for the live screen."""

    def __init__(self, loop: AbstractEventLoop, in_flight: Callable[[], int], on_row: Callable[[int], None]) -> None:
        self._loop = loop
        self._in_flight = in_flight
        self._on_row = on_row
        self._lag_max = 0
        self._row_ns = 0
        self.beat_ns = time.monotonic_ns()
        self.frames = 0
        self.at = array("q")
        self.offset = array("q")
        self.lag_max = array("q")
        self.in_flight = array("q")
        self.cpu = array("q")
        self.steps: list[tuple[int, int]] = []

    def start(self) -> None:
        self.row(time.monotonic_ns())
        self._beat()

    def _beat(self) -> None:
        now = time.monotonic_ns()
        lag = now - self.beat_ns - int(BEAT_S * 1e9)
        self._lag_max = max(self._lag_max, lag)
        self.beat_ns = now
        if now - self._row_ns >= ROW_NS:
            self.row(now)
            self._on_row(now)
        self._loop.call_later(BEAT_S, self._beat)

    def row(self, now: int) -> None:
        """Write down one row of health."""
        offset = wall_offset_ns()
        if self.offset and abs(offset - self.offset[-1]) > STEP_NS:
            self.steps.append((self.at[-1], now))
        self.at.append(now)
        self.offset.append(offset)
        self.lag_max.append(self._lag_max)
        self.in_flight.append(self._in_flight())
        self.cpu.append(time.process_time_ns())
        self._lag_max = 0
        self._row_ns = now

    def stepped(self, start_ns: int, end_ns: int) -> bool:
        """Whether the wall clock stepped within this stretch of time."""
        return any(a <= end_ns and start_ns <= b for a, b in self.steps)

    def offsets(self, start_ns: int, end_ns: int) -> int | None:
        """The one offset that holds over this stretch, or None where `offset_at` must be asked for each stamp.

        Ask it before `stepped`: it also looks for a step that no row tells of yet.
        """
        if end_ns > self.at[-1] and abs(wall_offset_ns() - self.offset[-1]) > STEP_NS:
            self.row(time.monotonic_ns())
        first = max(bisect_right(self.at, start_ns) - 1, 0)
        last = min(bisect_left(self.at, end_ns) + 1, len(self.at))
        held = self.offset[first:last]
        return held[-1] if max(held) - min(held) <= _CALM_NS else None

    def offset_at(self, at_ns: int) -> int:
        """The offset of the last row before this moment."""
        return self.offset[max(bisect_right(self.at, at_ns) - 1, 0)]


def wall_offset_ns() -> int:
    """Wall clock minus monotonic clock, from the narrowest of five triples."""
    best_width, best = 1 << 62, 0
    for _ in range(5):
        before = time.monotonic_ns()
        wall = time.time_ns()
        after = time.monotonic_ns()
        if after - before < best_width:
            best_width, best = after - before, wall - (before + after) // 2
    return best
