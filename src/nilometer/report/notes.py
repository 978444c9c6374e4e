"""Findings as notes: the gravest first, each slug once, a handful at most."""

from __future__ import annotations

from collections.abc import Sequence

from nilometer.core.finding import Finding
from nilometer.core.run import Run
from nilometer.text import load
from nilometer.text.i18n import Catalogue

from . import findings
from .document import Note, Notes

HANDFUL = 5


def blocks(
    runs: Sequence[Run],
    words: Catalogue,
    *,
    told: set[str],
    archived: bool,
    cause: Finding | None = None,
    most: int = HANDFUL,
) -> list[Notes]:
    """The notes on these runs as one block or none; `told` are the slugs that the first line has.

    `cause` is the diagnosis of a group: it stands first, by its evidence and step alone where its sentence was told.
    Beyond `most` it is only said that there are more, and where.
    """
    found: dict[str, list[tuple[Finding, Run]]] = {}
    for run in runs:
        for finding in run.findings:
            if finding.slug not in told:
                found.setdefault(finding.slug, []).append((finding, run))
    ranked = sorted(found.values(), key=lambda pairs: findings.rank(pairs[0][0]))
    rows = [] if cause is None else [_diagnosis(cause, cause.slug in told, words)]
    rows += [_note(pairs, len(runs), words, archived) for pairs in ranked]
    if not rows:
        return []
    more = len(rows) - most
    where = "screen.notes_rest" if archived else "screen.notes_rest_unseen"
    rest = words.say(where, n=more, run=short(runs[0])) if more > 0 else None
    return [Notes(rows=rows[:most], rest=rest)]


def short(run: Run) -> str:
    """A run as a command takes it: the first letters of its id."""
    return run.id[:6]


def level(run: Run) -> str:
    """The load of a run within its group: requests in flight, or requests per second."""
    return run.level or load.size(run.spec.load)


def _note(pairs: Sequence[tuple[Finding, Run]], of_runs: int, words: Catalogue, archived: bool) -> Note:
    """One slug, told of the first run that has it; in a group with the loads it is true of, unless it is of all."""
    finding, run = pairs[0]
    ref = short(run) if archived else None
    cause = findings.cause(finding, words, ref)
    alike = [other for one, other in pairs if one.params == finding.params]
    if len(alike) < of_runs:
        cause = _where(alike, words) + cause
    return Note(
        slug=finding.slug,
        severity=finding.severity,
        cause=cause,
        evidence=findings.evidence(finding, words),
        step=_step(finding, words, ref),
    )


def _where(runs: Sequence[Run], words: Catalogue) -> str:
    """Of which runs of a group something is true: those of a load; of a verify, where all have one, their ids."""
    join = words.say("screen.list_join").join
    if all(run.role in ("a", "b") for run in runs):
        return words.say("screen.note_of_runs", runs=join(short(run) for run in runs))
    return words.say("screen.note_at_load", load=join(level(run) for run in runs))


def _diagnosis(finding: Finding, is_told: bool, words: Catalogue) -> Note:
    """The diagnosis of a group; its severity says how much it limits, not that something is wrong with the runs."""
    figures = findings.all_evidence(finding, words) if is_told else findings.evidence(finding, words)
    cause = findings.cause(finding, words)
    return Note(
        slug=finding.slug,
        severity="low",
        cause=figures or cause if is_told else cause,
        evidence=None if is_told else figures,
        step=_step(finding, words, None),
    )


def _step(finding: Finding, words: Catalogue, ref: str | None) -> str | None:
    step = findings.step(finding, words, ref)
    return None if step is None else words.say("screen.step", step=step)
