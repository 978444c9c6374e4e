"""From what was measured to a Document: one run, or the group of a quickstart. All words come from the catalogue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nilometer.core.finding import Finding
from nilometer.core.run import Run
from nilometer.text.i18n import Catalogue

from . import facts, loads, notes, scenarios, table
from .document import Document, Foot
from .lead import group_lead, run_lead
from .notes import short


def run_document(run: Run, words: Catalogue, *, archived: bool = True, conditions: bool = False) -> Document:
    """The screen after a run: verdict, one table with the facts beside it, notes, where the run lies.

    `conditions` is for a reader who did not start the run: target, model, load and start before the other facts, and
    every note there is.
    """
    lead, told = run_lead(run, words, archived)
    rows = [*(facts.conditions(run, words) if conditions else []), *facts.of(run, words)]
    most = len(run.findings) if conditions else notes.HANDFUL
    return Document(
        lang=words.lang,
        blocks=[
            lead,
            table.of(run.summary, words),
            *scenarios.table(run.summary, words),
            facts.block(rows),
            *notes.blocks([run], words, told=told, archived=archived, most=most),
            _run_foot(run, words, archived),
        ],
    )


def group_document(
    runs: Sequence[Run], group: str, finding: Finding | None, words: Catalogue, *, archived: bool = True
) -> Document:
    """The screen of a quickstart: what limits the service in one sentence, a table of its loads, where the runs lie.

    `finding` is the diagnosis of the group, None where the rules abstain. An inadmissible run stands before it.
    """
    lead, told = group_lead(runs, finding, words, archived)
    return Document(
        lang=words.lang,
        blocks=[
            lead,
            loads.table(runs, words),
            *notes.blocks(runs, words, told=told, archived=archived, cause=finding),
            _group_foot(runs, group, words, archived),
        ],
    )


def _run_foot(run: Run, words: Catalogue, archived: bool) -> Foot:
    if not archived:
        return Foot(text=words.say("screen.foot.not_archived"))
    steps = list(_steps(run))
    lead = words.say("screen.foot.next") if steps else ""
    return Foot(text=words.say("screen.foot.run", run=run.id), lead=lead, commands=steps)


def _steps(run: Run) -> Iterator[str]:
    """What to do next: look at the failures, mend what made the run unfit, else a longer run, else the next load."""
    ref, load = short(run), run.spec.load
    imported = run.origin == "imported"
    if run.summary.requests.failed and (run.summary.timeline or not imported):
        yield f"nilo runs show {ref} --errors"
    if imported:
        return
    if run.summary.generator.verdict == "limited":
        yield "nilo doctor"
    elif run.verdict == "inadmissible" or run.phases.interrupted:
        yield f"nilo measure --like {ref}"
    elif any(finding.slug == "short_of_guide" for finding in run.findings):
        yield f"nilo measure --like {ref} --procedure guide"
    elif load.varies:
        yield f"nilo measure --like {ref}"
    elif load.rate_per_s is not None:
        yield f"nilo measure --like {ref} --rate {load.rate_per_s * 2:g}"
    else:
        yield f"nilo measure --like {ref} -c {(load.concurrency or 1) * 2}"


def _group_foot(runs: Sequence[Run], group: str, words: Catalogue, archived: bool) -> Foot:
    if not archived:
        return Foot(text=words.say("screen.foot.not_archived"))
    ids = ", ".join(short(run) for run in runs)
    commands = [
        f"nilo runs show {short(runs[-1])}",
        "nilo measure embedded -c 16",
        "nilo measure http://127.0.0.1:8000 -c 16",
    ]
    text = words.say("screen.foot.group", group=group, runs=ids)
    return Foot(text=text, lead=words.say("screen.foot.next"), commands=commands)
