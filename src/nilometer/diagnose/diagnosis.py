"""The verdict on a group: which causes hold, how sure that is, what stands against it, and what could not be looked at.

Validity comes first: a run that says nothing of the service is no ground for a cause. Where two causes explain the same
as well as each other, both are named and the diagnosis abstains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple

import msgspec

from nilometer.core.errors import Param
from nilometer.core.finding import Confidence, Evidence, Finding, Severity
from nilometer.core.record import Record
from nilometer.core.run import Run

from .advise import remedies
from .budget import Budget
from .case import Case
from .causes.validity import enough_answers
from .group import GroupEvidence, evidence_of_group, evidence_of_runs
from .impact import weight
from .params import params_of
from .rules import RULES, Rule, Stage
from .sign import Opinion, Sign

State = Literal["found", "healthy", "undecided", "vetoed"]

SUSPECT = 0.3
"""A cause that holds by so much is named where nothing holds better and something is wrong."""
APART = 0.12
"""Rivals whose scores are closer than this are not told apart."""
SURE = 0.75
_FEW = 40
"""With fewer answers at the highest load nothing is more than possible."""
_EVIDENCE, _AGAINST = 4, 4
_STAGES: tuple[Stage, ...] = ("first", "cause", "last")


class NotRun(msgspec.Struct, frozen=True, kw_only=True):
    """A cause that could not be looked at, and the figures that it would take."""

    slug: str
    missing: list[str]


class Held(NamedTuple):
    """A rule and what it made of the case."""

    rule: Rule
    opinion: Opinion


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """What limits a service. `findings[0]` is the answer; `passed` are causes looked for and not there."""

    state: State
    findings: list[Finding]
    ttft: Budget | None
    e2e: Budget | None
    passed: list[str]
    not_run: list[NotRun]
    knee: float | None = None
    """Requests in flight from which on more bring no more throughput; None where that was not reached."""
    greatest: float | None = None
    """The highest load looked at."""
    server_seen: bool = False
    left_out: tuple[float, ...] = ()
    """Loads above it with too few answers to be judged."""


def diagnose(group: GroupEvidence) -> Diagnosis:
    """What these levels say. Without a level the state is `undecided`, and nothing could be looked at.

    The highest loads are left out where they have too few answers and two lower ones have enough.
    """
    group, left_out = _judged_levels(group)
    if not group.levels:
        missing = [NotRun(slug=rule.slug, missing=["level"]) for rule in RULES]
        return Diagnosis(state="undecided", findings=[], ttft=None, e2e=None, passed=[], not_run=missing)
    case = Case(group)
    held = [Held(rule, rule.of(case)) for rule in RULES]
    standing = _standing(case, held)
    state, told = _judged(case, standing, held)
    return Diagnosis(
        state=state,
        findings=[_finding(case, one, state, standing) for one in told],
        ttft=case.highest.ttft,
        e2e=case.highest.e2e,
        passed=[one.rule.slug for one in held if _passed(one) and one not in told],
        not_run=[
            NotRun(slug=one.rule.slug, missing=list(one.opinion.missing))
            for one in held
            if not _passed(one) and one not in told
        ],
        knee=group.value("knee"),
        greatest=case.highest.level,
        server_seen=case.server_seen,
        left_out=left_out,
    )


def _judged_levels(group: GroupEvidence) -> tuple[GroupEvidence, tuple[float, ...]]:
    most = len(group.levels)
    while most and not enough_answers(group.levels[most - 1]):
        most -= 1
    if most == len(group.levels) or len({level.level for level in group.levels[:most]}) < 2:
        return group, ()
    return evidence_of_group(group.levels[:most]), tuple(level.level or 0.0 for level in group.levels[most:])


def diagnose_runs(runs: Iterable[Run], records: Callable[[str], Iterable[Record]]) -> Diagnosis:
    """What these runs say, one of each load, from their `records` by id."""
    return diagnose(evidence_of_runs((run, records(run.id)) for run in runs))


def spoken(found: Diagnosis) -> list[Finding]:
    """The findings, never none: where no cause was found that there is room, or that it is not yet known."""
    if found.findings:
        return found.findings
    if found.state == "healthy":
        params: dict[str, Param] = {"most": found.greatest or 0.0, "knee": found.knee}
        return [
            Finding(slug="room" if found.knee is None else "room_to_knee", kind="note", severity="low", params=params)
        ]
    missing = list(dict.fromkeys(name for one in found.not_run for name in one.missing))
    return [Finding(slug="not_yet_known", kind="note", severity="low", missing=missing)]


def scores(group: GroupEvidence) -> dict[str, float]:
    """How far each cause holds, by its slug; for benches and tests."""
    case = Case(group)
    return {rule.slug: rule.of(case).score for rule in RULES}


def _standing(case: Case, held: Sequence[Held]) -> list[Held]:
    """Those that hold, by stage, and in a stage the surest and greatest first, a special cause before its general."""
    standing = [one for one in held if one.opinion.holds]
    explained = {one.rule.special_of: one.opinion.score for one in standing if one.rule.special_of}

    def place(one: Held) -> tuple[int, float, bool]:
        score = min(one.opinion.score, explained.get(one.rule.slug, 1.0))
        return _STAGES.index(one.rule.stage), -score * weight(one.rule.explains, case), one.rule.slug in explained

    return sorted(standing, key=place)


def _judged(case: Case, standing: Sequence[Held], held: Sequence[Held]) -> tuple[State, list[Held]]:
    if not standing:
        suspects = sorted((one for one in held if one.opinion.score >= SUSPECT), key=lambda one: -one.opinion.score)
        return ("undecided", suspects[:2]) if suspects and _suffers(case) else ("healthy", [])
    first = standing[0]
    if first.rule.vetoes:
        return "vetoed", list(standing)
    rivals = [one for one in standing[1:] if _rivals(first, one) and _close(first, one)]
    return ("undecided" if rivals else "found"), list(standing)


def _suffers(case: Case) -> bool:
    """Whether the highest load is much worse than the lowest."""
    share, ratio = case.step("wait_share").value, case.step("gap_ratio").value
    return (share or 0.0) > 0.5 or (ratio or 1.0) > 2.0


def _rivals(one: Held, other: Held) -> bool:
    """Both explain the same, and neither is why the other holds."""
    kin = other.rule.slug == one.rule.special_of or one.rule.slug == other.rule.special_of
    return one.rule.explains == other.rule.explains and not kin


def _close(one: Held, other: Held) -> bool:
    return one.opinion.score - other.opinion.score < APART


def _passed(one: Held) -> bool:
    """It was looked for with all that it needs, and does not hold."""
    return not one.opinion.holds and one.opinion.looked


def _finding(case: Case, one: Held, state: State, standing: Sequence[Held]) -> Finding:
    rule, opinion = one
    return Finding(
        slug=rule.slug,
        kind=rule.kind,
        severity=_severity(rule, opinion),
        confidence=_confidence(case, one, state),
        metric=rule.metric,
        level=None if case.highest.level is None else f"{case.highest.level:g}",
        params=params_of(rule.slug, case),
        evidence=_figures(opinion.speaking)[:_EVIDENCE],
        against=_figures(opinion.against)[:_AGAINST],
        missing=list(dict.fromkeys(opinion.missing)),
        rivals=[other.rule.slug for other in standing if other is not one and _rivals(one, other)],
        remedies=remedies(rule.slug, case),
    )


def _severity(rule: Rule, opinion: Opinion) -> Severity:
    if rule.stage == "last":
        return "low"
    return "high" if opinion.score >= SURE else "medium"


def _confidence(case: Case, one: Held, state: State) -> Confidence:
    """Confirmed: client and server say the same, each for itself. Without that only an experiment confirms."""
    opinion = one.opinion
    if state == "undecided" or case.facts.ok < _FEW or opinion.score < SURE:
        return "possible"
    two = {"client", "server"} <= opinion.sources or "both" in opinion.sources
    return "confirmed" if two and opinion.score >= 0.9 else "likely"


def _figures(signs: Iterable[Sign]) -> list[Evidence]:
    """The figures of signs, each once."""
    found: dict[tuple[str, str | None], Evidence] = {}
    for sign in signs:
        if sign.evidence is not None:
            found.setdefault((sign.evidence.name, sign.evidence.level), sign.evidence)
    return list(found.values())
