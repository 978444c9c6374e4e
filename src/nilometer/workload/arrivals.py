"""When requests of an open loop are due: pacers, as pure sequences of offsets from the start of the load.

A pacer sends nothing and reads no clock; it is endless, whoever uses it stops it. One rate throughout: `constant`,
`poisson`, `gamma:CV`. A rate that changes by plan: the shapes `ramp`, `steps`, `spike`, Poisson at every moment.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from random import Random
from typing import NamedTuple

from ..core.clock import NS_PER_S
from ..core.errors import SpecError

_NUMBER = r"\d+(?:\.\d+)?"
_SECONDS = rf"({_NUMBER})(ms|s|m|h)?"
_UNIT_S = {"ms": 0.001, None: 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
_STEP = re.compile(rf"({_NUMBER})@{_SECONDS}")
_TWO_RATES = re.compile(rf"({_NUMBER}),({_NUMBER}),{_SECONDS}")
KNOWN = "constant, poisson, gamma:CV, ramp:R1,R2,T, steps:R@T,..., spike:BASE,PEAK,T"


class Stretch(NamedTuple):
    """Some time in which the rate (requests/s) goes evenly from one value to another."""

    length_s: float
    from_per_s: float
    to_per_s: float

    @property
    def requests(self) -> float:
        """How many are expected in it."""
        mean_per_s = (self.from_per_s + self.to_per_s) / 2
        return mean_per_s * self.length_s if mean_per_s else 0.0

    def when_s(self, requests: float) -> float:
        """Seconds into it until so many are expected: the root of from t + (to - from) t^2 / 2 length = requests."""
        slope = (self.to_per_s - self.from_per_s) / self.length_s if math.isfinite(self.length_s) else 0.0
        return 2 * requests / (self.from_per_s + math.sqrt(max(self.from_per_s**2 + 2 * slope * requests, 0.0)))


def constant(rate_per_s: float, random: Random) -> Iterator[int]:  # noqa: ARG001 - one form for all pacers
    """Every 1 / rate seconds, the first at 0; each from its number, so that no rounding adds up."""
    number = 0
    while True:
        yield round(number * NS_PER_S / rate_per_s)
        number += 1


def poisson(rate_per_s: float, random: Random) -> Iterator[int]:
    """Independent exponential gaps of mean 1 / rate; the first request comes after the first gap."""
    return _summed(lambda: random.expovariate(rate_per_s))


def gamma(cv: float, rate_per_s: float, random: Random) -> Iterator[int]:
    """Independent gaps of mean 1 / rate whose standard deviation is `cv` means: 1 is Poisson, above it bursts."""
    shape = 1 / cv**2
    return _summed(lambda: random.gammavariate(shape, 1 / (shape * rate_per_s)))


def shaped(stretches: list[Stretch], random: Random) -> Iterator[int]:
    """A Poisson process whose rate goes through these stretches: unit arrivals, at the time when so many are expected.

    It ends where the last stretch does, if that is ever.
    """
    begun_s, expected = 0.0, random.expovariate(1.0)
    for stretch in stretches:
        while expected < stretch.requests:
            yield round((begun_s + stretch.when_s(expected)) * NS_PER_S)
            expected += random.expovariate(1.0)
        expected -= stretch.requests
        begun_s += stretch.length_s


def _summed(gap_s: Callable[[], float]) -> Iterator[int]:
    due_s = 0.0
    while True:
        due_s += gap_s()
        yield round(due_s * NS_PER_S)


def pacer(text: str, rate_per_s: float | None, random: Random, *, warmup_s: float = 0.0) -> Iterator[int]:
    """Due offsets in ns, non-decreasing. A shape begins after the warm-up, which has its first rate.

    Refuses with SpecError `arrivals_unknown`; `arrivals_invalid` what cannot be read or is never above 0;
    `rate_invalid`; `two_loops` a rate beside a shape, which has its own.
    """
    text = text.strip()
    name, _, values = text.partition(":")
    stretches = plan(text)
    if stretches is not None:
        if rate_per_s is not None:
            raise SpecError("two_loops")
        first = stretches[0].from_per_s
        return shaped([Stretch(warmup_s, first, first), *stretches] if warmup_s else stretches, random)
    if name not in ("constant", "poisson", "gamma") or (name == "gamma") != bool(values):
        raise SpecError("arrivals_unknown", text=text, known=KNOWN)
    if rate_per_s is None or not (math.isfinite(rate_per_s) and rate_per_s > 0):
        raise SpecError("rate_invalid", rate=rate_per_s)
    if name == "gamma":
        return gamma(_cv(text, values), rate_per_s, random)
    return constant(rate_per_s, random) if name == "constant" else poisson(rate_per_s, random)


def plan(text: str) -> list[Stretch] | None:
    """The stretches of a shape, the last without end; None where `text` names none. Slug `arrivals_invalid`.

    `ramp:R1,R2,T`: evenly from R1 to R2 over T, then R2. `steps:R@T,...`: each rate for its time, the last for ever.
    `spike:BASE,PEAK,T`: BASE for T, PEAK for T, BASE again.
    """
    name, _, values = text.strip().partition(":")
    if name == "steps":
        stretches = [_step(text, step) for step in values.split(",")]
        stretches[-1] = stretches[-1]._replace(length_s=math.inf)
    elif name in ("ramp", "spike"):
        first, second, length_s = _two_rates(text, values)
        if name == "ramp":
            stretches = [Stretch(length_s, first, second), _held(second, math.inf)]
        else:
            stretches = [_held(first, length_s), _held(second, length_s), _held(first, math.inf)]
    else:
        return None
    if not any(stretch.from_per_s or stretch.to_per_s for stretch in stretches):
        raise SpecError("arrivals_invalid", text=text, known=KNOWN)
    return stretches


def mean_rate_per_s(text: str, rate_per_s: float | None, seconds: float) -> float:
    """Requests expected per second over the first so many seconds after the warm-up."""
    stretches = plan(text)
    if stretches is None:
        return rate_per_s or 0.0
    left_s, requests = seconds, 0.0
    for stretch in stretches:
        share = min(left_s / stretch.length_s, 1.0) if math.isfinite(stretch.length_s) else 1.0
        to_per_s = stretch.from_per_s + (stretch.to_per_s - stretch.from_per_s) * share
        part_s = min(left_s, stretch.length_s)
        requests += (stretch.from_per_s + to_per_s) / 2 * part_s
        left_s -= part_s
    return requests / seconds if seconds else stretches[0].from_per_s


def peak_rate_per_s(text: str, rate_per_s: float | None, seconds: float) -> float:
    """The greatest rate over the first so many seconds after the warm-up."""
    begun_s, peak = 0.0, rate_per_s or 0.0
    for stretch in plan(text) or []:
        if begun_s < seconds:
            part = min((seconds - begun_s) / stretch.length_s, 1.0) if math.isfinite(stretch.length_s) else 1.0
            peak = max(peak, stretch.from_per_s, stretch.from_per_s + (stretch.to_per_s - stretch.from_per_s) * part)
        begun_s += stretch.length_s
    return peak


def _held(rate_per_s: float, length_s: float) -> Stretch:
    return Stretch(length_s, rate_per_s, rate_per_s)


def _step(text: str, step: str) -> Stretch:
    found = _STEP.fullmatch(step.strip())
    if found is None:
        raise SpecError("arrivals_invalid", text=text, known=KNOWN)
    return _held(float(found[1]), _length_s(text, found[2], found[3]))


def _two_rates(text: str, values: str) -> tuple[float, float, float]:
    found = _TWO_RATES.fullmatch(values.replace(" ", ""))
    if found is None:
        raise SpecError("arrivals_invalid", text=text, known=KNOWN)
    return float(found[1]), float(found[2]), _length_s(text, found[3], found[4])


def _length_s(text: str, number: str, unit: str | None) -> float:
    length_s = float(number) * _UNIT_S[unit]
    if not (0 < length_s < math.inf):
        raise SpecError("arrivals_invalid", text=text, known=KNOWN)
    return length_s


def _cv(text: str, value: str) -> float:
    if re.fullmatch(_NUMBER, value) is None or not 0 < float(value) <= 100:
        raise SpecError("arrivals_invalid", text=text, known=KNOWN)
    return float(value)
