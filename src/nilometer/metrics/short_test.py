"""What a short test from a cold start would have said of a run: the trap of short tests, shown on its own data."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from nilometer.core.clock import NS_PER_S
from nilometer.core.record import Record
from nilometer.core.run import Run
from nilometer.core.summary import Summary

from .summary import summarise

SHORT_S = 30


def short_test(run: Run, records: Iterable[Record]) -> Summary | None:
    """The Summary of the first 30 s of the run, its warm-up not left out; None where the run was hardly longer.

    Records as they were filed. Requests that began in these 30 s count with all of their latency: a real test of 30 s
    would have cut some of them, and been further off.
    """
    phases = run.phases
    end_ns = phases.start_ns + SHORT_S * NS_PER_S
    if phases.stop_ns < end_ns + SHORT_S * NS_PER_S:
        return None
    load = replace(run.spec.load, warmup_s=0.0, duration_s=float(SHORT_S), requests=None, window=f"0..{SHORT_S}")
    cold = replace(phases, measured_ns=phases.start_ns, stop_ns=end_ns)
    return summarise(records, replace(run.spec, load=load), cold, run.health)
