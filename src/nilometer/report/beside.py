"""The figures of several runs beside each other; of two runs with the difference, its interval and what it amounts to.

Judges nothing: verdicts and their intervals come from a comparison, those within one run from its own blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from nilometer.compare.verdict import MetricVerdict
from nilometer.compare.within import Within
from nilometer.core.run import Run
from nilometer.text import units
from nilometer.text.i18n import Catalogue

from .document import Cell, Column, Table
from .table import ESTIMATE, estimated, figure, legend_few, rows_of, value

_STATS = ("p50", "p95", "p99")
_REFUSED = "!"


class _Line(NamedTuple):
    """One figure of all runs."""

    key: str
    name: str
    unit: str
    cells: list[Cell]
    values: list[float | None]


def table(
    runs: Sequence[Run],
    names: Sequence[str],
    words: Catalogue,
    within: Sequence[Mapping[str, Within]] = (),
    differences: Sequence[MetricVerdict] | None = None,
) -> Table:
    """A row for each figure, a column for each run.

    `within`: how sure each run is of its own figures. `differences` are those of a comparison of two runs, and stand
    behind them; of figures that it does not have, the bare ratios. Runs that were not compared have none of it.
    """
    lines = list(_lines(runs, within, words))
    told = None if differences is None or len(runs) != 2 else _told(lines, differences)
    heads = [Column("", "left"), Column("", "left")]
    heads += [Column(name, "decimal") for name in names]
    if told is not None:
        heads += [
            Column(words.say(f"screen.comparison.head_{head}"), "left") for head in ("change", "interval", "verdict")
        ]
    return Table(
        columns=heads,
        rows=[
            [
                Cell(line.name),
                Cell(line.unit),
                *line.cells,
                *([] if told is None else _difference(told.get(line.key), words)),
            ]
            for line in lines
        ],
        legend=list(_legend(runs, words, told, any(within))),
    )


def bare(metric: str, a: float | None, b: float | None) -> MetricVerdict:
    """Two figures and nothing that says whether they really differ."""
    return MetricVerdict(metric=metric, ratio=b / a if a and b is not None else None)


def _told(lines: Sequence[_Line], differences: Sequence[MetricVerdict] | None) -> dict[str, MetricVerdict]:
    """The ratio of every line, or in its place what a comparison says of it."""
    told = {line.key: bare(line.key, *line.values) for line in lines if line.values}
    return told | {one.metric: one for one in differences or ()}


def _difference(one: MetricVerdict | None, words: Catalogue) -> list[Cell]:
    """Relative difference, its interval, the verdict; `-` for what is not known, nothing behind what has no ratio."""
    if one is None:
        return [Cell("")] * 3
    if one.ratio is None:
        return [Cell(units.NOT_MEASURED)] * 3
    interval = units.NOT_MEASURED
    if one.ci is not None:
        low, high = (units.change(bound - 1) for bound in one.ci)
        interval = words.say("screen.comparison.interval", low=low, high=high)
    verdict = units.NOT_MEASURED if one.verdict is None else words.say(f"screen.comparison.{one.verdict}")
    return [Cell(units.change(one.ratio - 1)), Cell(interval), Cell(verdict)]


def _lines(runs: Sequence[Run], within: Sequence[Mapping[str, Within]], words: Catalogue) -> Iterator[_Line]:
    yield _Line("n", "n", "", [Cell(units.count(run.summary.requests.ok), _verdict_mark(run)) for run in runs], [])
    named = dict.fromkeys(name for run in runs for name in rows_of(run.summary))
    for name in named:
        scale = units.latency_scale(value(run.summary.latency_ms, name, "p95") for run in runs)
        for stat in _STATS:
            figure_name = f"{words.say(f'short.{name}')} {stat}"
            yield _Line(
                f"{name}_{stat}",
                figure_name,
                scale.symbol,
                [figure(run.summary.latency_ms, name, stat, scale) for run in runs],
                [value(run.summary.latency_ms, name, stat) for run in runs],
            )
            yield from _sure(f"{name}_{stat}", figure_name, scale, within, words)
    for key, of in _RATES.items():
        values = [of(run) for run in runs]
        if any(one is not None for one in values):
            shown = [_sign(key, run) + units.rate(one) for run, one in zip(runs, values, strict=True)]
            yield _Line(key, words.say(f"metric.{key}"), "", list(map(Cell, shown)), values)


def _sure(
    key: str, name: str, scale: units.Scale, within: Sequence[Mapping[str, Within]], words: Catalogue
) -> Iterator[_Line]:
    """How sure each run is of this figure of its own, where one of them can tell."""
    found = [one.get(key) for one in within]
    if any(found):
        cells = [Cell(units.NOT_MEASURED if one is None else _range(one, scale, words)) for one in found]
        yield _Line(f"{key}_within", words.say("screen.beside.within", figure=name), scale.symbol, cells, [])


def _range(one: Within, scale: units.Scale, words: Catalogue) -> str:
    return words.say("screen.beside.range", low=scale.show(one.lo), high=scale.show(one.hi))


def _sign(key: str, run: Run) -> str:
    return ESTIMATE if key == "output_tokens_per_s" and estimated(run.summary) else ""


_RATES: dict[str, Callable[[Run], float | None]] = {
    "output_tokens_per_s": lambda run: run.summary.throughput.output_tokens_per_s,
    "input_tokens_per_s": lambda run: run.summary.throughput.input_tokens_per_s,
    "requests_per_s": lambda run: run.summary.throughput.requests_per_s,
    "goodput_requests_per_s": lambda run: run.summary.throughput.goodput_requests_per_s,
    "tokens_per_currency": lambda run: run.summary.cost.tokens_per_currency,
    "tokens_per_kwh": lambda run: run.summary.efficiency.tokens_per_kwh,
}


def _verdict_mark(run: Run) -> str:
    return _REFUSED if run.verdict == "inadmissible" else ""


def _legend(
    runs: Sequence[Run], words: Catalogue, told: dict[str, MetricVerdict] | None, has_within: bool
) -> Iterator[str]:
    columns = [(name, stat) for run in runs for name in rows_of(run.summary) for stat in _STATS]
    yield from legend_few((run.summary.latency_ms for run in runs), columns, words)
    if any(map(_verdict_mark, runs)):
        yield f"{_REFUSED} {words.say('screen.legend_inadmissible')}"
    if any(estimated(run.summary) for run in runs):
        yield f"{ESTIMATE} {words.say('screen.legend_estimated')}"
    if has_within:
        yield words.say("screen.beside.within_legend")
    if told is not None and all(one.ci is None for one in told.values()):
        yield words.say("screen.beside.no_interval")
