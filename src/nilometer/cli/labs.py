"""What `nilo lab` does: two loads on one engine, or two sides in turns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from nilometer.compare.condition import CHANGES
from nilometer.compare.noise import noises, pairs_for
from nilometer.core.errors import NiloError
from nilometer.core.group import Group
from nilometer.experiment.contest import LESSONS, Contest, hold
from nilometer.experiment.follow import Stop
from nilometer.experiment.lab import Lab, run_lab
from nilometer.experiment.measure import Behind
from nilometer.experiment.verify import Verified

from .comparing import Terms, rule_of
from .machine import group_object, head
from .measuring import exit_code, interrupts, open_archive_of
from .progress import Progress
from .session import Session
from .verifying import decided, document_of, machine_of

if TYPE_CHECKING:
    from nilometer.archive.protocol import Archive
    from nilometer.text.i18n import Catalogue

_FELT = "tpot_p50"
_ASKED_CHANGE = 0.10
"""The change whose pairs the lesson counts: what the guide's example had lost."""


def run_mix(lab: Lab, session: Session) -> int:
    """Two loads on one engine, one after the other."""
    from nilometer.engines import embedded
    from nilometer.report.lab import lab_document

    with (
        open_archive_of(session) as archive,
        interrupts() as stop,
        embedded.start(context_tokens_per_slot=lab.context_tokens, tell=session.progress) as engine,
        Progress(session.words, quiet=session.quiet) as progress,
    ):
        group, series = run_lab(
            lab,
            Behind(engine.url, engine.facts, engine.model, engine.pid),
            tuple(engine.headers.items()),
            runs=archive,
            watch=progress,
            stop=stop,
            random=Random(),  # noqa: S311 - names, not secrets
        )
    session.emit(
        group_object(group.id, "lab", series.runs),
        lambda: session.render(lab_document(series.runs, group.id, session.words)),
        archived=[run.id for run in series.runs],
    )
    return exit_code(series, session)


class Told(NamedTuple):
    """One question of a lesson and what came of it."""

    contest: Contest
    terms: Terms
    group: Group
    verified: Verified


def run_contests(name: str, session: Session) -> int:
    """Two sides in turns, question after question; the verdict is the lesson, so none of them is a failure.

    What was measured before an interrupt, or before a fault, is shown.
    """
    told: list[Told] = []
    fault: NiloError | None = None
    cut = False
    with (
        open_archive_of(session) as archive,
        interrupts() as stop,
        Progress(session.words, quiet=session.quiet) as progress,
    ):
        for contest in LESSONS[name]:
            try:
                told.append(_held(contest, session, archive, progress, stop))
            except (NiloError, KeyboardInterrupt) as met:
                if not told:
                    raise
                fault, cut = (met, False) if isinstance(met, NiloError) else (None, True)
                break
            if told[-1].verified.series.cut or told[-1].verified.series.fault:
                break
    _show(name, told, session)
    if fault is not None:
        session.fail(fault)
    codes = [exit_code(one.verified.series, session) for one in told]
    codes += [130] if cut else [fault.exit_code] if fault is not None else []
    return next(code for code in (130, 2, 3, 4, 5, 1, 0) if code in codes)


def _held(contest: Contest, session: Session, archive: Archive, progress: Progress, stop: Stop) -> Told:
    terms = Terms(rule_of(None, contest.most), frozenset(CHANGES))
    group, verified = hold(
        contest,
        decided=lambda pairs: decided(pairs, terms, session),
        runs=archive,
        watch=progress,
        stop=stop,
        tell=session.progress,
        random=Random(),  # noqa: S311 - names, not secrets
    )
    return Told(contest, terms, group, verified)


def _show(name: str, told: Sequence[Told], session: Session) -> None:
    def screen(one: Told) -> str:
        document = document_of(one.verified, one.terms, one.group, session.words)
        return f"{_lesson(one, session.words)}\n\n{session.render(document)}"

    session.emit(
        {**head("lab"), "lab": name, "comparisons": [machine_of(one.verified, one.terms, one.group) for one in told]},
        lambda: "\n\n".join(map(screen, told)),
        archived=[run.id for one in told for run in one.verified.series.runs],
    )


def _lesson(one: Told, words: Catalogue) -> str:
    """What is to be learned from it, in one sentence with its figures."""
    rule, pairs = one.terms.rule, one.verified.pairs
    comparison, _ = one.terms.judge(pairs)
    ratios = {metric.metric: metric.ratio for metric in comparison.metrics}
    ttft, tpot = ratios.get("ttft_p50"), ratios.get(_FELT)
    found = noises(rule, [pair.a for pair in pairs], [pair.b for pair in pairs])
    spread = next((noise.run_spread for noise in found if noise.metric == _FELT), None)
    if ttft is None or tpot is None or spread is None:
        return words.say("screen.lab.half")
    row = next(row for row in rule.family if row.name == _FELT)
    needed = pairs_for(math.log1p(spread), math.log1p(_ASKED_CHANGE), row.log_margin, rule)
    return words.say(f"screen.lab.{one.contest.name}", ttft=ttft - 1, tpot=tpot - 1, spread=spread, pairs=needed)
