"""One load on one load process and on two: what an event costs, and whether the merged percentiles are the records'.

On two cores the two processes either share the client's core, and the server has the other for itself, or may use
both: what the server got of it shows in its lateness. Staggered streams are the worst case for the cost of an event:
the fewer a process has, the fewer of them share a wake-up. So half of that load on one process stands beside it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence, Set
from typing import NamedTuple

from . import rig, truth
from .result import Row, exact, judged, shown
from .tool import Load, ToolRun, measure

AT_ONCE = Load(streams=128, requests=1024, tokens=100)
STAGGERED = Load(streams=128, requests=1024, tokens=100, spread_ms=500)
HALF = Load(streams=64, requests=512, tokens=100, spread_ms=500)
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


class Shared(NamedTuple):
    """One run and how late the server was in it, p99 in ms."""

    name: str
    load: Load
    run: ToolRun
    late_ms: float

    @property
    def us_per_event(self) -> float:
        """CPU of all load processes per event."""
        return self.run.worker_cpu_ns / 1000 / max(1, sum(len(request.frames) for request in self.run.seen))


def workers() -> list[Row]:
    """One process, two on the client's core, two on any core; staggered and at once."""
    any_core = os.sched_getaffinity(0)
    half = _run("half of the staggered load, 1 worker", HALF, 1)
    rows = [shown(f"{half.name}: CPU per event", half.us_per_event, unit="us", note=_late(half))]
    for kind, load in (("at once", AT_ONCE), ("staggered", STAGGERED)):
        alone = _run(f"{kind}, 1 worker", load, 1)
        pairs = [
            _run(f"{kind}, 2 workers, one core", load, 2),
            _run(f"{kind}, 2 workers, two cores", load, 2, any_core),
        ]
        rows += [shown(f"{alone.name}: CPU per event", alone.us_per_event, unit="us", note=_late(alone))]
        rows += [_against(pair, alone) for pair in pairs]
        rows += [exact(f"{one.name}: percentiles that differ from the records'", _wrong(one), []) for one in pairs]
    return rows


def _run(name: str, load: Load, count: int, cores: Set[int] = frozenset({rig.CLIENT_CORE})) -> Shared:
    with rig.scratch() as folder:
        with rig.truth_server(folder) as server:
            run = measure(server.url, load, folder, ("--workers", str(count)), cores=cores)
        errors = truth.errors(run.seen, truth.read_lines(server.log))
    return Shared(name, load, run, truth.quantile(errors.server_late, 0.99))


def _against(pair: Shared, alone: Shared) -> Row:
    over = (pair.us_per_event / alone.us_per_event - 1) * 100
    note = f"{pair.us_per_event:.1f} us; {_late(pair)}"
    return judged(f"{pair.name}: CPU per event over that of one", over, absolute=10, unit="%", note=note)


def _late(shared: Shared) -> str:
    return f"server p99 {shared.late_ms:.2f} ms late"


def _wrong(shared: Shared) -> list[str]:
    """Percentiles of the summary that are not those of all records of all processes, to a ns."""
    run = shared.run
    told = run.summary["latency_ms"]
    values: dict[str, Sequence[float]] = {
        "ttft": [(one.first_token_ns - one.sent_ns) / 1e6 for one in run.seen if one.first_token_ns],
        "e2e": [(one.end_ns - one.sent_ns) / 1e6 for one in run.seen if one.end_ns],
        "tpot": [one.tpot_ms for one in run.seen if one.tpot_ms is not None],
    }
    return [
        f"{name} {stat}"
        for name, of in values.items()
        for stat, share in QUANTILES.items()
        if len(of) != shared.load.requests or abs(told[name][stat] - truth.quantile(of, share)) > 1e-6
    ]
