"""What came about between two pages of one server: counters and histograms by their differences, engine by engine.

A counter that went back means that its engine was started anew in between: then all its counts are since that start.
An engine that was not there before counts from 0; one that is gone is left out, and both are told.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .engine_pages import ENGINE_LABELS, Dialect
from .page_lines import PARTS
from .pages import Labels, Page, Series

Engine = tuple[tuple[str, str], ...]
_Key = tuple[str, tuple[tuple[str, str], ...]]


class Growth(NamedTuple):
    """`page` is the later one with differences where it had totals."""

    page: Page
    restarted: frozenset[Engine]
    appeared: frozenset[Engine]
    vanished: frozenset[Engine]

    @property
    def reset(self) -> bool:
        return bool(self.restarted)


def engine_of(labels: Labels) -> Engine:
    """The labels that tell one engine of a page from another; none on a page of one."""
    return tuple((name, labels[name]) for name in ENGINE_LABELS if name in labels)


def growth(before: Page, after: Page, dialect: Dialect) -> Growth:
    """The differences of all that only grows, as the dialect has it; gauges stay as they are on the later page."""
    growing = _growing(dialect)
    then = {_key(name, row): row.value for name, row in _rows(before, growing)}
    now = list(_rows(after, growing))
    restarted = frozenset(
        engine_of(row.labels)
        for name, row in now
        if not name.endswith("_sum") and row.value < then.get(_key(name, row), row.value)
    )
    grown: dict[str, list[Series]] = {}
    for name, row in now:
        base = 0.0 if engine_of(row.labels) in restarted else then.get(_key(name, row), 0.0)
        grown.setdefault(name, []).append(Series(row.labels, max(0.0, row.value - base)))
    engines_then, engines_now = (frozenset(engine_of(row.labels) for _, row in _rows(page)) for page in (before, after))
    page = Page(
        series={**after.series, **grown}, names=after.names, ignored=after.ignored, broken=after.broken
    )  # fmt: skip
    return Growth(page, restarted, engines_now - engines_then, engines_then - engines_now)


def _growing(dialect: Dialect) -> frozenset[str]:
    """The names of all series that only grow."""
    families = [family for found in dialect.counters.values() for family in found]
    families += [family for found, _ in dialect.by_label.values() for family in found]
    histograms = {family.name for found in dialect.histograms.values() for family in found}
    histograms |= {family.name for family in families if family.part}
    return frozenset({family.key for family in families} | {name + part for name in histograms for part in PARTS})


def _rows(page: Page, names: frozenset[str] | None = None) -> Iterator[tuple[str, Series]]:
    for name, rows in page.series.items():
        if names is None or name in names:
            yield from ((name, row) for row in rows)


def _key(name: str, row: Series) -> _Key:
    return name, tuple(sorted(row.labels.items()))
