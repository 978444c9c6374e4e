"""From the journals of a run to the Run: borders, health, figures, findings. For a live run and for a lost one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from nilometer.compare.condition import condition_hash
from nilometer.core.clock import NS_PER_S
from nilometer.core.run import Damage, Draw, Health, Phases, Run
from nilometer.core.spec import Load, Spec, from_tree
from nilometer.core.summary import Memory
from nilometer.load import journal
from nilometer.load.health import merged
from nilometer.load.journal import Ending, Header
from nilometer.metrics.recovery import Spike
from nilometer.metrics.summary import summarise
from nilometer.metrics.validity import judge
from nilometer.telemetry.machine import read_client
from nilometer.workload.arrivals import plan

from .places import usable_count
from .server_side import NOT_SEEN, ServerSide, with_server
from .staff import more
from .unfound import Witness

KILLED = "killed"
"""The death of a worker that nobody saw die."""


def conclude(
    header: Header,
    journals: Sequence[Path],
    *,
    death: str = KILLED,
    gone: bool = False,
    memory: Memory | None = None,
    draw: Draw | None = None,
    side: ServerSide = NOT_SEEN,
) -> Run:
    """The Run that these journals tell. `death` is why a worker left no trailer; `gone`: at its end the target was.

    `memory`, `draw` and `side` are what was seen of the server meanwhile; nothing of a run that was cut off.
    """
    spec = from_tree(header.spec, "journal")
    phases, health = _ends(header, spec, journals, death)
    if gone and phases.stopped_by is None:
        phases = msgspec.structs.replace(phases, stopped_by="target_lost")
    witness = Witness(spec)
    records = witness.watch(journal.records(journals))
    summary = summarise(records, spec, phases, health, memory, draw, spike_of(spec.load))
    summary = with_server(summary, side, phases)
    template_tokens = header.environment.model.template_tokens
    verdict, judged = judge(
        summary,
        spec,
        phases,
        health,
        template_tokens=template_tokens,
        more_workers=more(spec.load, header.workers, usable_count(header.environment.machine.container_cpu_limit)),
    )
    known = {finding.slug for finding in judged}
    client = read_client(health.event_loop, header.workers)
    run = Run(
        id=header.run,
        spec=spec,
        environment=msgspec.structs.replace(header.environment, client=client),
        phases=phases,
        health=health,
        summary=summary,
        findings=[*judged, *(finding for finding in witness.told(header.findings) if finding.slug not in known)],
        verdict=verdict,
        tool_version=header.tool_version,
        group=header.group,
        role=header.role,
        level=header.level,
        order=header.order,
        parent=header.parent,
    )
    return msgspec.structs.replace(run, condition_hash=condition_hash(run))


def spike_of(load: Load) -> Spike | None:
    """The spike that the load is, if it is one."""
    stretches = plan(load.arrivals)
    if stretches is None or not load.arrivals.strip().startswith("spike"):
        return None
    return Spike(stretches[0].from_per_s, stretches[0].length_s)


def _ends(header: Header, spec: Spec, journals: Sequence[Path], death: str) -> tuple[Phases, Health]:
    """Borders and health from the trailers; where a worker left none, from what the journals tell."""
    endings = [journal.ending(path) for path in journals]
    damage = _damage(journals, endings)
    whole = [ending.trailer for ending in endings if ending.trailer is not None]
    if not whole:
        return _phases_without(header, spec, journals), Health(death=death, damage=damage)
    health = merged([trailer.health for trailer in whole])
    if len(whole) < len(endings):
        health = msgspec.structs.replace(health, death=death)
    return _span([trailer.phases for trailer in whole]), msgspec.structs.replace(health, damage=damage)


def _damage(journals: Sequence[Path], endings: Sequence[Ending]) -> tuple[Damage, ...]:
    """What was lost, journal by journal, under the name that each is kept by once the run is filed."""
    return tuple(
        Damage(file=str(journal.aside(path)), lost_bytes=ending.lost_bytes, gaps=ending.gaps)
        for path, ending in zip(journals, endings, strict=True)
        if ending.gaps
    )


def _phases_without(header: Header, spec: Spec, journals: Sequence[Path]) -> Phases:
    """Borders guessed from the first start and the last end; the warm-up's end by what was asked."""
    starts, ends = [], []
    for record in journal.records(journals):
        if record.start_ns is not None:
            starts.append(record.start_ns)
            ends.append(record.end_ns or record.start_ns)
    start, end = min(starts, default=0), max(ends, default=0)
    measured = start + round(spec.load.warmup_s * NS_PER_S)
    stop = end if spec.load.requests is not None else measured + round(spec.load.duration_s * NS_PER_S)
    return Phases(
        started_wall_ns=header.started_wall_ns,
        start_ns=start,
        measured_ns=min(measured, end),
        stop_ns=min(stop, end),
        end_ns=end,
        interrupted=True,
    )


def _span(phases: Sequence[Phases]) -> Phases:
    """The borders of all workers together."""
    return msgspec.structs.replace(
        phases[0],
        stop_ns=max(p.stop_ns for p in phases),
        end_ns=max(p.end_ns for p in phases),
        interrupted=any(p.interrupted for p in phases),
        stopped_by=next((p.stopped_by for p in phases if p.stopped_by), None),
        cut_at_drain_limit=any(p.cut_at_drain_limit for p in phases),
    )
