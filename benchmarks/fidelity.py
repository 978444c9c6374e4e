"""How true the figures are at low load and in a burst: eight streams in several scenarios, 64 in lockstep."""

from __future__ import annotations

from . import pair
from .pair import Pair, q
from .result import Row, judged, shown
from .tool import Load

SCENARIOS: dict[str, tuple[Load, dict[str, float]]] = {
    "role frame first": (Load(8, 16, 40), {"role_us": 150_000}),
    "4 tokens a frame": (Load(8, 16, 40), {"per_frame": 4}),
    "20 reasoning tokens": (Load(8, 16, 40), {"reasoning": 20}),
    "8 slots, 32 streams": (Load(32, 64, 20), {"slots": 8}),
}


def eight() -> list[Row]:
    """8 streams, 40 requests of 40 tokens, one frame a token, 20 ms apart."""
    both = pair.run(Load(8, 40, 40))
    return [*_start(both, "8 streams"), *_pace(both, "8 streams"), tokens_per_s(both, "8 streams")]


def scenarios() -> list[Row]:
    """The same with a role frame 150 ms early, 4 tokens a frame, reasoning first, 8 slots for 32 streams."""
    rows = []
    for name, (load, script) in SCENARIOS.items():
        both = pair.run(load, script)
        rows += [*_start(both, name), *_pace(both, name)]
    return rows


def burst() -> list[Row]:
    """64 streams written at the same instant, 300 steps."""
    both = pair.run(Load(64, 64, 300), {"aligned": 1})
    return [
        judged(
            "burst: TTFT p95",
            q(both.tool.ttft, 0.95),
            q(both.floor.ttft, 0.95),
            absolute=0.4,
            over_floor=0.3,
            note=both.late,
        ),
        judged("burst: E2E p95", q(both.tool.e2e, 0.95), q(both.floor.e2e, 0.95), absolute=0.5, over_floor=0.3),
        judged("burst: frame gap p99", q(both.tool.gap, 0.99), q(both.floor.gap, 0.99), absolute=0.1),
        tokens_per_s(both, "burst"),
    ]


def _start(both: Pair, name: str) -> list[Row]:
    return [
        judged(f"{name}: TTFT p50", q(both.tool.ttft, 0.5), q(both.floor.ttft, 0.5), absolute=0.3, note=both.late),
        judged(f"{name}: TTFT p95", q(both.tool.ttft, 0.95), q(both.floor.ttft, 0.95), absolute=0.4),
        shown(
            f"{name}: TTFT p95, server's reading left out",
            q(both.tool.ttft_from_arrival, 0.95),
            q(both.floor.ttft_from_arrival, 0.95),
        ),
    ]


def _pace(both: Pair, name: str) -> list[Row]:
    return [judged(f"{name}: TPOT p95", q([abs(error) for error in both.tool.tpot], 0.95), absolute=0.05)]


def tokens_per_s(both: Pair, name: str) -> Row:
    """What the tool says against the server's log, in percent."""
    said = both.tool_run.summary["throughput"]["output_tokens_per_s"]
    if said is None:
        return Row(f"{name}: tokens/s", "<= 0.1", None, None, "%", False, "the tool says none")
    off = abs(said / both.tool.tokens_per_s - 1) * 100
    return judged(f"{name}: tokens/s off", off, absolute=0.1, unit="%")
