"""`nilo plan --audit`: how an engine was started is read here, and put to what it is to serve."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nilometer.core.errors import SpecError
from nilometer.core.finding import Finding
from nilometer.plan.audit.case import Wanted
from nilometer.plan.audit.traps import audit
from nilometer.plan.launch.fields import Launch
from nilometer.sources.launches import read_launch

from .planning import Asked, is_this

_SAID = (
    "engine",
    "tensor",
    "pipeline",
    "data",
    "expert",
    "kv_precision",
    "max_context",
    "max_seqs",
    "batched_tokens",
    "memory_share",
    "slots",
)
"""Options that the engine's own command says already."""


def launched(given: Mapping[str, Any]) -> Launch | None:
    """How the engine was started; None without --audit. SpecError `plan_audit_beside`, and those of `read_launch`."""
    if given["audit"] is None:
        return None
    beside = [name for name in _SAID if given[name] is not None]
    if beside:
        raise SpecError("plan_audit_beside", options=", ".join("--" + name.replace("_", "-") for name in beside))
    return read_launch(given["audit"])


def audited(found: Asked, launch: Launch, given: Mapping[str, Any]) -> tuple[Finding, ...]:
    """What is wrong with it for these requests; lengths that nobody gave are not held against it."""
    question = found.question
    known = question.mix if found.lengths_from in {"given", "workload"} else ()
    wanted = Wanted(
        shape=question.shape,
        device=question.device,
        precision=question.precision,
        file_bytes=question.file_bytes,
        pairs=known,
        longest=given["context"],
        prefix_tokens=given["shared_prefix"],
        prefix_share=1.0 if given["shared_prefix"] else None,
        concurrency=given["concurrency"],
        cores=_cores() if is_this(given["device"]) else None,
    )
    return audit(launch, wanted)


def _cores() -> int | None:
    """Physical ones of this machine."""
    import psutil

    return psutil.cpu_count(logical=False)
