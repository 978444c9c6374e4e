"""How long a user thinks between an answer and the next turn: seconds, drawn from what a spec names. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random

from ..core.errors import SpecError
from .lengths import Z95

KINDS = "5 | uniform:1,10 | exponential:MEAN | lognormal:MEDIAN,P95"
LONGEST_S = 86_400.0
Think = Callable[[Random], float]
"""One think time in seconds."""


def parse(text: str) -> Think:
    """What `text` names, in seconds; slug `think_unknown` where it names nothing that can be."""
    kind, colon, rest = text.strip().partition(":")
    if not colon:
        (seconds,) = _numbers(text, kind, 1)
        return lambda _: seconds
    reader = _READERS.get(kind.strip())
    if reader is None:
        raise SpecError("think_unknown", text=text, known=KINDS)
    return reader(text, rest)


def mean_s(text: str) -> float:
    """The expected think time that `text` names."""
    kind, _, rest = text.strip().partition(":")
    numbers = _numbers(text, rest or kind, 2 if "," in rest else 1)
    if kind.strip() == "lognormal":
        return numbers[0] * math.exp(_sigma(*numbers) ** 2 / 2)
    return sum(numbers) / len(numbers)


def _uniform(text: str, rest: str) -> Think:
    low, high = _ordered(text, rest)
    return lambda random: random.uniform(low, high)


def _exponential(text: str, rest: str) -> Think:
    (mean,) = _numbers(text, rest, 1)
    return lambda random: random.expovariate(1 / mean) if mean else 0.0


def _lognormal(text: str, rest: str) -> Think:
    median, p95 = _ordered(text, rest)
    if median <= 0:
        raise SpecError("think_unknown", text=text, known=KINDS)
    sigma = _sigma(median, p95)
    return lambda random: median * math.exp(sigma * random.normalvariate())


def _sigma(median: float, p95: float) -> float:
    return math.log(p95 / median) / Z95


def _ordered(text: str, rest: str) -> tuple[float, float]:
    low, high = _numbers(text, rest, 2)
    if low >= high:
        raise SpecError("think_unknown", text=text, known=KINDS)
    return low, high


def _numbers(text: str, rest: str, count: int) -> list[float]:
    try:
        numbers = [float(part) for part in rest.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) != count or not all(0 <= number <= LONGEST_S for number in numbers):
        raise SpecError("think_unknown", text=text, known=KINDS)
    return numbers


_READERS: dict[str, Callable[[str, str], Think]] = {
    "uniform": _uniform,
    "exponential": _exponential,
    "lognormal": _lognormal,
}
