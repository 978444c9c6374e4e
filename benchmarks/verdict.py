"""Whether the generator's verdict on itself is right: a ladder of streams, alone and with four busy neighbours."""

from __future__ import annotations

from . import pair
from .pair import Pair, q
from .result import Row
from .tool import Load

TOKENS = 150
WRONG_MS = 5.0
RIGHT_MS = 1.0


def ladder() -> list[Row]:
    """`limited` wherever the error exceeds the floor's by 5 ms, nowhere within 1 ms."""
    rows = []
    for streams in (64, 256, 1024):
        for hogs in (0, 4):
            rows.append(_row(pair.run(Load(streams, 2 * streams, TOKENS), hogs=hogs), hogs))
    return rows


def _row(both: Pair, hogs: int) -> Row:
    excess = {name: mine - floor for name, (mine, floor) in _figures(both).items()}
    worst = max(excess, key=lambda name: excess[name])
    said = both.tool_run.generator
    expected = "limited" if excess[worst] > WRONG_MS else "fit" if excess[worst] <= RIGHT_MS else "either"
    shared = both.tool.shared_reads / max(1, both.tool.events)
    told = ", ".join(f"{name} {value:+.2f}" for name, value in excess.items())
    return Row(
        f"{both.load.streams} at once, {hogs} hogs: the generator says",
        expected,
        said,
        None,
        "",
        None if expected == "either" else said == expected,
        f"excess over the floor, ms: {told}; shared reads {shared:.2%}",
    )


def _figures(both: Pair) -> dict[str, tuple[float, float]]:
    """(tool, floor) of what a user would read off: the start, the pace, and how well the closed loop was kept."""
    return {
        "TTFT p99": (q(both.tool.ttft, 0.99), q(both.floor.ttft, 0.99)),
        "frame gap p99": (q(both.tool.gap, 0.99), q(both.floor.gap, 0.99)),
        "refill p50": (q(both.tool.refill, 0.5), q(both.floor.refill, 0.5)),
    }
