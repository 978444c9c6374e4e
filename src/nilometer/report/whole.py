"""The whole report of one run, of several beside each other, or of a group, as one Document a language.

What a screen leaves to the reader stands here: charts, slowest and failed requests, the condition, the definitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from string import ascii_uppercase
from typing import NamedTuple

from nilometer.compare.verdict import MetricVerdict
from nilometer.core.errors import NiloError
from nilometer.core.run import Run
from nilometer.diagnose.diagnosis import Diagnosis
from nilometer.text.i18n import Catalogue
from nilometer.text.load import rate_unit

from . import beside, condition, definitions, facts, failed, notes, scenarios, table
from .charts import Drawn
from .diagnosis import diagnosis_blocks
from .document import Block, Document, Facts, Foot, Heading, Lead, Notes, Table, Text
from .gather import Gathered
from .lab import side_of
from .lead import run_lead
from .notes import level, short
from .pictures import Pictures
from .waterfall import waterfall
from .within import intervals

_MOST_FAILURES = 50
MOST_WITH_BARS = 4
"""Runs of a report whose slowest requests are shown."""


class Shown(NamedTuple):
    """What a report is of, the same in every language."""

    runs: Sequence[Run]
    seen: Sequence[Gathered]
    drawn: Drawn
    differences: Sequence[MetricVerdict] | None = None
    sides: Mapping[str, str] = {}
    """Id of a run -> A or B, where the runs are those of two sides."""
    refused: NiloError | None = None
    """Why two sides were not compared."""


def report_document(
    shown: Shown, words: Catalogue, group: Document | None = None, diagnosis: Diagnosis | None = None
) -> Document:
    """One run, or several beside each other; `group` is the screen of the group that they are, which stands first.

    `diagnosis` is what they tell of the service's limit; None where they do not tell it together.
    """
    names = _names(shown, words)
    if group is not None:
        head = _of_group(shown, names, group, words)
    elif len(shown.runs) == 1:
        head = _of_run(shown.runs[0], words)
    else:
        head = _of_runs(shown, names, words)
    blocks = [
        *head,
        *_limit(diagnosis, words),
        Heading(text=words.say("screen.report.charts")),
        *Pictures(shown.runs, shown.seen, names, shown.drawn, words).blocks(),
        *_slowest(shown, names, words),
        *_failed(shown, names, words),
        Heading(text=words.say("screen.report.condition")),
        _condition(shown.runs, names, words),
        Heading(text=words.say("screen.report.definitions")),
        definitions.facts(shown.runs, words),
        Heading(text=words.say("screen.report.next")),
        _foot(shown.runs, group, words),
    ]
    return Document(lang=words.lang, blocks=blocks)


def _limit(diagnosis: Diagnosis | None, words: Catalogue) -> Iterator[Block]:
    """What limits the service, as `nilo diagnose` says it; nothing where there was nothing to look at."""
    if diagnosis is not None and (diagnosis.findings or diagnosis.state == "healthy"):
        yield Heading(text=words.say("screen.report.limit"))
        yield from diagnosis_blocks(diagnosis, words)


def _of_run(run: Run, words: Catalogue) -> Iterator[Block]:
    lead, told = run_lead(run, words)
    yield Heading(text=_title(run, words), level=1)
    yield lead
    yield Heading(text=words.say("screen.report.figures"))
    yield table.of(run.summary, words)
    yield Facts(rows=[*facts.conditions(run, words), *facts.of(run, words)])
    yield from scenarios.table(run.summary, words)
    yield from _findings([run], told, words)


def _of_runs(shown: Shown, names: Sequence[str], words: Catalogue) -> Iterator[Block]:
    yield Heading(text=words.say("screen.report.title_many", n=len(shown.runs)), level=1)
    leads = [run_lead(run, words) for run in shown.runs]
    for name, (lead, _) in zip(names, leads, strict=True):
        yield Lead(text=words.say("screen.chart.of_run", title=name, run=lead.text), tone=lead.tone)
    yield Heading(text=words.say("screen.report.beside"))
    yield _beside(shown, names, words)
    if shown.refused is not None:
        why = words.say(f"error.{shown.refused.slug}.what", **shown.refused.params)
        yield Text(text=words.say("screen.beside.refused", why=why))
    found = [
        notes.blocks([run], words, told=told, archived=True, most=len(run.findings))
        for run, (_, told) in zip(shown.runs, leads, strict=True)
    ]
    yield from _each(words.say("screen.report.findings"), names, found)


def _of_group(shown: Shown, names: Sequence[str], group: Document, words: Catalogue) -> Iterator[Block]:
    yield Heading(text=_title(shown.runs[0], words), level=1)
    yield from (block for block in group.blocks if isinstance(block, Lead))
    yield Heading(text=words.say("screen.report.figures"))
    yield from (block for block in group.blocks if not isinstance(block, Lead | Notes | Foot))
    found = [block for block in group.blocks if isinstance(block, Notes)]
    if found:
        yield Heading(text=words.say("screen.report.findings"))
        yield from found
    if len(shown.runs) > 1:
        yield Heading(text=words.say("screen.report.beside"))
        yield _beside(shown, names, words)


def _beside(shown: Shown, names: Sequence[str], words: Catalogue) -> Table:
    within = [intervals(run, seen.table) for run, seen in zip(shown.runs, shown.seen, strict=True)]
    return beside.table(shown.runs, names, words, within, shown.differences)


def _findings(runs: Sequence[Run], told: set[str], words: Catalogue) -> Iterator[Block]:
    found = notes.blocks(runs, words, told=told, archived=True, most=sum(len(run.findings) for run in runs))
    yield Heading(text=words.say("screen.report.findings"))
    if found:
        yield from found
    else:
        yield Text(text=words.say("screen.report.no_findings"))


def _slowest(shown: Shown, names: Sequence[str], words: Catalogue) -> Iterator[Block]:
    """The waterfall of each run, where there are records and not too many runs."""
    if len(shown.runs) > MOST_WITH_BARS:
        return
    falls = [
        [waterfall(run, seen.slowest, words)] if seen.slowest else []
        for run, seen in zip(shown.runs, shown.seen, strict=True)
    ]
    yield from _each(words.say("screen.waterfall.title"), names, falls)


def _failed(shown: Shown, names: Sequence[str], words: Catalogue) -> Iterator[Block]:
    tables = [
        [failed.table(seen.failures, words, _MOST_FAILURES)] if seen.failures.failed else [] for seen in shown.seen
    ]
    yield from _each(words.say("screen.report.failures"), names, tables)


def _each(title: str, names: Sequence[str], found: Sequence[Sequence[Block]]) -> Iterator[Block]:
    """The blocks of each run below its name, where it has any; a single run needs no name."""
    if any(found):
        yield Heading(text=title)
    for name, blocks in zip(names, found, strict=True):
        if blocks and len(names) > 1:
            yield Heading(text=name, level=3)
        yield from blocks


def _condition(runs: Sequence[Run], names: Sequence[str], words: Catalogue) -> Facts | Table:
    return condition.facts(runs[0], words) if len(runs) == 1 else condition.side_by_side(runs, names, words)


def _foot(runs: Sequence[Run], group: Document | None, words: Catalogue) -> Foot:
    """Where the runs lie and how to look at each, or to repeat a single one."""
    kept = [block for block in group.blocks if isinstance(block, Foot)] if group is not None else []
    if kept:
        return kept[0]
    commands = [f"nilo runs show {short(run)}" for run in runs]
    if len(runs) == 1:
        commands.append(f"nilo measure --like {short(runs[0])}")
    told = words.say("screen.list_join").join(run.id for run in runs)
    return Foot(text=words.say("screen.foot.run", run=told), lead=words.say("screen.foot.next"), commands=commands)


def _names(shown: Shown, words: Catalogue) -> list[str]:
    """What tells the runs apart: their sides, or their loads where these differ; else A, B, C with their ids."""
    runs, levels = shown.runs, [level(run) for run in shown.runs]
    if shown.sides:
        return [f"{shown.sides[run.id]} {short(run)}" for run in runs]
    if len(runs) > 1 and len({run.group for run in runs} - {None}) == 1:
        if all("/" in (run.role or "") for run in runs):
            return [side_of(run, words) for run in runs]
        if len(set(levels)) == len(levels):
            return [f"{name} {_load_unit(run, words)}" for run, name in zip(runs, levels, strict=True)]
    return [f"{_letter(i)} {short(run)}" for i, run in enumerate(runs)]


def _load_unit(run: Run, words: Catalogue) -> str:
    return rate_unit(run.spec, words) if run.spec.load.is_open else words.say("screen.sweep.users")


def _letter(i: int) -> str:
    return ascii_uppercase[i] if i < len(ascii_uppercase) else str(i + 1)


def _title(run: Run, words: Catalogue) -> str:
    subject = run.spec.labels.service or run.environment.model.id or run.spec.model or run.spec.target
    return words.say("screen.report.title", subject=subject)
