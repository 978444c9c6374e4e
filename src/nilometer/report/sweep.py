"""The screen of a sweep: the greatest load and the knee in one sentence, the curve as a table and as bars."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from nilometer.core.run import Run
from nilometer.core.summary import Summary, Throughput
from nilometer.metrics.curve import Greatest, Rung, finished, greatest, knee, rungs_of
from nilometer.text import units
from nilometer.text.i18n import Catalogue
from nilometer.text.load import rate_unit

from . import notes
from .document import Bar, Bars, Cell, Column, Document, Foot, Lead, Table
from .notes import level, short
from .table import figure, legend_few, value

Ending = Literal["cut", "time", "tokens"]
_Columns = tuple[tuple[str, str], ...]
_COLUMNS: _Columns = (("ttft", "p50"), ("ttft", "p95"), ("tpot", "p50"), ("tpot", "p95"))
_WHOLE: _Columns = (("e2e", "p50"), ("e2e", "p95"))
"""Those of answers that come whole: no first token was seen in any run."""

_MADE: dict[str, Callable[[Throughput], float | None]] = {
    "tokens": lambda made: made.output_tokens_per_s,
    "requests": lambda made: made.requests_per_s,
}
_BOUGHT: dict[str, Callable[[Summary], float | None]] = {
    "per_device": lambda summary: summary.efficiency.tokens_per_device_s,
    "per_core": lambda summary: summary.efficiency.tokens_per_core_s,
    "per_kwh": lambda summary: summary.efficiency.tokens_per_kwh,
    "per_currency": lambda summary: summary.cost.tokens_per_currency,
}
"""Tokens for what serves them: a column where one of the runs knows it."""


def sweep_document(
    runs: Sequence[Run], group: str, words: Catalogue, *, archived: bool = True, ended: Ending | None = None
) -> Document:
    """`runs` in the order of measuring; the curve is shown from the lowest load to the highest.

    `ended`: the user cut the sweep, or its time or its tokens were short.
    """
    ordered = sorted(runs, key=lambda run: float(run.level or 0))
    rungs = rungs_of(ordered)
    found = greatest(rungs)
    return Document(
        lang=words.lang,
        blocks=[
            _lead(ordered, rungs, found, words, ended),
            _table(ordered, rungs, words),
            _bars(ordered, rungs, words),
            *notes.blocks(ordered, words, told=set(), archived=archived),
            _foot(ordered, found, group, words, archived, ended),
        ],
    )


def _lead(
    runs: Sequence[Run], rungs: Sequence[Rung], found: Greatest | None, words: Catalogue, ended: Ending | None
) -> Lead:
    spec = runs[0].spec
    bend = knee(rungs)
    unit = rate_unit(spec, words) if spec.load.is_open else words.say("screen.sweep.users")
    parts = [_border(found, rungs, spec.slo, unit, words)] if spec.slo else []
    if spec.slo and found is not None and _few(runs, found):
        parts.append(words.say("screen.sweep.few"))
    if bend is not None and not spec.load.is_open:
        parts.append(words.say("screen.sweep.knee", n=units.plain(round(bend, 1))))
    elif not spec.slo:
        low, high = level(runs[0]), level(runs[-1])
        parts.append(words.say("screen.sweep.no_knee", low=low, high=high, unit=unit))
    cut_off = [level(run) for run in runs if not finished(run)]
    if cut_off:
        parts.append(
            words.say("screen.sweep.unfinished", levels=words.say("screen.list_join").join(cut_off), unit=unit)
        )
    if ended is not None:
        parts.append(words.say(f"screen.sweep.{ended}"))
    trouble = bool(spec.slo) and found is None
    return Lead(text=words.say("screen.sweep.join").join(parts), tone="trouble" if trouble else "plain")


def _few(runs: Sequence[Run], found: Greatest) -> bool:
    """Whether one of the two loads that decide had too few requests to be sure of."""
    deciding = [run for run in runs if float(run.level or 0) in (found.lo, found.hi)]
    return any(finding.slug == "too_few" for run in deciding for finding in run.findings)


def _border(found: Greatest | None, rungs: Sequence[Rung], slo: str, unit: str, words: Catalogue) -> str:
    if found is None and any(rung.met is None for rung in rungs):
        return words.say("screen.sweep.unknown", slo=slo)
    if found is None:
        return words.say("screen.sweep.none", slo=slo, load=units.plain(rungs[0].level), unit=unit)
    load = units.plain(found.level)
    if found.hi is None:
        return words.say("screen.sweep.at_least", load=load, slo=slo, unit=unit)
    return words.say("screen.sweep.up_to", load=load, hi=units.plain(found.hi), slo=slo, unit=unit)


def _table(runs: Sequence[Run], rungs: Sequence[Rung], words: Catalogue) -> Table:
    shown = _shown(runs)
    scales = {
        name: units.latency_scale(
            value(run.summary.latency_ms, name, stat) for run in runs for other, stat in shown if other == name
        )
        for name, _ in shown
    }
    made_of = _made_of(runs)
    opened = any(run.spec.load.is_open for run in runs)
    with_slo = runs[0].spec.slo is not None
    bought = [(name, of) for name, of in _BOUGHT.items() if any(of(run.summary) is not None for run in runs)]
    columns = [
        Column(rate_unit(runs[0].spec, words) if opened else words.say("short.in_flight")),
        *([Column(words.say("short.came"), "decimal", words.say("screen.requests_unit"))] if opened else []),
        Column("n", "right"),
        *(Column(f"{words.say(f'short.{name}')} {stat}", "decimal", scales[name].symbol) for name, stat in shown),
        *(Column(words.say("short.tokens_all"), "decimal", words.say(f"screen.{what}_unit")) for what in made_of),
        *([Column(words.say("short.goodput"), "decimal", words.say("screen.requests_unit"))] if with_slo else []),
        *([Column("SLO", "left")] if with_slo else []),
        *(_bought_column(name, runs[0].spec.price.currency, words) for name, _ in bought),
    ]
    rows = []
    for run, rung in zip(runs, rungs, strict=True):
        latency, made = run.summary.latency_ms, run.summary.throughput
        row = [Cell(level(run), "!" if run.verdict == "inadmissible" else "")]
        row += [Cell(units.rate(_came_per_s(run)))] if opened else []
        row.append(Cell(units.count(run.summary.requests.ok)))
        row += [figure(latency, name, stat, scales[name]) for name, stat in shown]
        row += [Cell(units.rate(_MADE[what](made))) for what in made_of]
        if with_slo:
            row += [Cell(units.rate(made.goodput_requests_per_s)), Cell(_kept(rung, words))]
        row += [Cell(units.rate(of(run.summary))) for _, of in bought]
        rows.append(row)
    return Table(columns=columns, rows=rows, legend=list(_legend(runs, words)))


def _shown(runs: Sequence[Run]) -> _Columns:
    return _COLUMNS if any(value(run.summary.latency_ms, "ttft", "p50") is not None for run in runs) else _WHOLE


def _made_of(runs: Sequence[Run]) -> list[str]:
    """What the service is seen to make: tokens where any run counts them, requests where answers come whole."""
    counted = any(run.summary.throughput.output_tokens_per_s is not None for run in runs)
    return [*(["tokens"] if counted else []), *(["requests"] if not counted or _shown(runs) is _WHOLE else [])]


def _bought_column(name: str, currency: str, words: Catalogue) -> Column:
    return Column(words.say(f"short.{name}", currency=currency), "decimal", words.say(f"screen.sweep.unit.{name}"))


def _came_per_s(run: Run) -> float | None:
    """Requests that came in the window, per second: chance makes a Poisson rate another than the one asked."""
    came, length_s = run.summary.requests.started, run.summary.window.length_s
    return came / length_s if came is not None and length_s > 0 else None


def _legend(runs: Sequence[Run], words: Catalogue) -> Sequence[str]:
    refused = any(run.verdict == "inadmissible" for run in runs)
    return [
        *legend_few((run.summary.latency_ms for run in runs), _shown(runs), words),
        *([f"! {words.say('screen.legend_inadmissible')}"] if refused else []),
    ]


def _kept(rung: Rung, words: Catalogue) -> str:
    return words.say({True: "screen.sweep.kept", False: "screen.sweep.missed", None: "screen.sweep.not_told"}[rung.met])


def _bars(runs: Sequence[Run], rungs: Sequence[Rung], words: Catalogue) -> Bars:
    """Throughput over the load: where the bars stop growing, the service is full."""
    return Bars(
        title=words.say(f"screen.sweep.bars_{_made_of(runs)[0]}"),
        rows=[
            Bar(label=level(run), value=rung.throughput, text=units.rate(rung.throughput), trouble=rung.met is False)
            for run, rung in zip(runs, rungs, strict=True)
        ],
    )


def _foot(
    runs: Sequence[Run],
    found: Greatest | None,
    group: str,
    words: Catalogue,
    archived: bool,
    ended: Ending | None,
) -> Foot:
    if not archived:
        return Foot(text=words.say("screen.foot.not_archived"))
    at = next((run for run in runs if found is not None and float(run.level or 0) == found.level), runs[-1])
    commands = [f"nilo runs show {short(at)}", f"nilo measure --like {short(at)} --procedure guide"]
    if ended in ("cut", "time") or not all(map(finished, runs)):
        commands.insert(0, f"nilo sweep --resume {group}")
    text = words.say("screen.foot.group", group=group, runs=", ".join(short(run) for run in runs))
    return Foot(text=text, lead=words.say("screen.foot.next"), commands=commands)
