"""The machine form of a diagnosis: the contract's object `diagnosis`."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from nilometer.core.run import Run
from nilometer.diagnose.budget import Budget
from nilometer.diagnose.diagnosis import Diagnosis

from .machine import findings_of, head


def diagnosis_object(found: Diagnosis, runs: Sequence[Run], group: str | None) -> dict[str, object]:
    """`run` is that of the highest load; what was not measured is None."""
    return {
        **head("diagnosis"),
        "run": runs[-1].id if runs else None,
        "group": group,
        "runs": [run.id for run in runs],
        "levels": [run.level or run.spec.load.concurrency for run in runs],
        "state": found.state,
        "findings": findings_of(found.findings),
        "budget": {"ttft": _budget(found.ttft), "e2e": _budget(found.e2e)},
        "passed": found.passed,
        "not_run": [{"slug": one.slug, "missing": one.missing} for one in found.not_run],
        "knee": found.knee,
        "server_seen": found.server_seen,
        "left_out": list(found.left_out),
    }


def _budget(budget: Budget | None) -> object:
    """Parts by name, in ms and as shares."""
    return None if budget is None else msgspec.to_builtins(budget)
