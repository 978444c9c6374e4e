"""What a page says of each of its engines apart: how many requests each holds, and whether any waits for an adapter."""

from __future__ import annotations

from collections import defaultdict

from .engine_pages import dialect_of
from .page_choice import first_there, once
from .page_growth import Engine, engine_of
from .pages import Page, Series


def loads(page: Page) -> dict[Engine, float]:
    """Requests that run or wait in each engine; nothing where the page does not tell its engines apart."""
    dialect = dialect_of(frozenset(page.names))
    if dialect is None:
        return {}
    found: dict[Engine, float] = {}
    for name in ("running", "waiting"):
        for engine, rows in _by_engine(first_there(page, dialect.gauges.get(name, ()))).items():
            found[engine] = found.get(engine, 0.0) + sum(once(rows))
    found.pop((), None)
    return found


def _by_engine(rows: list[Series]) -> dict[Engine, list[Series]]:
    found: dict[Engine, list[Series]] = defaultdict(list)
    for row in rows:
        found[engine_of(row.labels)].append(row)
    return found


def adapter_waits(page: Page) -> bool | None:
    """Whether requests wait for an adapter; None where the engine tells nothing of adapters.

    A page keeps what was told before beside what is told now: the latest holds, which is that of the largest value.
    """
    dialect = dialect_of(frozenset(page.names))
    if dialect is None or dialect.waiting_adapters is None:
        return None
    family, label = dialect.waiting_adapters
    told = first_there(page, (family,))
    if not told:
        return None
    return bool(max(told, key=lambda row: row.value).labels.get(label, "").strip(", "))
