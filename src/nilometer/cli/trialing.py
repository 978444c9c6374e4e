"""`nilo diagnose --experiment`: say what each rival foretells, measure it, and tell what came about."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import msgspec

from .progress import Progress

if TYPE_CHECKING:
    from nilometer.core.run import Run, Runs
    from nilometer.core.spec import Spec
    from nilometer.diagnose.diagnosis import Diagnosis
    from nilometer.diagnose.trials import Outcome
    from nilometer.experiment.follow import Stop

    from .measuring import Found
    from .session import Session


def foretold(found: Diagnosis, spec: Spec, command: str) -> Diagnosis:
    """The diagnosis with the trial that would settle it, as a command to type."""
    from nilometer.diagnose.trials import with_experiment

    return msgspec.structs.replace(found, findings=with_experiment(found.findings, spec, command))


def tried(found: Diagnosis, run: Run, at: Found, runs: Runs, stop: Stop, session: Session) -> Diagnosis:
    """The diagnosis after its trial, made on the level of `run`; as it was where there is none for it."""
    from nilometer.diagnose.trials import predictions_of, rivals_of, trial_for
    from nilometer.experiment.trial import try_out
    from nilometer.report.diagnosis import prediction

    causes = rivals_of(found.findings)
    spec = run.spec
    trial = trial_for(causes[0], causes[1:], spec) if causes else None
    if trial is None:
        session.progress("diagnosis.no_trial")
        return found
    session.progress("diagnosis.trial", what=session.words.say(f"trial.{trial.slug}"))
    for code in predictions_of(trial, causes):
        session.tell("  " + prediction(code, session.words))
    with Progress(session.words, quiet=session.quiet) as progress:
        after = try_out(
            trial,
            found,
            spec,
            at.headers,
            runs=runs,
            watch=progress,
            stop=stop,
            behind=at.behind,
            random=Random(),  # noqa: S311 - names, not secrets
        )
    if after is None:
        return found
    _tell(after.outcome, session)
    return after.diagnosis


def _tell(outcome: Outcome, session: Session) -> None:
    words = session.words
    for key, slugs in (("held", outcome.held), ("refuted", outcome.refuted)):
        if slugs:
            names = words.say("screen.list_join").join(words.say(f"cause.{slug}.name") for slug in slugs)
            session.tell("  " + words.say(f"screen.diagnosis.{key}", causes=names))
