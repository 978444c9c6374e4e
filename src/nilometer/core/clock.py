"""Clocks that are handed in.

Every stamp is CLOCK_MONOTONIC in ns; the wall clock only names moments, it is never subtracted.
"""

from __future__ import annotations

import time
from typing import NewType, Protocol

Ns = NewType("Ns", int)

NS_PER_S = 1_000_000_000
NS_PER_MS = 1_000_000


class Clock(Protocol):
    """The two readings a stage may ask for."""

    def monotonic_ns(self) -> Ns: ...

    def wall_ns(self) -> Ns: ...


class SystemClock:
    """The machine's own clocks."""

    def monotonic_ns(self) -> Ns:
        return Ns(time.monotonic_ns())

    def wall_ns(self) -> Ns:
        return Ns(time.time_ns())


class VirtualClock:
    """A clock that moves only when told to: tests and the simulator."""

    def __init__(self, monotonic_ns: int = 0, wall_ns: int = 0) -> None:
        self._monotonic_ns = monotonic_ns
        self._wall_ns = wall_ns

    def monotonic_ns(self) -> Ns:
        return Ns(self._monotonic_ns)

    def wall_ns(self) -> Ns:
        return Ns(self._wall_ns)

    def advance(self, ns: int) -> None:
        """Move both clocks forward by `ns`; refuses to go back."""
        if ns < 0:
            raise ValueError("a monotonic clock does not go back")
        self._monotonic_ns += ns
        self._wall_ns += ns

    def step_wall(self, ns: int) -> None:
        """Move the wall clock alone, as an NTP step does."""
        self._wall_ns += ns
