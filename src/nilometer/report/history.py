"""The performance file of a service on one screen: its tests under each condition, and where a figure took a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from nilometer.compare.change_points import History
from nilometer.compare.entries import Entry
from nilometer.compare.family import Judged
from nilometer.core.run import Run
from nilometer.core.summary import Distribution, Summary
from nilometer.text import load as loads
from nilometer.text import units
from nilometer.text.i18n import Catalogue

from .comparison import name_of
from .document import Block, Cell, Column, Document, Heading, Lead, Table, Text
from .facts import condition_facts

MOST_ROWS = 30


class Chapter(NamedTuple):
    """The tests of one condition: their figures are those of `rows`, and behind them the memory peak in bytes.

    `newest` is a run of the last of them, `short` what 30 s of it would have said.
    """

    entries: list[Entry]
    histories: Mapping[str, History]
    newest: Run
    short: Summary | None


def history_document(service: str, rows: Sequence[Judged], chapters: Sequence[Chapter], words: Catalogue) -> Document:
    """The newest condition first."""
    tests = sum(len(chapter.entries) for chapter in chapters)
    lead = words.say("screen.history.lead", service=service, tests=tests, conditions=len(chapters))
    steps = [step for chapter in chapters for step in _steps(chapter, rows, words)]
    text = words.say("screen.sentences_join").join([lead, *(steps[:1] or [words.say("screen.history.no_step")])])
    blocks: list[Block] = [Lead(text=text)]
    for chapter in chapters:
        blocks += _chapter(chapter, rows, words)
    return Document(lang=words.lang, blocks=blocks)


def _chapter(chapter: Chapter, rows: Sequence[Judged], words: Catalogue) -> list[Block]:
    told = [*_steps(chapter, rows, words), *_short(chapter, words)]
    return [
        Heading(text=loads.kind(chapter.newest.spec, words)),
        condition_facts(chapter.newest, words),
        _table(chapter, rows, words),
        *(Text(text=text) for text in told),
    ]


def _table(chapter: Chapter, rows: Sequence[Judged], words: Catalogue) -> Table:
    shown = chapter.entries[-MOST_ROWS:]
    scales = [_scale(row, [entry.figures[i] for entry in shown]) for i, row in enumerate(rows)]
    columns = [
        Column(words.say("screen.history.started"), "left", "UTC"),
        Column(words.say("screen.history.version"), "left"),
        Column(words.say("screen.history.runs"), "right"),
        *(
            Column(name_of(row, words), "decimal", words.say("screen.tokens_unit") if scale is None else scale.symbol)
            for row, scale in zip(rows, scales, strict=True)
        ),
        Column(words.say("screen.history.memory"), "right"),
    ]
    left_out = len(chapter.entries) - len(shown)
    return Table(
        columns=columns,
        rows=[_row(entry, scales, _marks(chapter, rows, entry)) for entry in shown],
        legend=[
            *([f"{STEP} {words.say('screen.history.legend_step')}"] if _any_step(chapter) else []),
            *([words.say("screen.history.left_out", n=left_out)] if left_out else []),
        ],
    )


STEP = "^"
"""Hangs behind a figure whose level changed with this test."""


def _scale(row: Judged, values: Sequence[float | None]) -> units.Scale | None:
    return None if row.stat is None else units.latency_scale(values)


def _row(entry: Entry, scales: Sequence[units.Scale | None], marks: set[int]) -> list[Cell]:
    *figures, memory = entry.figures
    cells = [
        Cell(_figure(value, scale), STEP if i in marks else "")
        for i, (value, scale) in enumerate(zip(figures, scales, strict=True))
    ]
    moment = units.moment(entry.started_wall_ns)[:16]
    version = entry.version or units.NOT_MEASURED
    return [Cell(moment), Cell(version), Cell(str(len(entry.runs))), *cells, Cell(units.size(memory))]


def _figure(value: float | None, scale: units.Scale | None) -> str:
    if value is None or scale is None:
        return units.rate(value)
    return units.fixed(value / scale.ms, scale.decimals)


def _marks(chapter: Chapter, rows: Sequence[Judged], entry: Entry) -> set[int]:
    at = chapter.entries.index(entry)
    return {i for i, row in enumerate(rows) if any(step.at == at for step in chapter.histories[row.name].steps)}


def _any_step(chapter: Chapter) -> bool:
    return any(history.steps for history in chapter.histories.values())


def _steps(chapter: Chapter, rows: Sequence[Judged], words: Catalogue) -> list[str]:
    """Each step of a judged figure; of a short history, whether the newest test lies where the others were."""
    told = []
    for row in rows:
        history, name = chapter.histories[row.name], name_of(row, words)
        for step in history.steps:
            entry = chapter.entries[step.at]
            when = units.moment(entry.started_wall_ns)[:10]
            what = entry.version or entry.runs[0][:6]
            told.append(words.say("screen.history.step", name=name, change=step.ratio - 1, when=when, what=what))
        if history.outside and history.expected is not None:
            low, high = (_told(row, value, words) for value in history.expected)
            value = _told(row, chapter.entries[-1].figures[rows.index(row)], words)
            told.append(words.say("screen.history.outside", name=name, value=value, low=low, high=high))
    return told


def _told(row: Judged, value: float | None, words: Catalogue) -> str:
    if row.stat is not None:
        return units.latency(value)
    return f"{units.rate(value)} {words.say('screen.tokens_unit')}"


def _short(chapter: Chapter, words: Catalogue) -> list[str]:
    short, whole = chapter.short, chapter.newest.summary
    if short is None:
        return []
    return [
        words.say(
            "screen.history.short",
            ttft=_latency(short, "ttft", "p95"),
            ttft_whole=_latency(whole, "ttft", "p95"),
            tpot=_latency(short, "tpot", "p50"),
            tpot_whole=_latency(whole, "tpot", "p50"),
            tokens=units.rate(short.throughput.output_tokens_per_s),
            tokens_whole=units.rate(whole.throughput.output_tokens_per_s),
        )
    ]


def _latency(summary: Summary, metric: str, stat: str) -> str:
    value: float | None = getattr(summary.latency_ms.get(metric, Distribution()), stat)
    return units.latency(value)
