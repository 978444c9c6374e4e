"""The Summary as rows (scope, metric, stat, value): every number of it but the timeline, by the contract's names.

`latency_ms.ttft.p95` of the JSON is the row (latency_ms, ttft, p95); a figure that stands alone has the stat `value`. A
new metric is new rows, no migration. What was not measured has no row; yes and no are 1 and 0; words have no row.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from nilometer.core.summary import Summary


class Figure(NamedTuple):
    """One row of `summary_value` but for its run."""

    scope: str
    metric: str
    stat: str
    value: float


def figures(summary: Summary) -> list[Figure]:
    """All figures, in the order of the Summary."""
    tree: dict[str, Any] = msgspec.to_builtins(summary)
    return [figure for scope, part in tree.items() if isinstance(part, dict) for figure in _part(scope, part)]


def _part(scope: str, part: dict[str, Any]) -> Iterator[Figure]:
    for metric, found in part.items():
        stats = found if isinstance(found, dict) else {"value": found}
        for stat, value in stats.items():
            if isinstance(value, int | float) and math.isfinite(value):
                yield Figure(scope, metric, stat, float(value))
