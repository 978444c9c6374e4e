"""The screen of a comparison: the verdict in one sentence, every figure with its interval, what it rests on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from nilometer.compare.condition import Difference
from nilometer.compare.family import Family, Judged
from nilometer.compare.verdict import Comparison, MetricVerdict, Outcome
from nilometer.core.run import Run
from nilometer.text import units
from nilometer.text.i18n import Catalogue

from .document import Align, Block, Cell, Column, Document, Foot, Lead, Table

NO_VERDICT = "-"
_LONGEST_VALUE = 40
_HEADS: tuple[tuple[str, Align, str], ...] = (
    ("a", "decimal", ""),
    ("b", "decimal", ""),
    ("change", "decimal", "%"),
    ("interval", "right", "%"),
    ("margin", "decimal", "%"),
    ("verdict", "left", ""),
)


def comparison_document(
    comparison: Comparison,
    family: Family,
    sides: tuple[Sequence[Run], Sequence[Run]],
    words: Catalogue,
    *,
    more: Sequence[Block] = (),
    foot: Foot | None = None,
    why_short: str | None = None,
) -> Document:
    """`sides` are the runs that count of A and of B; `more` stands between table and foot.

    `why_short` is a sentence on what ended it before it was decided.
    """
    lead = lead_of(comparison, family, words)
    if why_short:
        lead = Lead(text=words.say("screen.sentences_join").join([lead.text, why_short]), tone=lead.tone)
    figures = [table(comparison, family, sides, words)] if comparison.runs_a and comparison.runs_b else []
    blocks: list[Block] = [lead, *figures, *more]
    return Document(lang=words.lang, blocks=[*blocks, *([foot] if foot else [])])


def lead_of(comparison: Comparison, family: Family, words: Catalogue) -> Lead:
    """The verdict with the figures that made it, and what is still open."""
    if not (comparison.runs_a and comparison.runs_b):
        word = words.say(f"screen.comparison.{comparison.verdict}")
        parts = [words.say("screen.comparison.nothing_measured", word=word), *_left_out(comparison, words)]
        return Lead(text=words.say("screen.sentences_join").join(parts))
    by_outcome: dict[Outcome, list[MetricVerdict]] = {}
    for one in comparison.metrics:
        if one.verdict is not None:
            by_outcome.setdefault(one.verdict, []).append(one)
    rows = {row.name: row for row in family}
    parts = [_verdict(comparison, by_outcome, rows, words)]
    for outcome, key in (("REGRESSED", "also_worse"), ("IMPROVED", "also_better")):
        told = by_outcome.get(outcome, [])  # type: ignore[call-overload]
        if told and comparison.verdict not in (outcome, "UNDECIDED"):
            parts.append(words.say(f"screen.comparison.{key}", figures=_figures(told, rows, words)))
    if comparison.verdict == "REGRESSED" and by_outcome.get("UNDECIDED"):
        names = words.say("screen.list_join").join(name_of(rows[one.metric], words) for one in by_outcome["UNDECIDED"])
        parts.append(words.say("screen.comparison.also_open", names=names))
    if comparison.verdict == "UNDECIDED":
        parts.append(_what_is_needed(comparison, words))
    parts += _left_out(comparison, words)
    return Lead(
        text=words.say("screen.sentences_join").join(parts),
        tone="trouble" if comparison.verdict == "REGRESSED" else "plain",
    )


def _left_out(comparison: Comparison, words: Catalogue) -> list[str]:
    if not comparison.left_out:
        return []
    runs = words.say("screen.list_join").join(run[:6] for run in comparison.left_out)
    return [words.say("screen.comparison.left_out", runs=runs)]


def _verdict(
    comparison: Comparison,
    by_outcome: dict[Outcome, list[MetricVerdict]],
    rows: dict[str, Judged],
    words: Catalogue,
) -> str:
    word = words.say(f"screen.comparison.{comparison.verdict}")
    told = by_outcome.get(comparison.verdict, [])
    if not told:
        return words.say("screen.comparison.nothing_judged", word=word)
    n_a, n_b = len(comparison.runs_a), len(comparison.runs_b)
    after = words.say(f"screen.comparison.{'after_pairs' if comparison.paired else 'after_runs'}", n_a=n_a, n_b=n_b)
    return words.say("screen.comparison.lead", word=word, figures=_figures(told, rows, words), after=after)


def _figures(told: Sequence[MetricVerdict], rows: dict[str, Judged], words: Catalogue) -> str:
    return words.say("screen.list_join").join(figure_of(one, rows[one.metric], words) for one in told)


def figure_of(one: MetricVerdict, row: Judged, words: Catalogue) -> str:
    """A figure in a sentence: its change, interval and margin; why there is none where there is none."""
    name = name_of(row, words)
    if one.ratio is None:
        return words.say(f"screen.comparison.why_{one.reason}", name=name)
    if one.ci is None:
        return words.say("screen.comparison.figure_alone", name=name, change=_change(one.ratio))
    low, high = map(_change, one.ci)
    return words.say(
        "screen.comparison.figure", name=name, change=_change(one.ratio), low=low, high=high, margin=one.margin
    )


def _what_is_needed(comparison: Comparison, words: Catalogue) -> str:
    if comparison.more_runs_needed is None:
        return words.say("screen.comparison.never")
    return words.say("screen.comparison.more", n=comparison.more_runs_needed)


def name_of(row: Judged, words: Catalogue) -> str:
    """A figure as a sentence has it: `TTFT p95`, `output tokens/s`."""
    if row.stat is None:
        return words.say(f"metric.{row.metric}")
    return f"{words.say(f'short.{row.metric}')} {row.stat}"


def table(
    comparison: Comparison, family: Family, sides: tuple[Sequence[Run], Sequence[Run]], words: Catalogue
) -> Table:
    """Each figure of either side (the geometric mean of its runs), the change from A to B, its interval, its margin."""
    rows = {row.name: row for row in family}
    shown = [one for one in comparison.metrics if one.ratio is not None or one.verdict is not None]
    heads = [(words.say(f"screen.comparison.head_{head}"), align, unit) for head, align, unit in _HEADS]
    return Table(
        columns=[Column("", "left"), Column("", "left"), *(Column(*head) for head in heads)],
        rows=[_row(one, rows[one.metric], sides, words) for one in shown],
        legend=[
            *([words.say("screen.comparison.legend")] if any(one.verdict is None for one in shown) else []),
            *([words.say("screen.comparison.legend_held")] if any(one.held for one in shown) else []),
        ],
    )


def _row(one: MetricVerdict, row: Judged, sides: tuple[Sequence[Run], Sequence[Run]], words: Catalogue) -> list[Cell]:
    means = [geometric_mean([row.of(run.summary) for run in side]) for side in sides]
    unit, shown = _in_unit(row, means, words)
    return [
        Cell(name_of(row, words)),
        Cell(unit),
        *map(Cell, shown),
        Cell(_change(one.ratio)),
        Cell(_interval(one, words)),
        Cell(NO_VERDICT if one.margin is None else units.plain(100 * one.margin)),
        Cell(NO_VERDICT if one.verdict is None else words.say(f"screen.comparison.{one.verdict}")),
    ]


def _in_unit(row: Judged, means: Sequence[float | None], words: Catalogue) -> tuple[str, list[str]]:
    if row.stat is None:
        unit = "tokens" if "tokens" in row.metric else "requests"
        unit = words.say(f"screen.{unit}_unit")
        return "" if unit == name_of(row, words) else unit, [units.rate(mean) for mean in means]
    scale = units.latency_scale(means)
    return scale.symbol, [
        units.NOT_MEASURED if mean is None else units.fixed(mean / scale.ms, scale.decimals) for mean in means
    ]


def _interval(one: MetricVerdict, words: Catalogue) -> str:
    if one.ci is None:
        return units.NOT_MEASURED
    return words.say("screen.comparison.interval", low=_change(one.ci[0]), high=_change(one.ci[1]))


def _change(ratio: float | None) -> str:
    """A ratio as the change in percent, its sign and one decimal always: figures of one column."""
    if ratio is None:
        return units.NOT_MEASURED
    text = units.fixed(100 * (ratio - 1), 1)
    return f"+{text}" if ratio > 1 and text.strip("0.") else text


def condition_table(differences: Sequence[Difference], words: Catalogue) -> Table:
    """Where the conditions of the sides part: what was declared, and what only one side tells."""
    heads = ("condition", "a", "b")
    return Table(
        columns=[Column(words.say(f"screen.comparison.head_{head}"), "left") for head in heads],
        rows=[[Cell(one.field), Cell(_values(one.a)), Cell(_values(one.b))] for one in differences],
    )


def _values(values: Sequence[str | int | float | bool]) -> str:
    shown = ", ".join(map(str, values)) or units.NOT_MEASURED
    return shown if len(shown) <= _LONGEST_VALUE else f"{shown[: _LONGEST_VALUE - 3]}..."


def geometric_mean(values: Sequence[float | None]) -> float | None:
    """That of the runs, of which the ratio is exactly what is compared; None where a run lacks the figure."""
    known = [value for value in values if value is not None and value > 0]
    if not known or len(known) < len(values):
        return None
    return math.exp(fmean(map(math.log, known)))
