"""Findings as notes: cause, evidence, next step; the gravest first, a handful at most."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nilometer.core.errors import Param
from nilometer.core.finding import Evidence, Finding
from nilometer.core.run import Run
from nilometer.text import units
from nilometer.text.i18n import Catalogue

from .document import Note, Notes

HANDFUL = 5
_SEVERITY = {"high": 0, "medium": 1, "low": 2}
_KIND = {"validity": 0, "cause": 1, "remedy": 2, "note": 3}
_FIRST = "generator_limited"
"""Stands before all else: with it the figures are not the server's."""


def blocks(runs: Sequence[Run], words: Catalogue, *, without: set[str], cause: Finding | None = None) -> list[Notes]:
    """The notes on these runs, each slug once, as one block or none; those in `without` were told already.

    `cause` is the diagnosis of a group whose sentence the first line has: its evidence and step stand first.
    """
    found: dict[str, tuple[Finding, Run]] = {}
    for run in runs:
        for finding in run.findings:
            if finding.slug not in without:
                found.setdefault(finding.slug, (finding, run))
    rows = [_note(finding, words, run) for finding, run in sorted(found.values(), key=lambda pair: _rank(pair[0]))]
    if cause is not None:
        rows.insert(0, _told(cause, words))
    if not rows:
        return []
    more = len(rows) - HANDFUL
    rest = words.say("screen.notes_rest", n=more, run=runs[0].id[:6]) if more > 0 else None
    return [Notes(rows=rows[:HANDFUL], rest=rest)]


def gravest(findings: Iterable[Finding]) -> Finding | None:
    """The finding that makes a run inadmissible: the generator's own, else the most severe on validity."""
    validity = [finding for finding in findings if finding.kind == "validity"]
    return min(validity, key=_rank) if validity else None


def cause_of(finding: Finding, words: Catalogue, run: Run | None = None) -> str:
    """What was found, in one sentence without its full stop."""
    return words.say(f"finding.{finding.slug}.what", **_params(finding, run))


def step_of(finding: Finding, words: Catalogue, run: Run | None = None) -> str:
    """What to do about it."""
    return words.say(f"finding.{finding.slug}.next", **_params(finding, run))


def _rank(finding: Finding) -> tuple[bool, int, int]:
    return finding.slug != _FIRST, _SEVERITY[finding.severity], _KIND[finding.kind]


def _params(finding: Finding, run: Run | None) -> dict[str, Param]:
    """A sentence may name the run it is about."""
    return {"run": run.id[:6] if run else None, **finding.params}


def _note(finding: Finding, words: Catalogue, run: Run) -> Note:
    return Note(
        slug=finding.slug,
        severity=finding.severity,
        cause=cause_of(finding, words, run),
        evidence=_evidence(finding, words),
        step=step_of(finding, words, run),
    )


def _told(finding: Finding, words: Catalogue) -> Note:
    cause = _evidence(finding, words) or cause_of(finding, words)
    return Note(slug=finding.slug, severity="low", cause=cause, step=step_of(finding, words))


def _evidence(finding: Finding, words: Catalogue) -> str | None:
    shown = [_figure(evidence, words) for evidence in finding.evidence]
    return words.say("screen.list_join").join(shown) or None


def _figure(evidence: Evidence, words: Catalogue) -> str:
    """One figure with its range, its unit and what it was made of."""
    key = f"evidence.{evidence.name}"
    name = words.say(key) if key in words else evidence.name
    text = f"{name} {units.measured(evidence.value, evidence.unit)}"
    if evidence.lo is not None and evidence.hi is not None:
        text += f" ({units.measured(evidence.lo, evidence.unit)} - {units.measured(evidence.hi, evidence.unit)})"
    if evidence.level:
        text += " " + words.say("screen.evidence_level", level=evidence.level)
    return text + (f" (n {units.count(evidence.n)})" if evidence.n is not None else "")
