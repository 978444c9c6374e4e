"""A figure with its 80 % interval, so that no forecast stands as if it were measured."""

from __future__ import annotations

import msgspec


class Interval(msgspec.Struct, frozen=True):
    """`mid` is the best guess; the truth lies within `low`..`high` in four cases of five."""

    low: float
    mid: float
    high: float

    def times(self, factor: float) -> Interval:
        """All three, times a positive factor that is known."""
        return Interval(self.low * factor, self.mid * factor, self.high * factor)

    def under(self, numerator: float) -> Interval:
        """`numerator` divided by it: a rate of a time, a time of a rate."""
        return Interval(numerator / self.high, numerator / self.mid, numerator / self.low)
