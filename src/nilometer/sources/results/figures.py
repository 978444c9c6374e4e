"""A tool's own figures as Distributions and Lengths: scaled to ms, with the mark of too few samples, zeros left out.

Only what agrees by definition comes here; which field that is, its tool's file says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from nilometer.core.summary import Distribution, Length
from nilometer.metrics.quantiles import PERCENTILES, is_marked

from .fields import Fields

STATS = ("mean", "sd", "min", "p50", "p90", "p95", "p99", "max")
Names = Mapping[str, str]
"""Stat of ours -> name of the tool's."""
FACTORS = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3, "sec": 1e3, "seconds": 1e3}
"""ms in a unit of time, by the names that tools give it."""


def distribution(value: Callable[[str], float | None], n: int | None, *, population: bool = True) -> Distribution:
    """A latency in ms from `value(stat)`; empty where nothing is known, or where all that is known is 0.

    No latency is 0: tools write it where there was none. `population`: the tool divides the squares by n; ours is the
    deviation of a sample (n - 1), which takes n to be known.
    """
    found = {stat: value(stat) for stat in STATS}
    if not any(found.values()):
        return Distribution()
    sd = found["sd"]
    if sd is not None and population:
        found["sd"] = sd * math.sqrt(n / (n - 1)) if n is not None and n > 1 else None
    marked = [f"p{one}" for one in PERCENTILES if n is not None and found[f"p{one}"] is not None and is_marked(n, one)]
    return Distribution(n=n, marked=marked, **found)


def of(fields: Fields, names: Names, n: int | None, factor: float = 1.0, *, population: bool = True) -> Distribution:
    """The same from members of one object, times `factor`; one that is not named is None."""

    def value(stat: str) -> float | None:
        found = fields.number(names[stat]) if stat in names else None
        return None if found is None else found * factor

    return distribution(value, n, population=population)


def missing(latency_ms: Mapping[str, Distribution]) -> list[str]:
    """The percentiles that a latency has none of although it has others: `ttft p95`."""
    return [
        f"{name} p{one}"
        for name, found in latency_ms.items()
        for one in PERCENTILES
        if found != Distribution() and getattr(found, f"p{one}") is None
    ]


def length(fields: Fields, names: Names) -> Length:
    """Tokens of one side; the greatest only where it is whole."""
    most = fields.number(names["max"]) if "max" in names else None
    told = {stat: fields.number(names[stat]) if stat in names else None for stat in ("mean", "p50", "p95")}
    return Length(max=None if most is None else round(most), **told)


def over(total: float | None, count: float | None) -> float | None:
    """A quotient; None where either is not known or there is nothing to divide by."""
    return None if total is None or not count else total / count
