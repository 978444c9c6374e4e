"""The table of a mix: one row for each scenario, in the order in which they first came."""

from __future__ import annotations

from collections.abc import Iterator

from nilometer.core.summary import Summary
from nilometer.text import units
from nilometer.text.i18n import Catalogue

from .document import Cell, Column, Table
from .table import figure, legend_few, value

_COLUMNS = (("ttft", "p50"), ("ttft", "p95"), ("tpot", "p50"), ("e2e", "p50"), ("e2e", "p95"))


def table(summary: Summary, words: Catalogue) -> Iterator[Table]:
    """Nothing where the load is no mix."""
    if not summary.scenarios:
        return
    rows = summary.scenarios
    scales = [units.latency_scale(value(one.latency_ms, *column) for one in rows.values()) for column in _COLUMNS]
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
                *(figure(one.latency_ms, *column, scale) for column, scale in zip(_COLUMNS, scales, strict=True)),
            ]
            for name, one in rows.items()
        ],
        legend=legend_few((one.latency_ms for one in rows.values()), _COLUMNS, words),
    )
