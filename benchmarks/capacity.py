"""How many streams one process carries, what an event costs and how soon a freed slot is refilled."""

from __future__ import annotations

from . import pair
from .fidelity import tokens_per_s
from .pair import Pair, q
from .result import Row, judged, shown
from .tool import Load

TOKENS = 150


def ladder_64() -> list[Row]:
    """64 streams at once, 150 tokens, two waves."""
    both = pair.run(Load(64, 128, TOKENS))
    name = "64 at once"
    return [
        judged(f"{name}: TTFT p99", q(both.tool.ttft, 0.99), q(both.floor.ttft, 0.99), over_floor=1, note=both.late),
        judged(f"{name}: frame gap p99", q(both.tool.gap, 0.99), q(both.floor.gap, 0.99), absolute=0.1),
        _refill(both, name, 1),
        tokens_per_s(both, name),
        *_verdict(both, name),
    ]


def ladder_256() -> list[Row]:
    """256 streams at once: 12,000 events/s; what an event costs."""
    both = pair.run(Load(256, 512, TOKENS), bare=True)
    name = "256 at once"
    return [
        judged(
            f"{name}: TTFT p95",
            q(both.tool.ttft, 0.95),
            q(both.floor.ttft, 0.95),
            absolute=2.5,
            over_floor=1,
            note=both.late,
        ),
        judged(f"{name}: TTFT p99", q(both.tool.ttft, 0.99), q(both.floor.ttft, 0.99), absolute=3, over_floor=1),
        judged(f"{name}: frame gap p99, kernel stamps", q(both.tool.gap, 0.99), q(both.floor.gap, 0.99), absolute=0.1),
        judged(
            f"{name}: frame gap p99, user stamps", q(both.tool.gap_user, 0.99), q(both.floor.gap_user, 0.99), absolute=1
        ),
        _refill(both, name, 1),
        tokens_per_s(both, name),
        *_cost(both, f"{name} (aligned)", 16),
        *_verdict(both, name),
    ]


def spread_256() -> list[Row]:
    """256 streams whose opening wave is spread over one gap and over 500 ms: staggered streams cost more."""
    one_gap = pair.run(Load(256, 512, TOKENS, spread_ms=20))
    staggered = pair.run(Load(256, 512, TOKENS, spread_ms=500), bare=True)
    return [
        shown("256 over 20 ms: TTFT p99", q(one_gap.tool.ttft, 0.99), q(one_gap.floor.ttft, 0.99), note=one_gap.late),
        shown(
            "256 over 500 ms: TTFT p99",
            q(staggered.tool.ttft, 0.99),
            q(staggered.floor.ttft, 0.99),
            note=staggered.late,
        ),
        *_cost(staggered, "256 over 500 ms (staggered)", 19),
        *_verdict(staggered, "256 over 500 ms"),
    ]


def ladder_1024() -> list[Row]:
    """1,024 streams, one process: at once, and with the wave spread over 500 ms."""
    at_once = pair.run(Load(1024, 2048, TOKENS))
    spread = pair.run(Load(1024, 2048, TOKENS, spread_ms=500))
    name, spread_name = "1,024 at once", "1,024 over 500 ms"
    return [
        judged(
            f"{name}: TTFT p99",
            q(at_once.tool.ttft, 0.99),
            q(at_once.floor.ttft, 0.99),
            over_floor=1,
            note=at_once.late,
        ),
        judged(f"{name}: frame gap p99", q(at_once.tool.gap, 0.99), q(at_once.floor.gap, 0.99), absolute=0.1),
        _refill(at_once, name, 3),
        tokens_per_s(at_once, name),
        *_verdict(at_once, name),
        judged(
            f"{spread_name}: TTFT p99",
            q(spread.tool.ttft, 0.99),
            q(spread.floor.ttft, 0.99),
            absolute=1,
            note=spread.late,
        ),
        judged(f"{spread_name}: frame gap p99", q(spread.tool.gap, 0.99), q(spread.floor.gap, 0.99), absolute=0.1),
        *_verdict(spread, spread_name),
    ]


def _refill(both: Pair, name: str, over_floor: float) -> Row:
    said = both.tool_run.summary["latency_ms"]["refill"]["p50"]
    note = "the tool says none" if said is None else f"the tool says {said:.3f}"
    return judged(
        f"{name}: refill p50", q(both.tool.refill, 0.5), q(both.floor.refill, 0.5), over_floor=over_floor, note=note
    )


def _cost(both: Pair, name: str, absolute_us: float) -> list[Row]:
    floor_us = both.floor_run.cpu_us_per_event
    bare_us = None if both.bare_run is None else both.bare_run.cpu_us_per_event
    tree_us = both.tool_run.tree_cpu_ns / 1000 / max(1, both.tool.events)
    note = f"with the parent process {tree_us:.1f}"
    return [
        judged(f"{name}: CPU per event", both.tool_us_per_event, floor_us, absolute=absolute_us, unit="us", note=note),
        judged(f"{name}: CPU per event against the floor", both.tool_us_per_event, floor_us, times_floor=2, unit="us"),
        shown(f"{name}: the bare httptools + uvloop loop", bare_us, floor_us, unit="us"),
    ]


def _verdict(both: Pair, name: str) -> list[Row]:
    shared = f"{both.tool.shared_reads} of {both.tool.events} events came in shared reads"
    return [shown(f"{name}: the generator says", both.tool_run.generator, unit="", note=shared)]
