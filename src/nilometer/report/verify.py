"""The screen of a verify: the verdict, and what its pairs say of the machine it was measured on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from nilometer.compare.condition import Difference
from nilometer.compare.noise import noises
from nilometer.compare.verdict import Comparison, Rule
from nilometer.core.run import Run
from nilometer.text import units
from nilometer.text.i18n import Catalogue

from . import notes
from .comparison import comparison_document, condition_table, name_of
from .document import Document, Fact, Facts, Foot
from .notes import short

Ending = Literal["cut", "time", "tokens", "pairs", "unfit", "lost"]


def verify_document(
    comparison: Comparison,
    rule: Rule,
    runs: Sequence[Run],
    group: str,
    words: Catalogue,
    *,
    differences: Sequence[Difference] = (),
    archived: bool = True,
    ended: Ending | None = None,
) -> Document:
    """`runs` are all that were measured, in order; those that `comparison` names count.

    `ended`: what ended it before it was decided.
    """
    sides = sides_of(comparison, runs)
    return comparison_document(
        comparison,
        rule.family,
        sides,
        words,
        more=[
            *([condition_table(differences, words)] if differences else []),
            *_about(rule, sides, words),
            *notes.blocks(runs, words, told=set(), archived=archived, most=3),
        ],
        foot=_foot(runs, group, words, archived),
        why_short=None if ended is None else words.say(f"screen.verify.{ended}"),
    )


def sides_of(comparison: Comparison, runs: Sequence[Run]) -> tuple[list[Run], list[Run]]:
    """The runs that count, of A and of B, pair by pair."""
    by_id = {run.id: run for run in runs}
    return [by_id[run] for run in comparison.runs_a], [by_id[run] for run in comparison.runs_b]


def _about(rule: Rule, sides: tuple[list[Run], list[Run]], words: Catalogue) -> list[Facts]:
    """What the pairs say beside the verdict."""
    a, b = sides
    if not a:
        return []
    most = rule.looks.most if rule.looks else len(a)
    names = {row.name: name_of(row, words) for row in rule.family}
    known = [(names[told.metric], told) for told in noises(rule, a, b)]
    rows = [
        ("done", words.say("screen.verify.pairs_of", n=len(a), most=most)),
        ("spread", _each([(name, told.run_spread) for name, told in known], units.percent, words)),
        ("smallest", _each([(name, told.smallest_change) for name, told in known], units.change, words)),
        ("drift", _each([(name, told.drift_per_run) for name, told in known], units.change, words)),
    ]
    return [Facts(rows=[Fact(words.say(f"screen.verify.{key}"), said) for key, said in rows if said])]


def _each(figures: Sequence[tuple[str, float | None]], said: Callable[[float | None], str], words: Catalogue) -> str:
    return words.say("screen.list_join").join(f"{name} {said(value)}" for name, value in figures if value is not None)


def _foot(runs: Sequence[Run], group: str, words: Catalogue, archived: bool) -> Foot:
    if not archived:
        return Foot(text=words.say("screen.foot.not_archived"))
    return Foot(
        text=words.say("screen.foot.group_alone", group=group),
        lead=words.say("screen.foot.next"),
        commands=[f"nilo runs show {group}", *(f"nilo runs show {short(run)}" for run in runs[:2])],
    )
