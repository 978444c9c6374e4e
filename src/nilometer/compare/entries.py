"""The performance file of a service: its tests over time, those under one condition together, a row each.

A test is a run, or the repeats of one group under one load, as the geometric mean of their figures: groups of repeats
and single runs then stand in one history.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import NamedTuple

from .family import Judged
from .statistics import unfit


class Taken(NamedTuple):
    """One run as the archive tells it: its moment, what it was of, and the figures asked for, in their order."""

    id: str
    group: str | None
    level: str | None
    started_wall_ns: int
    condition: str | None
    service_version: str | None
    model_version: str | None
    quantisation: str | None
    figures: tuple[float | None, ...]


class Entry(NamedTuple):
    """One test: its runs, its first moment, and the geometric means of its figures; None where a run lacks one."""

    runs: tuple[str, ...]
    started_wall_ns: int
    service_version: str | None
    model_version: str | None
    quantisation: str | None
    figures: tuple[float | None, ...]

    @property
    def version(self) -> str | None:
        """What was new in it, as far as it was named."""
        return " ".join(filter(None, (self.service_version, self.model_version, self.quantisation))) or None


def entries(runs: Iterable[Taken]) -> dict[str | None, list[Entry]]:
    """The tests of each condition, the oldest first; conditions by their newest test, the newest first.

    None holds the runs whose condition is not known, such as those of other tools.
    """
    tests: dict[tuple[str | None, str, str | None], list[Taken]] = {}
    for run in runs:
        tests.setdefault((run.condition, run.group or run.id, run.level), []).append(run)
    found: dict[str | None, list[Entry]] = {}
    for (condition, _, _), alike in tests.items():
        found.setdefault(condition, []).append(_entry(alike))
    for of_one in found.values():
        of_one.sort(key=lambda entry: entry.started_wall_ns)
    return dict(sorted(found.items(), key=lambda item: -item[1][-1].started_wall_ns))


def _entry(runs: Sequence[Taken]) -> Entry:
    first = runs[0]
    return Entry(
        tuple(run.id for run in runs),
        first.started_wall_ns,
        first.service_version,
        first.model_version,
        first.quantisation,
        tuple(_mean(values) for values in zip(*(run.figures for run in runs), strict=True)),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return None if unfit(values) else math.exp(fmean(map(math.log, known)))


def place_of(row: Judged) -> tuple[str, str, str]:
    """Where a figure stands in a Summary: scope, metric, statistic."""
    return ("throughput", row.metric, "value") if row.stat is None else ("latency_ms", row.metric, row.stat)
