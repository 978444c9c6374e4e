"""How many tokens a request asks for: length distributions, read from the words of a spec.

Pure: random generators and the values of an empirical distribution are handed in; no file is opened here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from random import Random
from typing import Protocol

import msgspec

from ..core.errors import SpecError

KINDS = "128 | uniform:64,256 | lognormal:MEDIAN,P95 | empirical:FILE"
MOST_TOKENS = 10_000_000
"""The largest context that any model is said to have; a prompt beyond it is a slip of the pen."""
Z95 = 1.6448536269514722
"""Standard normal quantile at 0.95."""
Z999 = 3.090232306167813
"""The same at 0.999."""


class Distribution(Protocol):
    """Token counts of at least 1."""

    def sample(self, random: Random) -> int:
        """One length in tokens."""

    def mean(self) -> float:
        """Expected length in tokens."""

    def mean_square(self) -> float:
        """Expected square of the length."""

    def bounds(self) -> tuple[int, int]:
        """Shortest and longest length in tokens; p0.1 and p99.9 where there is no bound."""


class Fixed(msgspec.Struct, frozen=True):
    """Always the same."""

    tokens: int

    def sample(self, random: Random) -> int:  # noqa: ARG002 - one form for all distributions
        return self.tokens

    def mean(self) -> float:
        return float(self.tokens)

    def mean_square(self) -> float:
        return float(self.tokens**2)

    def bounds(self) -> tuple[int, int]:
        return self.tokens, self.tokens


NOTHING = Fixed(0)
"""The length of what is not generated at all: no words name it."""


class Uniform(msgspec.Struct, frozen=True):
    """Every whole number from `low` to `high`, both included, equally often."""

    low: int
    high: int

    def sample(self, random: Random) -> int:
        return random.randint(self.low, self.high)

    def mean(self) -> float:
        return (self.low + self.high) / 2

    def mean_square(self) -> float:
        """The square of the mean and the variance, (n^2 - 1) / 12 of n whole numbers in a row."""
        return self.mean() ** 2 + ((self.high - self.low + 1) ** 2 - 1) / 12

    def bounds(self) -> tuple[int, int]:
        return self.low, self.high


class LogNormal(msgspec.Struct, frozen=True):
    """Log-normal by its median and its 95th percentile: sigma = ln(p95 / median) / z(0.95), rounded to whole tokens."""

    median: int
    p95: int

    @property
    def sigma(self) -> float:
        return math.log(self.p95 / self.median) / Z95

    def _at(self, z: float) -> int:
        return max(1, round(self.median * math.exp(self.sigma * z)))

    def sample(self, random: Random) -> int:
        return self._at(random.normalvariate())

    def mean(self) -> float:
        """Median x exp(sigma^2 / 2), the mean of the unrounded distribution."""
        return self.median * math.exp(self.sigma**2 / 2)

    def mean_square(self) -> float:
        """Median^2 x exp(2 sigma^2), of the unrounded distribution like the mean."""
        return self.median**2 * math.exp(2 * self.sigma**2)

    def bounds(self) -> tuple[int, int]:
        return self._at(-Z999), self._at(Z999)


class Empirical(msgspec.Struct, frozen=True):
    """Values that were seen, drawn with equal chance."""

    values: tuple[int, ...]

    def sample(self, random: Random) -> int:
        return random.choice(self.values)

    def mean(self) -> float:
        return sum(self.values) / len(self.values)

    def mean_square(self) -> float:
        return sum(value**2 for value in self.values) / len(self.values)

    def bounds(self) -> tuple[int, int]:
        return min(self.values), max(self.values)


class Mixture(msgspec.Struct, frozen=True):
    """Several distributions, each as often as its weight says."""

    parts: tuple[Distribution, ...]
    weights: tuple[float, ...]

    def sample(self, random: Random) -> int:
        return random.choices(self.parts, self.weights)[0].sample(random)

    def mean(self) -> float:
        return self._weighted([part.mean() for part in self.parts])

    def mean_square(self) -> float:
        return self._weighted([part.mean_square() for part in self.parts])

    def _weighted(self, values: list[float]) -> float:
        pairs = zip(values, self.weights, strict=True)
        return sum(value * weight for value, weight in pairs) / sum(self.weights)

    def bounds(self) -> tuple[int, int]:
        low, high = zip(*(part.bounds() for part in self.parts), strict=True)
        return min(low), max(high)


def parse(text: str, values: Sequence[int] | None = None) -> Distribution:
    """The distribution that `text` names; `values` are the lengths in the file of `empirical:FILE`.

    Refuses with SpecError: `lengths_unknown` (no such kind), `lengths_number` (not whole numbers of at least 1),
    `lengths_too_long`, `lengths_order` (bounds the wrong way round), `lengths_values` (no values handed in).
    """
    kind, colon, rest = text.strip().partition(":")
    if not colon and kind.startswith(tuple("+-0123456789")):
        return Fixed(_numbers(text, kind, 1)[0])
    reader = _READERS.get(kind.strip())
    if reader is None:
        raise SpecError("lengths_unknown", text=text, known=KINDS)
    return reader(text, rest, values)


def empirical_file(text: str) -> str | None:
    """The file that `empirical:FILE` names, so that an edge can read it; None for the other kinds."""
    kind, _, rest = text.strip().partition(":")
    return rest.strip() if kind.strip() == "empirical" and rest.strip() else None


def _numbers(text: str, rest: str, count: int) -> list[int]:
    try:
        numbers = [int(part) for part in rest.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) != count or min(numbers) < 1:
        raise SpecError("lengths_number", text=text, count=count)
    if max(numbers) > MOST_TOKENS:
        raise SpecError("lengths_too_long", text=text, most=MOST_TOKENS)
    return numbers


def _uniform(text: str, rest: str, _: Sequence[int] | None) -> Distribution:
    low, high = _numbers(text, rest, 2)
    if low > high:
        raise SpecError("lengths_order", text=text)
    return Uniform(low, high)


def _lognormal(text: str, rest: str, _: Sequence[int] | None) -> Distribution:
    median, p95 = _numbers(text, rest, 2)
    if median >= p95:
        raise SpecError("lengths_order", text=text)
    return LogNormal(median, p95)


def _empirical(text: str, _: str, values: Sequence[int] | None) -> Distribution:
    if not values:
        raise SpecError("lengths_values", text=text)
    if min(values) < 1:
        raise SpecError("lengths_number", text=text, count=len(values))
    return Empirical(tuple(values))


_READERS: dict[str, Callable[[str, str, Sequence[int] | None], Distribution]] = {
    "uniform": _uniform,
    "lognormal": _lognormal,
    "empirical": _empirical,
}
