"""The search of `nilo sweep`: the greatest load under an SLO, against an exhaustive grid on the same engine.

Twenty mock engines drawn by seed: some queue for a free slot, all decode more slowly the more they serve; fifteen in a
closed loop, five at Poisson rates. Each is asked twice: searched, then level by level, a tenth apart.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from . import rig
from .result import Row, judged, shown

ENGINES = 20
OPEN_FROM = 15
MOST = 64
MOST_EMBEDDED = 16
TOKENS = ("--input-tokens", "16", "--output-tokens", "8")
QUICK = (*TOKENS, "--no-probe", "--warmup", "500ms", "--duration", "2s")
OPEN = (*TOKENS, "--no-probe", "--warmup", "1s", "--duration", "6s")
EMBEDDED = ("--input-tokens", "64", "--output-tokens", "16", "--warmup", "3s", "--duration", "10s")


class Engine(NamedTuple):
    """One engine, the SLO it is held to and the loads it is tried at."""

    name: str
    mock: tuple[str, ...]
    slo: str
    load: tuple[str, ...]
    grid: tuple[float, ...]


class Found(NamedTuple):
    """What one sweep said: the greatest load, None where none kept the SLO; how many levels it took."""

    load: float | None
    levels: int


def border() -> list[Row]:
    """All of them."""
    return _of([_drawn(seed) for seed in range(ENGINES)])


def quick_border() -> list[Row]:
    """One of each kind."""
    return _of([_drawn(0), _drawn(OPEN_FROM)])


def embedded() -> list[Row]:
    """The embedded engine, held to six times the TPOT it has alone."""
    with rig.scratch() as folder:
        alone = _sweep(folder, "embedded", (*EMBEDDED, "--levels", "1"))
        limit_ms = 6 * alone["runs"][0]["latency_ms"]["tpot"]["p50"]
        load = (*EMBEDDED, "--slo", f"tpot_p95<={limit_ms:.3g}ms")
        grid = tuple(map(float, range(1, MOST_EMBEDDED + 1)))
        searched = _found(_sweep(folder, "embedded", (*load, "--most", str(MOST_EMBEDDED))))
        listed = _found(_sweep(folder, "embedded", (*load, "--levels", _listed(grid))))
    says = f"grid says {listed.load}, {searched.levels} levels against {listed.levels}; {load[-1]}"
    return [shown("embedded engine: greatest load", searched.load, unit="in flight", note=says)]


def _of(engines: Sequence[Engine]) -> list[Row]:
    rows, off, shares = [], [], []
    for engine in engines:
        searched, listed = _both(engine)
        off.append(_off_percent(searched.load, listed.load))
        shares.append(searched.levels / listed.levels)
        says = f"grid says {listed.load}, {searched.levels} levels against {listed.levels}; {engine.slo}"
        rows.append(shown(engine.name, searched.load, unit="", note=says))
        print(f"  {engine.name}: {searched.load}, {says}", flush=True)
    within = sum(one <= 10 for one in off)
    all_within = Row("engines within 10 % of the grid", f"{len(off)}", within, None, "", within == len(off))
    return [
        *rows,
        all_within,
        judged("greatest distance from the grid", max(off), absolute=10, unit="%"),
        judged("greatest share of the grid's levels", max(shares), absolute=0.5, unit=""),
        shown("levels of all searches against all grids", sum(shares) / len(shares), unit=""),
    ]


def _drawn(seed: int) -> Engine:
    draw = Random(seed)
    ttft_ms, gap_ms = draw.uniform(20, 60), draw.uniform(6, 15)
    grows_ms = gap_ms * draw.uniform(0.02, 0.15)
    slots = draw.choice([0, draw.randint(3, 40)])
    ttft_limit, tpot_limit = ttft_ms * draw.uniform(1.5, 3), gap_ms * draw.uniform(1.3, 3)
    mock = ("--ttft", f"{ttft_ms:.1f}ms", "--gap", f"{gap_ms:.1f}ms", "--gap-per-stream", f"{grows_ms:.2f}ms")
    opened = seed >= OPEN_FROM
    slo = f"ttft_p95<={ttft_limit:.0f}ms,tpot_p95<={tpot_limit:.1f}ms"
    kind = "Poisson" if opened else "closed loop"
    return Engine(
        f"engine {seed}, {kind}, {slots or 'no'} slots",
        (*mock, "--slots", str(slots), "--seed", str(seed)),
        slo,
        (*OPEN, "--rate", "4") if opened else QUICK,
        _rates() if opened else _counts(),
    )


def _counts() -> tuple[float, ...]:
    """1, 2, 3 ... each at most a tenth above the one before, where whole numbers allow it."""
    levels = [1.0]
    while levels[-1] < MOST:
        levels.append(float(min(MOST, max(levels[-1] + 1, int(levels[-1] * 1.1)))))
    return tuple(levels)


def _rates() -> tuple[float, ...]:
    levels = [4.0]
    while levels[-1] < MOST:
        levels.append(float(f"{min(MOST, levels[-1] * 1.1):.3g}"))
    return tuple(levels)


def _both(engine: Engine) -> tuple[Found, Found]:
    with rig.scratch() as folder, _mock(engine.mock) as url:
        load = (*engine.load, "--slo", engine.slo)
        searched = _sweep(folder, url, (*load, "--most", str(MOST)))
        listed = _sweep(folder, url, (*load, "--levels", _listed(engine.grid)))
    return _found(searched), _found(listed)


@contextlib.contextmanager
def _mock(options: Sequence[str]) -> Iterator[str]:
    """The URL of a mock engine that lives as long as the block."""
    command = [sys.executable, "-m", "nilometer", "mock", *options, "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().decode().strip()
        finally:
            process.terminate()


def _sweep(folder: Path, target: str, options: Sequence[str]) -> dict[str, Any]:
    command = [sys.executable, "-m", "nilometer", "sweep", target, "--no-archive", "--quiet", "--json", *options]
    done = subprocess.run(command, capture_output=True, env=rig.client_environment(folder), check=False)
    if done.returncode not in (0, 4):
        raise rig.RigError(done.stderr.decode()[-500:])
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def _found(told: dict[str, Any]) -> Found:
    greatest = told["greatest_load"]
    return Found(None if greatest is None else greatest["level"], len(told["runs"]))


def _listed(grid: Sequence[float]) -> str:
    return ",".join(f"{level:g}" for level in grid)


def _off_percent(load: float | None, truth: float | None) -> float:
    if load is None or truth is None:
        return 0.0 if load is truth else 100.0
    return abs(load / truth - 1) * 100
