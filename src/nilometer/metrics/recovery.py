"""How long a service takes to be itself again after a spike of load. Pure.

It is itself again when the requests of two stretches in a row have a median TTFT (E2E without streaming) that is no
higher than the p95 of those before the spike, none of them failed, and the first of the two stretches begins there.
A request that failed has no latency: quick refusals make no peak low, slow ones no base high.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nilometer.core.clock import NS_PER_MS, NS_PER_S
from nilometer.core.run import Phases
from nilometer.core.summary import Recovery

from .quantiles import Floats, percentile
from .table import NONE, Mask, Table
from .window import Span

REQUESTS_A_STRETCH = 5
"""A stretch is a second, or so long that this many requests are expected in it."""
IN_A_ROW = 2


class Spike(NamedTuple):
    """A base rate (requests/s) for so long, more of it for as long again, then the base rate."""

    base_per_s: float
    length_s: float


def recovery(table: Table, spike: Spike, phases: Phases) -> Recovery | None:
    """None where the run did not see the spike's end, or nothing was measured before it."""
    rises_ns = phases.measured_ns + round(spike.length_s * NS_PER_S)
    falls_ns = rises_ns + round(spike.length_s * NS_PER_S)
    metric = "ttft" if (table.of("ok") & (table.frames > 0)).any() else "e2e"
    latency_ns = table.latency(metric)
    base_ns = _of_ok(table, latency_ns, Span(phases.measured_ns, rises_ns), 95)
    if base_ns is None or spike.base_per_s <= 0 or phases.stop_ns <= falls_ns:
        return None
    grain_ns = round(max(1.0, REQUESTS_A_STRETCH / spike.base_per_s) * NS_PER_S)
    peak_ns = _of_ok(table, latency_ns, Span(rises_ns, falls_ns), 95)
    well = [
        _is_well(table, latency_ns, Span(start, start + grain_ns), base_ns)
        for start in range(falls_ns, phases.stop_ns - grain_ns + 1, grain_ns)
    ]
    first = next((i for i in range(len(well) - IN_A_ROW + 1) if all(well[i : i + IN_A_ROW])), None)
    return Recovery(
        metric=metric,
        base_p95_ms=base_ns / NS_PER_MS,
        peak_p95_ms=None if peak_ns is None else peak_ns / NS_PER_MS,
        grain_s=grain_ns / NS_PER_S,
        recovered_after_s=None if first is None else first * grain_ns / NS_PER_S,
        watched_s=(phases.stop_ns - falls_ns) / NS_PER_S,
    )


def _is_well(table: Table, latency_ns: Floats, span: Span, base_ns: float) -> bool:
    middle_ns = _of_ok(table, latency_ns, span, 50)
    return middle_ns is not None and middle_ns <= base_ns and bool(table.of("ok")[_starting(table, span)].all())


def _starting(table: Table, span: Span) -> Mask:
    start = table.start_ns
    mask: Mask = span.holds(start) & (start != NONE)
    return mask


def _of_ok(table: Table, latency_ns: Floats, span: Span, percent: float) -> float | None:
    """A percentile of the latencies of those that start in a stretch and are answered."""
    values: Floats = latency_ns[_starting(table, span) & table.of("ok")]
    return percentile(np.sort(values[~np.isnan(values)]), percent)
