"""When requests of an open loop are due: pacers, as pure sequences of offsets from the start of the load.

A pacer sends nothing and reads no clock; it is endless, whoever uses it stops it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from random import Random

from ..core.clock import NS_PER_S
from ..core.errors import SpecError


def constant(rate_per_s: float, random: Random) -> Iterator[int]:  # noqa: ARG001 - one form for all pacers
    """Every 1 / rate seconds, the first at 0; each from its number, so that no rounding adds up."""
    number = 0
    while True:
        yield round(number * NS_PER_S / rate_per_s)
        number += 1


def poisson(rate_per_s: float, random: Random) -> Iterator[int]:
    """Independent exponential gaps of mean 1 / rate; the first request comes after the first gap."""
    due_s = 0.0
    while True:
        due_s += random.expovariate(rate_per_s)
        yield round(due_s * NS_PER_S)


PACERS: dict[str, Callable[[float, Random], Iterator[int]]] = {"constant": constant, "poisson": poisson}


def pacer(text: str, rate_per_s: float, random: Random) -> Iterator[int]:
    """Due offsets in ns, non-decreasing, endless. Refuses with SpecError `arrivals_unknown` or `rate_invalid`."""
    make = PACERS.get(text.strip())
    if make is None:
        raise SpecError("arrivals_unknown", text=text, known=", ".join(PACERS))
    if not (math.isfinite(rate_per_s) and rate_per_s > 0):
        raise SpecError("rate_invalid", rate=rate_per_s)
    return make(rate_per_s, random)
