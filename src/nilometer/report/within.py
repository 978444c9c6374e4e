"""How sure a run is of its own percentiles: intervals over blocks of its window, where that is long enough."""

from __future__ import annotations

import math

from nilometer.compare.within import Within, within
from nilometer.core.clock import NS_PER_MS, NS_PER_S
from nilometer.core.run import Run
from nilometer.core.summary import Distribution
from nilometer.metrics.table import Table

from .charts import stretch

_NAMES = ("ttft", "tpot", "e2e")
_PERCENTS = (50, 95)


def intervals(run: Run, table: Table) -> dict[str, Within]:
    """`ttft_p95` -> its interval in ms; missing where the window is too short for it or holds too few requests."""
    window, e2e = run.summary.window, run.summary.latency_ms.get("e2e", Distribution()).p50
    measured = stretch(run, table).measured
    at_s = ((table.start_ns[measured] - run.phases.measured_ns) / NS_PER_S).tolist()
    found = {}
    for name in _NAMES:
        latency_ms = (table.latency(name)[measured] / NS_PER_MS).tolist()
        series = [(at, value) for at, value in zip(at_s, latency_ms, strict=True) if not math.isnan(value)]
        for percent in _PERCENTS:
            one = within(
                series,
                (window.start_s, window.start_s + window.length_s),
                percent,
                None if e2e is None else e2e / 1_000,
            )
            if one is not None:
                found[f"{name}_p{percent}"] = one
    return found
