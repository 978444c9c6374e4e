"""What each chart shows, in figures: a handful of rows, for those who cannot see it or want to copy it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from nilometer.core.clock import NS_PER_MS, NS_PER_S
from nilometer.core.run import Run
from nilometer.metrics.quantiles import Floats
from nilometer.metrics.table import Mask
from nilometer.metrics.table import Table as Columns
from nilometer.text import units
from nilometer.text.i18n import Catalogue

from .charts import lengths_and_ttft, seconds_of, tenths, values_ms
from .document import Cell, Column, Table

_SLICES = 10
_PERCENTS = (10, 25, 50, 75, 90, 95, 99, 100)


def over_time(run: Run, table: Columns, name: str, scale: units.Scale, words: Catalogue) -> Table:
    """Tenths of the run: requests that started in each, those that failed, p50, p95 and largest of the ok ones."""
    values, ok = table.latency(name) / NS_PER_MS, table.of("ok")
    failed = table.of("error") | table.of("incomplete")
    at_s = (table.start_ns - run.phases.measured_ns) / NS_PER_S
    rows = []
    for begin, end in _slices(run):
        here: Mask = (at_s >= begin) & (at_s < end)
        rows.append(
            [
                Cell(_from_to(begin, end)),
                Cell(units.count(int((here & ok).sum()))),
                Cell(units.count(int((here & failed).sum()))),
                *_figures(values[here & ok & ~np.isnan(values)], (50, 95, 100), scale),
            ]
        )
    heads = [Column("n", "right"), Column(words.say("screen.look.failed"), "right")]
    return Table(columns=[_time_column(words), *heads, *_latency_columns((50, 95, 100), scale, words)], rows=rows)


def per_second(run: Run, words: Catalogue) -> Table:
    """Tenths of the run: mean in flight, tokens/s, requests sent and failed."""
    seconds = run.summary.timeline
    rows = []
    for begin, end in _slices(run):
        here = [second for second in seconds if begin <= second.at_s < end]
        rows.append(
            [
                Cell(_from_to(begin, end)),
                Cell(units.rate(_mean([second.in_flight for second in here]))),
                Cell(units.rate(_mean([second.output_tokens for second in here]))),
                Cell(units.count(sum(second.arrivals for second in here))),
                Cell(units.count(sum(second.errors for second in here))),
            ]
        )
    return Table(
        columns=[
            _time_column(words),
            Column(words.say("short.in_flight")),
            Column(words.say("screen.tokens_unit")),
            Column(words.say("screen.chart.sent"), "right"),
            Column(words.say("screen.look.failed"), "right"),
        ],
        rows=rows,
    )


def by_length(run: Run, table: Columns, scale: units.Scale, words: Catalogue) -> Table:
    """Tenths of the prompts by their length: tokens, requests, p50, p95 and largest TTFT."""
    lengths, ttft = lengths_and_ttft(run, table)
    rows = [
        [
            Cell(_span(lengths[part])),
            Cell(units.count(len(lengths[part]))),
            *_figures(ttft[part], (50, 95, 100), scale),
        ]
        for part in tenths(lengths)
    ]
    heads = [
        Column(words.say("screen.chart.length.x"), "left", words.say("screen.waterfall.tokens")),
        Column("n", "right"),
    ]
    return Table(columns=[*heads, *_latency_columns((50, 95, 100), scale, words)], rows=rows)


def spread(
    pairs: Sequence[tuple[Run, Columns]], names: Sequence[str], name: str, scale: units.Scale, words: Catalogue
) -> Table:
    """Percentiles of each run, a row each."""
    found = [(label, values_ms(run, table, name)) for label, (run, table) in zip(names, pairs, strict=True)]
    return Table(
        columns=[
            Column(words.say("screen.runs.run"), "left"),
            Column("n", "right"),
            *_latency_columns(_PERCENTS, scale, words),
        ],
        rows=[
            [Cell(label), Cell(units.count(len(values))), *_figures(values, _PERCENTS, scale)]
            for label, values in found
        ],
    )


def _slices(run: Run) -> Iterator[tuple[float, float]]:
    """Ten stretches of equal length from the start of the run to its end."""
    borders = seconds_of(run)
    edges = np.linspace(borders.begin, borders.end, _SLICES + 1).tolist()
    edges[-1] += 1e-9
    yield from pairwise(edges)


def _from_to(begin: float, end: float) -> str:
    return f"{units.fixed(begin, 1)} .. {units.fixed(end, 1)}"


def _span(lengths: Floats) -> str:
    low, high = units.count(float(lengths[0])), units.count(float(lengths[-1]))
    return low if low == high else f"{low} .. {high}"


def _figures(values: Floats, percents: Sequence[int], scale: units.Scale) -> Iterator[Cell]:
    for percent in percents:
        yield Cell(scale.show(float(np.percentile(values, percent)) if len(values) else None))


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _time_column(words: Catalogue) -> Column:
    return Column(words.say("screen.chart.time_short"), "left")


def _latency_columns(percents: Sequence[int], scale: units.Scale, words: Catalogue) -> Iterator[Column]:
    for percent in percents:
        title = words.say("screen.chart.largest") if percent == 100 else f"p{percent}"
        yield Column(title, "decimal", scale.symbol)
