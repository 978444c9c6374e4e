"""The table of a group: one row for each load, so that the eye sees what grows and what does not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nilometer.core.run import Run
from nilometer.text import units
from nilometer.text.i18n import Catalogue
from nilometer.text.load import rate_unit

from .document import Cell, Column, Table
from .notes import level
from .table import ESTIMATE, estimated, figure, legend_few, value

_COLUMNS = (("ttft", "p50"), ("ttft", "p95"), ("tpot", "p50"), ("e2e", "p50"))


def table(runs: Sequence[Run], words: Catalogue, first: tuple[str, Sequence[str]] | None = None) -> Table:
    """Load, n, the latencies in one unit a column, tokens/s of a request while it decodes and of the whole service.

    `first`: a heading and a name for each run in place of its load.
    """
    scales = [units.latency_scale(value(run.summary.latency_ms, *column) for run in runs) for column in _COLUMNS]
    opened = any(run.spec.load.is_open for run in runs)
    title, names = first or (
        rate_unit(runs[0].spec, words) if opened else words.say("short.in_flight"),
        [level(run) for run in runs],
    )
    return Table(
        columns=[
            Column(title, "decimal" if first is None else "left"),
            Column("n", "right"),
            *(
                Column(f"{words.say(f'short.{name}')} {stat}", "decimal", scale.symbol)
                for (name, stat), scale in zip(_COLUMNS, scales, strict=True)
            ),
            Column(words.say("short.tokens_each"), "decimal", words.say("screen.tokens_unit")),
            Column(words.say("short.tokens_all"), "decimal", words.say("screen.tokens_unit")),
        ],
        rows=[_row(name, run, scales) for name, run in zip(names, runs, strict=True)],
        legend=list(_legend(runs, words)),
    )


def _row(name: str, run: Run, scales: Sequence[units.Scale]) -> list[Cell]:
    latency, tokens = run.summary.latency_ms, run.summary.throughput.output_tokens_per_s
    tpot = value(latency, "tpot", "p50")
    return [
        Cell(name, "!" if run.verdict == "inadmissible" else ""),
        Cell(units.count(run.summary.requests.ok)),
        *(figure(latency, *column, scale) for column, scale in zip(_COLUMNS, scales, strict=True)),
        Cell(units.rate(1_000 / tpot if tpot else None)),
        Cell((ESTIMATE if estimated(run.summary) and tokens is not None else "") + units.rate(tokens)),
    ]


def _legend(runs: Sequence[Run], words: Catalogue) -> Iterable[str]:
    yield from legend_few((run.summary.latency_ms for run in runs), _COLUMNS, words)
    if any(run.verdict == "inadmissible" for run in runs):
        yield f"! {words.say('screen.legend_inadmissible')}"
    if any(estimated(run.summary) for run in runs):
        yield f"{ESTIMATE} {words.say('screen.legend_estimated')}"
