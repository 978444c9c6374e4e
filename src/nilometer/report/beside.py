"""The figures of several runs beside each other; of two runs with the difference, its interval and what it amounts to.

Computes no interval and judges nothing: `Difference` values come from a comparison, or are bare ratios.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

import msgspec

from nilometer.core.run import Run
from nilometer.text import units
from nilometer.text.i18n import Catalogue

from .document import Cell, Column, Table
from .table import ESTIMATE, estimated, figure, legend_few, rows_of, value

DifferenceVerdict = Literal["REGRESSED", "SAME", "IMPROVED", "UNDECIDED"]
_STATS = ("p50", "p95", "p99")
_REFUSED = "!"


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """How the second run differs from the first in one figure; `metric` is as a row here: `ttft_p95`, `requests_per_s`.

    `ratio` is b / a, `lo` and `hi` the ends of its interval; None where there is none, `verdict` where none was given.
    """

    metric: str
    a: float | None = None
    b: float | None = None
    ratio: float | None = None
    lo: float | None = None
    hi: float | None = None
    verdict: DifferenceVerdict | None = None


class _Line(NamedTuple):
    """One figure of all runs."""

    key: str
    name: str
    unit: str
    cells: list[Cell]
    values: list[float | None]


def table(
    runs: Sequence[Run], names: Sequence[str], words: Catalogue, differences: Sequence[Difference] | None = None
) -> Table:
    """A row for each figure, a column for each run. Two runs have their difference behind them.

    `differences` are those of a comparison; without, the ratios of the two figures stand there and no interval.
    """
    lines = list(_lines(runs, words))
    told = _told(lines, differences) if len(runs) == 2 or differences else None
    heads = [Column("", "left"), Column("", "left")]
    heads += [Column(name, "decimal") for name in names]
    if told is not None:
        heads += [Column(words.say(f"screen.beside.{head}"), "left") for head in ("difference", "interval", "verdict")]
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
        legend=list(_legend(runs, words, told)),
    )


def bare(metric: str, a: float | None, b: float | None) -> Difference:
    """Two figures and nothing that says whether they really differ."""
    return Difference(metric=metric, a=a, b=b, ratio=b / a if a and b is not None else None)


def _told(lines: Sequence[_Line], differences: Sequence[Difference] | None) -> dict[str, Difference]:
    if differences is not None:
        return {one.metric: one for one in differences}
    return {line.key: bare(line.key, *line.values) for line in lines if line.key != "n"}


def _difference(one: Difference | None, words: Catalogue) -> list[Cell]:
    """Relative difference, its interval, the verdict; `-` for what is not known."""
    if one is None or one.ratio is None:
        return [Cell(units.NOT_MEASURED)] * 3
    interval = units.NOT_MEASURED
    if one.lo is not None and one.hi is not None:
        interval = words.say("screen.beside.from_to", lo=one.lo - 1, hi=one.hi - 1)
    verdict = units.NOT_MEASURED if one.verdict is None else words.say(f"screen.beside.{one.verdict.lower()}")
    return [Cell(units.change(one.ratio - 1)), Cell(interval), Cell(verdict)]


def _lines(runs: Sequence[Run], words: Catalogue) -> Iterator[_Line]:
    yield _Line("n", "n", "", [Cell(units.count(run.summary.requests.ok), _verdict_mark(run)) for run in runs], [])
    named = dict.fromkeys(name for run in runs for name in rows_of(run.summary))
    for name in named:
        scale = units.latency_scale(value(run.summary.latency_ms, name, "p95") for run in runs)
        for stat in _STATS:
            yield _Line(
                f"{name}_{stat}",
                f"{words.say(f'short.{name}')} {stat}",
                scale.symbol,
                [figure(run.summary.latency_ms, name, stat, scale) for run in runs],
                [value(run.summary.latency_ms, name, stat) for run in runs],
            )
    for key, of in _RATES.items():
        values = [of(run) for run in runs]
        if any(one is not None for one in values):
            shown = [_sign(key, run) + units.rate(one) for run, one in zip(runs, values, strict=True)]
            yield _Line(key, words.say(f"metric.{key}"), "", list(map(Cell, shown)), values)


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


def _legend(runs: Sequence[Run], words: Catalogue, told: dict[str, Difference] | None) -> Iterator[str]:
    columns = [(name, stat) for run in runs for name in rows_of(run.summary) for stat in _STATS]
    yield from legend_few((run.summary.latency_ms for run in runs), columns, words)
    if any(map(_verdict_mark, runs)):
        yield f"{_REFUSED} {words.say('screen.legend_inadmissible')}"
    if any(estimated(run.summary) for run in runs):
        yield f"{ESTIMATE} {words.say('screen.legend_estimated')}"
    if told is not None and all(one.lo is None for one in told.values()):
        yield words.say("screen.beside.no_interval")
