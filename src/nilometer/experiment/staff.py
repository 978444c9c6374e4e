"""How many load processes a load needs, and what of it will not come about: said before it starts. Pure.

An event is a frame that is read, or as much work. What one process can take is measured by `calibrate`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from nilometer.core.errors import Param
from nilometer.core.finding import Finding
from nilometer.core.spec import Load
from nilometer.workload import arrivals

EVENTS_PER_REQUEST = 15
"""Sending a request and taking in its answer costs as much as so many frames (measured: 165 us beside 11 us)."""
USABLE_SHARE = 0.5
"""Of what one process takes at full load: the null server's frames come many to a read, a model's one by one, and a
process that is always busy is late (measured: 51,200 of 113,000 a second are borne for minutes)."""
SURE_EVENTS_PER_S = 4_000.0
"""Any machine bears so many in one process: there nothing need be measured first."""


def events_per_s(
    load: Load,
    output_tokens: float,
    mean_e2e_s: float | None,
    recorded_s: Sequence[float] | None,
    *,
    per_arrival: float = 1.0,
) -> float | None:
    """What the load asks of the generator in its busiest second; None for a closed loop of unknown E2E.

    `output_tokens` of a request, as they are streamed; a closed loop is taken at the pace of the probe, alone on the
    service: under load it asks for less. `per_arrival`: requests of what a rate starts, a conversation.
    """
    if recorded_s is not None:
        requests: float = max(Counter(map(int, recorded_s)).values(), default=0)
    elif load.is_open:
        requests = arrivals.peak_rate_per_s(load.arrivals, load.rate_per_s, load.duration_s) * per_arrival
    elif mean_e2e_s:
        requests = (load.concurrency or 1) / mean_e2e_s
    else:
        return None
    return requests * (EVENTS_PER_REQUEST + output_tokens)


def staff(load: Load, asked_per_s: float, one_per_s: float | None, cores: int) -> tuple[int, list[Finding]]:
    """The number of load processes, and what is to be said of it: `workers_chosen`, `generator_too_slow`.

    `one_per_s` is what one process takes at full load, None where that is not known. Unless the load says how many,
    one processor is left for all else. Only of an open load is it said that it cannot come about: a closed loop waits
    for the service.
    """
    each = None if one_per_s is None else one_per_s * USABLE_SHARE
    wanted = 1 if not each else max(math.ceil(asked_per_s / each), 1)
    workers = load.workers or max(int(min(wanted, cores - 1, most(load))), 1)
    told: dict[str, Param] = {"workers": workers, "asked": asked_per_s, "each": each, "cores": cores}
    found = []
    if load.workers is None and workers > 1:
        found.append(Finding(slug="workers_chosen", kind="note", severity="low", params=told))
    if load.is_open and wanted > workers:
        found.append(Finding(slug="generator_too_slow", kind="note", severity="medium", params=told))
    return workers, found


def more(load: Load, workers: int, cores: int) -> int | None:
    """Twice as many load processes, or as many as there is work and, but for one, processors for; None if not more."""
    n = int(min(2 * workers, cores - 1, most(load)))
    return n if n > workers else None


def most(load: Load) -> float:
    """More processes than this have nothing to do."""
    return min((n for n in (load.concurrency, load.requests) if n is not None), default=math.inf)


def trace_end_s(recorded_s: Sequence[float]) -> float:
    """Where the measured stretch of a replay ends at the latest: so soon after its last request that this is sent."""
    return math.ceil(recorded_s[-1] * 100 + 1) / 100


def trace_cut(load: Load, recorded_s: Sequence[float] | None) -> list[Finding]:
    """`trace_cut` where a replay ends before its trace does, `trace_short` where the trace ends before the load."""
    asked_s = load.warmup_s + load.duration_s
    if not recorded_s:
        return []
    told: dict[str, Param] = {"trace_s": recorded_s[-1], "asked_s": asked_s}
    if trace_end_s(recorded_s) < asked_s:
        return [Finding(slug="trace_short", kind="note", severity="low", params=told)]
    n = sum(1 for due_s in recorded_s if due_s >= asked_s)
    if not n:
        return []
    told |= {"n": n, "of": len(recorded_s)}
    return [Finding(slug="trace_cut", kind="note", severity="low", params=told)]
