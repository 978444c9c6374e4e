"""The measurement that tells rivals apart, made: the highest load again as it was, then with one thing changed.

Both are measured now, one right after the other: an archived level may be of another day.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

import msgspec

from nilometer.core.run import Run, Runs
from nilometer.core.spec import Spec
from nilometer.diagnose.diagnosis import Diagnosis
from nilometer.diagnose.level import evidence_of
from nilometer.diagnose.trials import Outcome, Trial, outcome_of, rivals_of, updated

from .approach import Headers
from .follow import Stop, Watch
from .measure import Behind, Place, measure


class Tried(NamedTuple):
    """The diagnosis after it, what came about, and the runs: as it was, with the change."""

    diagnosis: Diagnosis
    outcome: Outcome
    runs: tuple[Run, Run]


def try_out(
    trial: Trial,
    found: Diagnosis,
    spec: Spec,
    headers: Headers,
    *,
    runs: Runs,
    watch: Watch,
    stop: Stop,
    behind: Behind | None,
    random: Random,
) -> Tried | None:
    """Measure both and look at them; None where the trial cannot change this spec, or the user ended it."""
    changed = trial.changed(spec)
    if changed is None:
        return None
    made = []
    for role, one in (("as_it_was", spec), (trial.slug, changed)):
        if stop.asked:
            return None
        place = Place(group=None, role=role, level=None, order=None)
        made.append(measure(one, headers, runs=runs, watch=watch, stop=stop, place=place, behind=behind, random=random))
    before, after = (evidence_of(run, runs.records(run.id)) for run in made)
    outcome = outcome_of(trial, rivals_of(found.findings), before, after)
    return Tried(_concluded(found, outcome), outcome, (made[0], made[1]))


def _concluded(found: Diagnosis, outcome: Outcome) -> Diagnosis:
    findings = updated(found.findings, outcome)
    state = found.state
    if findings and findings[0].confidence == "confirmed" and state == "undecided":
        state = "found"
    return msgspec.structs.replace(found, findings=findings, state=state)
