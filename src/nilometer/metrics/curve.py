"""The load curve: what each load of a sweep says of the service, where it bends, and the greatest that keeps the SLO.

A level is requests in flight (closed loop) or requests per second (open loop).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from nilometer.core.run import Run
from nilometer.core.summary import Summary

from . import slo
from .slo import Bound, Held

PLATEAU_GAIN = 0.2
"""Throughput that grows by less when the load doubles has nearly reached its limit: half of a fifth is noise."""
BROKEN = ("errors_over_limit", "no_ok_requests", "oversaturated")
"""Findings that the service did not bear the load at all."""
_NO_CONNECTION = ("connect", "tls", "timeout_connect")
"""Errors of requests that never had a connection."""


class Rung(NamedTuple):
    """One load and how the service bore it."""

    level: float
    met: bool | None
    """Whether every bound was met; None where that could not be measured."""
    worst: float | None
    """The largest of measured / limit over the bounds on latencies and errors: above 1 = missed."""
    throughput: float | None
    """Output tokens per second; requests per second where tokens are not known."""
    broken: bool = False
    """Whether the service did not bear the load at all."""


class Greatest(NamedTuple):
    """The greatest load that was seen to keep the SLO, `lo`, and the smallest above it that was seen to break it."""

    level: float
    lo: float
    hi: float | None


def unconnected(run: Run) -> int:
    """How many requests of the whole run never had a connection, TLS included."""
    return sum(run.summary.run_requests.errors.get(kind, 0) for kind in _NO_CONNECTION)


def out_of_reach(run: Run) -> bool:
    """Whether the target was not there, or was there no longer: no request ever had a connection, or the run was
    stopped for it."""
    return run.phases.stopped_by == "target_lost" or 0 < (run.summary.run_requests.started or 0) == unconnected(run)


def finished(run: Run) -> bool:
    """Whether the load was held until its end, or until the service gave way to it. What was cut off by the user, with
    its target or with a worker of ours says nothing of the service under that load."""
    return not (run.phases.interrupted or run.health.death is not None or out_of_reach(run))


def rung_of(level: float, summary: Summary, bounds: Sequence[Bound], *, broken: bool = False) -> Rung:
    """How a load was borne. `broken`: the service could not bear it at all (over-saturated, too many errors)."""
    held = slo.met(bounds, summary)
    answers = [one.met for one in held]
    met = False if broken or False in answers else None if None in answers else True
    if summary.generator.verdict == "limited":
        met = None  # what was measured is the generator's
    made = summary.throughput
    known = made.requests_per_s if made.output_tokens_per_s is None else made.output_tokens_per_s
    return Rung(level, met, _worst(held), known, broken)


def rungs_of(runs: Iterable[Run]) -> list[Rung]:
    """The rungs of a group's runs, in their order. A run without a level is none; an unfinished one tells nothing."""
    return [
        Rung(float(run.level), None, None, None)
        if not finished(run)
        else rung_of(
            float(run.level),
            run.summary,
            slo.parse(run.spec.slo) if run.spec.slo else [],
            broken=any(finding.slug in BROKEN for finding in run.findings),
        )
        for run in runs
        if run.level is not None
    ]


def greatest(rungs: Iterable[Rung]) -> Greatest | None:
    """The greatest load below the smallest that broke the SLO; None where none kept it."""
    ordered = sorted(rungs)
    hi = next((rung.level for rung in ordered if rung.met is False), None)
    kept = [rung.level for rung in ordered if rung.met and (hi is None or rung.level < hi)]
    return Greatest(kept[-1], kept[-1], hi) if kept else None


def knee(rungs: Iterable[Rung]) -> float | None:
    """Where the two asymptotes of a closed loop cross: N* = X_max / X(1); None where the plateau was not reached.

    X(N) <= min(N X(1), X_max) (Denning and Buzen, The Operational Analysis of Queueing Network Models, 1978). X(1) is
    taken from the lowest load, by its share. Only the loads that were `borne` count.
    """
    known = borne(rungs)
    if len(known) < 2 or gain(known[-2], known[-1]) >= PLATEAU_GAIN:
        return None
    level, throughput = known[0]
    return max(made for _, made in known) / (throughput / level)


def borne(rungs: Iterable[Rung]) -> list[tuple[float, float]]:
    """Level and throughput, lowest first, where the throughput is the service's: nothing of a load that is unfinished,
    that the generator limited, or that the service broke down under."""
    told = (rung for rung in rungs if rung.met is not None and not rung.broken)
    return sorted((rung.level, rung.throughput) for rung in told if rung.throughput)


def gain(before: tuple[float, float], after: tuple[float, float]) -> float:
    """By what share the throughput grows when the load doubles, between two (level, throughput)."""
    return float((after[1] / before[1]) ** (1 / math.log2(after[0] / before[0])) - 1)


def _worst(held: Sequence[Held]) -> float | None:
    shares = [_share(one) for one in held if one.value is not None]
    return max(shares, default=None)


def _share(held: Held) -> float:
    """Measured over limit, or limit over measured for a bound from below: above 1 = missed."""
    value, limit = held.value or 0.0, held.bound.limit
    if held.bound.unit == "per_s":
        value, limit = limit, value
    return value / limit if limit else math.inf if value else 0.0
