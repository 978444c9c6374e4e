"""Percentiles and means of a Prometheus histogram, and a bound where its buckets tell no more than that.

A percentile is linear within its bucket, as Prometheus' `histogram_quantile` has it. Where it falls in the last bucket
(up to infinity) or the first one (from zero: a queue's often ends at 0.3 s) nothing within is known: a bound is given.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from .pages import Page, Series

Why = Literal["inf_bucket", "first_bucket"]


class Bound(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of a percentile: it is at least this, and at most that where there is an end."""

    at_least: float
    at_most: float | None = None
    why: Why


class Histogram(msgspec.Struct, frozen=True, kw_only=True):
    """Series of one histogram put together. `cumulative`: (upper bound, how many up to it), ascending."""

    count: float = 0.0
    total: float | None = None
    cumulative: Sequence[tuple[float, float]] = ()

    @property
    def mean(self) -> float | None:
        """None of nothing, and where the page tells no sum."""
        return None if self.total is None or self.count <= 0 else self.total / self.count

    def percentile(self, percent: float) -> float | Bound | None:
        """The value below which `percent` of the counted lie, in the unit of the buckets; None of nothing."""
        count = self.cumulative[-1][1] if self.cumulative else 0.0
        if count <= 0:
            return None
        rank = count * percent / 100
        lower, before = 0.0, 0.0
        for i, (upper, upto) in enumerate(self.cumulative):
            if upto >= rank and upto > before:
                return _within(i, (lower, upper), (rank - before) / (upto - before))
            lower, before = upper, max(upto, before)
        return None


def _within(i: int, edges: tuple[float, float], share: float) -> float | Bound:
    lower, upper = edges
    if math.isinf(upper):
        return Bound(at_least=lower, why="inf_bucket")
    if i == 0 and upper > 0:
        return Bound(at_least=0.0, at_most=upper, why="first_bucket")
    return lower + (upper - lower) * share if i else upper


def histogram_of(page: Page, name: str, chosen: Mapping[str, list[Series]]) -> Histogram | None:
    """The histogram `name` over all its series on a page, which are `chosen` by part; None where it is not there.

    Buckets are added up by their upper bounds. Of replicas with unlike buckets only bounds that all have are kept.
    """
    if not any(f"{name}{part}" in page.series for part in ("_count", "_bucket")):
        return None
    cumulative = _summed(chosen["_bucket"])
    counts = [row.value for row in chosen["_count"]]
    sums = [row.value for row in chosen["_sum"]]
    count = sum(counts) if counts else (cumulative[-1][1] if cumulative else 0.0)
    return Histogram(count=count, total=sum(sums) if sums else None, cumulative=cumulative)


def _summed(rows: list[Series]) -> list[tuple[float, float]]:
    curves: dict[frozenset[tuple[str, str]], dict[float, float]] = {}
    for row in rows:
        bound = _bound(row.labels.get("le", ""))
        if bound is not None:
            others = frozenset(pair for pair in row.labels.items() if pair[0] != "le")
            curves.setdefault(others, {})[bound] = row.value
    if not curves:
        return []
    shared = sorted(set.intersection(*(set(curve) for curve in curves.values())))
    return [(bound, sum(curve[bound] for curve in curves.values())) for bound in shared]


def _bound(text: str) -> float | None:
    try:
        bound = float(text)
    except ValueError:
        return None
    return None if math.isnan(bound) or bound == -math.inf else bound
