"""One load on one load process and on two: what an event costs, and whether the merged percentiles are the records'.

Staggered streams, the worst case for the cost of an event. On two cores the two processes either share the client's
core, and the server has the other for itself, or may use both: what the server got of it shows in its lateness.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from . import rig, truth
from .result import Row, exact, judged, shown
from .tool import Load, ToolRun, measure

LOAD = Load(streams=128, requests=1024, tokens=100, spread_ms=500)
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


class Shared(NamedTuple):
    """One run and how late the server was in it, p99 in ms."""

    name: str
    run: ToolRun
    late_ms: float

    @property
    def us_per_event(self) -> float:
        """CPU of all load processes per event."""
        return self.run.worker_cpu_ns / 1000 / max(1, sum(len(request.frames) for request in self.run.seen))


def workers() -> list[Row]:
    """One process, two on the client's core, two on any core."""
    alone = _run("1 worker", 1, {rig.CLIENT_CORE})
    pairs = [
        _run("2 workers, one core", 2, {rig.CLIENT_CORE}),
        _run("2 workers, two cores", 2, os.sched_getaffinity(0)),
    ]
    return [
        shown(f"{alone.name}: CPU per event", alone.us_per_event, unit="us", note=_late(alone)),
        *(
            judged(
                f"{pair.name}: CPU per event over that of one",
                (pair.us_per_event / alone.us_per_event - 1) * 100,
                absolute=10,
                unit="%",
                note=f"{pair.us_per_event:.1f} us; {_late(pair)}",
            )
            for pair in pairs
        ),
        *(
            exact(f"{one.name}: percentiles that differ from the records'", _wrong(one.run), [])
            for one in (alone, *pairs)
        ),
    ]


def _run(name: str, count: int, cores: set[int]) -> Shared:
    with rig.scratch() as folder:
        with rig.truth_server(folder) as server:
            run = measure(server.url, LOAD, folder, ("--workers", str(count)), cores=cores)
        errors = truth.errors(run.seen, truth.read_lines(server.log))
    return Shared(name, run, truth.quantile(errors.server_late, 0.99))


def _late(shared: Shared) -> str:
    return f"server p99 {shared.late_ms:.2f} ms late"


def _wrong(run: ToolRun) -> list[str]:
    """Percentiles of the summary that are not those of all records of all processes, to a ns."""
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
        if len(of) != LOAD.requests or abs(told[name][stat] - truth.quantile(of, share)) > 1e-6
    ]
