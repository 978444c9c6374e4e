"""Whether the requests of an open loop pile up: more come than the service can serve, and each waits longer. Pure.

Both must grow, beyond a margin: requests in flight alone also grow while a load fills up, and a TTFT alone may drift.
"""

from __future__ import annotations

from statistics import fmean

LEAST_S = 8.0
"""Shorter stretches tell nothing."""
LEAST_REQUESTS = 10.0
"""In flight must grow by so many, between the first and the last third of the time."""
RATIO = 1.5
"""... and both in flight and the TTFT of the latest requests by this factor."""


class Growth:
    """Looks on from the start of the measured stretch."""

    def __init__(self) -> None:
        self._looks: list[tuple[float, float, float | None]] = []

    def look(self, at_s: float, in_flight: float, ttft_ms: float | None) -> None:
        """How it stands: requests in flight, the median TTFT of those that got one lately."""
        self._looks.append((at_s, in_flight, ttft_ms))

    def is_real(self) -> bool:
        """False also while it cannot be told: too early, or no TTFT known."""
        if not self._looks or self._looks[-1][0] < LEAST_S:
            return False
        third = len(self._looks) // 3
        if not third:
            return False  # few looks in a long time: this machine was held up
        first, last = self._looks[:third], self._looks[-third:]
        before, after = fmean(flight for _, flight, _ in first), fmean(flight for _, flight, _ in last)
        waited = [[ttft for _, _, ttft in part if ttft is not None] for part in (first, last)]
        if after - before < LEAST_REQUESTS or after < RATIO * before:
            return False
        return all(waited) and fmean(waited[1]) >= RATIO * fmean(waited[0])
