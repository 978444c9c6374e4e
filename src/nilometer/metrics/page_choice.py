"""Which series of a page count: those of a family with its labels, the first family that is there, each thing once."""

from __future__ import annotations

from collections.abc import Iterable

from .engine_pages import RANK_LABELS, Families, Family
from .pages import Page, Series


def chosen(page: Page, family: Family, key: str) -> list[Series]:
    """The series under `key` with the labels that the family asks for."""
    return [
        row
        for row in page.series.get(key, ())
        if all(row.labels.get(name) == value for name, value in family.where)
        and not any(row.labels.get(name) == value for name, value in family.but)
    ]


def first_there(page: Page, families: Families) -> list[Series]:
    """The series of the first family that is on the page."""
    return next((rows for family in families if (rows := chosen(page, family, family.key))), [])


def once(rows: Iterable[Series]) -> list[float]:
    """The value of each thing that is told once for each rank: the largest."""
    found: dict[tuple[tuple[str, str], ...], float] = {}
    for row in rows:
        key = tuple(sorted(pair for pair in row.labels.items() if pair[0] not in RANK_LABELS))
        found[key] = max(row.value, found.get(key, row.value))
    return list(found.values())
