"""When a step that begins now ends, on a machine that is not always as fast as it should be.

Slowness (spells, drift, throttling, a slow replica) is taken at the moment a step begins and holds for all of it;
standing still (duty cycle) interrupts a step where it is. What is drawn is drawn in order, once for each moment: equal
generators give equal times, however often one looks.
"""

from __future__ import annotations

from math import exp, floor
from random import Random

from .faults import Faults


class Pace:
    """The pace of one replica. Moments in seconds, never asked to go back before the last one asked.

    `spells`, `jitter`: what each is drawn from; replicas on one machine have spells from equal generators.
    """

    def __init__(self, faults: Faults, spells: Random, jitter: Random, replica: int = 0) -> None:
        named = faults.replica_slowness
        self._faults = faults
        self._random, self._jitter = spells, jitter
        self._own = named[replica] if replica < len(named) else 1.0
        self._drawn_s, self._drawn = -1.0, 1.0
        self._spell_from_s = self._spell_to_s = 0.0
        self._spells = faults.spell_s > 0 and faults.spell_slowness != 1

    def slowness(self, at_s: float) -> float:
        """The factor on the seconds of a step that begins at this moment."""
        faults = self._faults
        factor = self._own * (1.0 + faults.leak_per_s * at_s)
        if at_s >= faults.throttle_after_s:
            factor *= faults.throttle_slowness
        if self._spells and self._in_spell(at_s):
            factor *= faults.spell_slowness
        return factor * self._jitter_of(at_s) if faults.jitter else factor

    def ends_s(self, begun_s: float, seconds: float) -> float:
        """When work of so many seconds, begun then, is done."""
        return self._worked(begun_s, seconds * self.slowness(begun_s))

    def _jitter_of(self, at_s: float) -> float:
        """Of the step that begins then, asked once or several times in a row."""
        if at_s != self._drawn_s:
            self._drawn_s, self._drawn = at_s, exp(self._jitter.gauss(0.0, self._faults.jitter))
        return self._drawn

    def _in_spell(self, at_s: float) -> bool:
        while at_s >= self._spell_to_s:
            quiet_s = self._random.expovariate(1 / self._faults.quiet_s) if self._faults.quiet_s else 0.0
            self._spell_from_s = self._spell_to_s + quiet_s
            self._spell_to_s = self._spell_from_s + self._faults.spell_s
        return at_s >= self._spell_from_s

    def _worked(self, begun_s: float, seconds: float) -> float:
        """Only the first part of every period counts."""
        period_s, share = self._faults.duty_period_s, self._faults.duty_share
        if not period_s or share >= 1:
            return begun_s + seconds
        running_s = period_s * share
        periods = floor(begun_s / period_s)
        done_s = min(begun_s - periods * period_s, running_s) + seconds
        whole = floor(done_s / running_s)
        rest_s = done_s - whole * running_s
        if rest_s == 0 and whole:
            whole, rest_s = whole - 1, running_s
        return (periods + whole) * period_s + rest_s
