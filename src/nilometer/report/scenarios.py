"""The table of a mix: one row for each scenario, in the order in which they first came."""

from __future__ import annotations

from collections.abc import Iterator

from nilometer.core.summary import Distribution, Summary
from nilometer.text import units
from nilometer.text.i18n import Catalogue

from .document import Cell, Column, Table
from .table import MARK, figure

_COLUMNS = (("ttft", "p50"), ("ttft", "p95"), ("tpot", "p50"), ("e2e", "p50"), ("e2e", "p95"))


def table(summary: Summary, words: Catalogue) -> Iterator[Table]:
    """Nothing where the load is no mix."""
    if not summary.scenarios:
        return
    rows = summary.scenarios
    scales = [units.latency_scale(_value(one.latency_ms, column) for one in rows.values()) for column in _COLUMNS]
    marked = any(stat in one.latency_ms.get(name, _NONE).marked for one in rows.values() for name, stat in _COLUMNS)
    yield Table(
        columns=[
            Column(words.say("short.scenario"), "left"),
            Column("n", "right"),
            *(
                Column(f"{words.say(f'short.{name}')} {stat}", "decimal", scale.symbol)
                for (name, stat), scale in zip(_COLUMNS, scales, strict=True)
            ),
        ],
        rows=[
            [
                Cell(name),
                Cell(units.count(one.ok)),
                *(
                    figure(one.latency_ms.get(metric, _NONE), stat, scale)
                    for (metric, stat), scale in zip(_COLUMNS, scales, strict=True)
                ),
            ]
            for name, one in rows.items()
        ],
        legend=[f"{MARK} {words.say('screen.legend_few')}"] if marked else [],
    )


_NONE = Distribution()


def _value(latency_ms: dict[str, Distribution], column: tuple[str, str]) -> float | None:
    name, stat = column
    value: float | None = getattr(latency_ms.get(name, _NONE), stat)
    return value
