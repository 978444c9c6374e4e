"""An archived run by the definitions of today: its figures, findings and verdict made anew from its records.

What was never in the records stays as it was told on the day: the server's memory and metrics, what the probe found.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from nilometer.core.record import Record
from nilometer.core.run import DEFINITIONS, Draw, Run
from nilometer.core.summary import Summary
from nilometer.metrics.summary import summarise
from nilometer.metrics.validity import JUDGED, judge

from .conclude import spike_of
from .staff import more
from .unfound import Witness


def can_resummarise(run: Run, records: int) -> bool:
    """Whether it was made by us and has its records: what another tool reckoned stays its own."""
    return run.origin != "imported" and (records > 0 or run.summary.run_requests.started == 0)


def resummarised(run: Run, records: Iterable[Record]) -> Run:
    """The run by the definitions of today, with the spec, phases and health that it has.

    Raises SpecError `window_invalid` or `slo_invalid` where its spec says what can no longer be read.
    """
    witness = Witness(run.spec)
    draw = Draw(devices=run.summary.efficiency.devices)
    summary = summarise(
        witness.watch(records), run.spec, run.phases, run.health, run.summary.memory, draw, spike_of(run.spec.load)
    )
    summary = _with_the_unrecorded(summary, run.summary)
    client, machine = run.environment.client, run.environment.machine
    cores = int(min(machine.cpu_count or 1, machine.container_cpu_limit or machine.cpu_count or 1))
    verdict, judged = judge(
        summary,
        run.spec,
        run.phases,
        run.health,
        template_tokens=run.environment.model.template_tokens,
        more_workers=more(run.spec.load, client.workers or 1 if client else 1, cores),
    )
    told = [finding for finding in witness.told(run.findings) if finding.slug not in JUDGED]
    return replace(run, summary=summary, findings=[*judged, *told], verdict=verdict, definitions=DEFINITIONS)


def _with_the_unrecorded(summary: Summary, before: Summary) -> Summary:
    """The server's own metrics and its machine; what its tokens drew, where they and the window are what they were."""
    same = (summary.window, summary.throughput) == (before.window, before.throughput)
    return replace(
        summary,
        server={**before.server, **summary.server},
        host=before.host,
        efficiency=before.efficiency if same else summary.efficiency,
    )
