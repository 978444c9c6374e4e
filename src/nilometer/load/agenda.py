"""What is due when, to a fraction of a millisecond: the event loop's own timers only know whole ones."""

from __future__ import annotations

import heapq
import time
from asyncio import AbstractEventLoop
from collections.abc import Callable

_TIMER_GRAIN_NS = 1_500_000
"""Sleep until this long before the moment, then turn the loop: uvloop's timers are whole milliseconds, often late."""


class Agenda:
    """Calls actions at monotonic moments, in order."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0
        self._armed_ns: int | None = None

    def at(self, moment_ns: int, action: Callable[[], None]) -> None:
        """Call `action` at this moment, or now if it has passed."""
        self._count += 1
        heapq.heappush(self._heap, (moment_ns, self._count, action))
        self._arm()

    def clear(self) -> None:
        self._heap.clear()

    def _arm(self) -> None:
        if not self._heap:
            return
        moment = self._heap[0][0]
        if self._armed_ns is not None and self._armed_ns <= moment:
            return
        self._armed_ns = moment
        wait_ns = moment - time.monotonic_ns() - _TIMER_GRAIN_NS
        if wait_ns > 0:
            self._loop.call_later(wait_ns / 1e9, self._wake, moment)
        else:
            self._loop.call_soon(self._wake, moment)

    def _wake(self, armed_ns: int) -> None:
        if self._armed_ns != armed_ns:
            return  # armed anew for something earlier
        self._armed_ns = None
        while self._heap and self._heap[0][0] <= time.monotonic_ns():
            heapq.heappop(self._heap)[2]()
        self._arm()
