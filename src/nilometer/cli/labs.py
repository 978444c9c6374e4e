"""What `nilo lab` does: two loads on one engine, or two sides in turns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

from nilometer.compare.noise import Noise, noise, pairs_for
from nilometer.compare.verdict import Comparison, Rule
from nilometer.core.group import Group
from nilometer.experiment.contest import LESSONS, Contest, hold
from nilometer.experiment.lab import Lab, run_lab
from nilometer.experiment.measure import Behind
from nilometer.experiment.verify import Pair, Verified

from .comparing import comparison_object, rule_of
from .machine import group_object, head
from .measuring import exit_code, interrupts, open_archive_of
from .progress import Progress
from .session import Session
from .verifying import decided, ended, judged

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


def run_contests(name: str, session: Session) -> int:
    """Two sides in turns, question after question; the verdict is the lesson, so none of them is a failure."""
    told: list[tuple[Contest, Group, Verified, Comparison]] = []
    with (
        open_archive_of(session) as archive,
        interrupts() as stop,
        Progress(session.words, quiet=session.quiet) as progress,
    ):
        for contest in LESSONS[name]:
            rule = rule_of(None, contest.most)

            def enough(pairs: Sequence[Pair], rule: Rule = rule) -> bool:
                return decided(pairs, rule, session)

            group, verified = hold(
                contest,
                decided=enough,
                runs=archive,
                watch=progress,
                stop=stop,
                tell=session.progress,
                random=Random(),  # noqa: S311 - names, not secrets
            )
            told.append((contest, group, verified, judged(verified.pairs, rule)))
            if verified.series.cut or verified.series.fault:
                break
    _show(name, told, session)
    return max(exit_code(verified.series, session) for _, _, verified, _ in told)


def _show(name: str, told: Sequence[tuple[Contest, Group, Verified, Comparison]], session: Session) -> None:
    from nilometer.report.verify import sides_of, verify_document

    def machine(contest: Contest, group: Group, verified: Verified, comparison: Comparison) -> dict[str, object]:
        sides = sides_of(comparison, verified.series.runs)
        return comparison_object(comparison, rule_of(None, contest.most).family, sides, group=group.id)

    def screen(contest: Contest, group: Group, verified: Verified, comparison: Comparison) -> str:
        rule = rule_of(None, contest.most)
        document = verify_document(
            comparison, rule, verified.series.runs, group.id, session.words, ended=ended(verified)
        )
        return f"{_lesson(contest, verified, comparison, session)}\n\n{session.render(document)}"

    session.emit(
        {**head("lab"), "lab": name, "comparisons": [machine(*one) for one in told]},
        lambda: "\n\n".join(screen(*one) for one in told),
        archived=[run.id for _, _, verified, _ in told for run in verified.series.runs],
    )


def _lesson(contest: Contest, verified: Verified, comparison: Comparison, session: Session) -> str:
    """What is to be learned from it, in one sentence with its figures."""
    ratios = {one.metric: one.ratio for one in comparison.metrics}
    ttft, tpot = ratios.get("ttft_p50"), ratios.get("tpot_p50")
    found = _noise(contest, verified)
    if ttft is None or tpot is None or found is None or found.run_spread is None:
        return session.words.say("screen.lab.half")
    row = next(row for row in rule_of(None, contest.most).family if row.name == "tpot_p50")
    pairs = pairs_for(math.log1p(found.run_spread), math.log1p(_ASKED_CHANGE), row.log_margin)
    return session.words.say(
        f"screen.lab.{contest.name}", ttft=ttft - 1, tpot=tpot - 1, spread=found.run_spread, pairs=pairs
    )


def _noise(contest: Contest, verified: Verified) -> Noise | None:
    row = next(row for row in rule_of(None, contest.most).family if row.name == "tpot_p50")
    return noise(row, [pair.a for pair in verified.pairs], [pair.b for pair in verified.pairs], contest.most)
