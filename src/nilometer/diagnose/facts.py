"""What is known of a run beside its figures: what it was allowed to conclude, and which engine answered."""

from __future__ import annotations

import msgspec

from nilometer.core.run import Run
from nilometer.core.summary import GeneratorVerdict, Verdict

_SERVER = ("running_mean", "queue_mean_s", "ttft_mean_s", "waiting_mean", "generation_tokens")
"""Any of these says that the server's own page was seen."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Of one run; None = not known."""

    verdict: Verdict
    generator: GeneratorVerdict
    steady: bool | None
    ok: int
    length_s: float
    findings: tuple[str, ...] = ()
    """Slugs, of the run's own findings."""
    server_seen: bool = False
    streamed: bool = True
    target: str = ""
    engine: str | None = None
    launched_by_us: bool = False
    slots: int | None = None
    context_tokens: int | None = None
    weight_bytes: int | None = None
    devices: tuple[str, ...] = ()
    """Of the machine that the load came from; the server's where that is the same."""


def facts_of(run: Run) -> Facts:
    """The facts of a run."""
    summary, engine = run.summary, run.environment.engine
    return Facts(
        verdict=run.verdict,
        generator=summary.generator.verdict,
        steady=summary.window.steady,
        ok=summary.requests.ok or 0,
        length_s=summary.window.length_s,
        findings=tuple(finding.slug for finding in run.findings),
        server_seen=any(summary.server.get(name) is not None for name in _SERVER),
        streamed=run.spec.stream,
        target=run.spec.target,
        engine=engine.name,
        launched_by_us=engine.launched_by_us,
        slots=engine.slots,
        context_tokens=engine.context_tokens,
        weight_bytes=run.environment.model.file_bytes,
        devices=tuple(run.environment.machine.devices),
    )
