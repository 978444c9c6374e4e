"""Runs the two floors: the C drain (nothing but reads and stamps) and the bare httptools + uvloop loop."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from . import rig, truth
from .tool import Load


@dataclass
class FloorRun:
    """What a floor saw and cost."""

    seen: list[truth.Seen]
    cpu_ns: int
    events: int

    @property
    def cpu_us_per_event(self) -> float:
        """CPU of the loop per event."""
        return self.cpu_ns / 1000 / max(1, self.events)


def drain(port: int, load: Load, folder: Path) -> FloorRun:
    """The C client."""
    return _floor([str(rig.BIN / "drain_client")], port, load, folder)


def bare(port: int, load: Load, folder: Path) -> FloorRun:
    """The bare loop in Python."""
    return _floor([sys.executable, "-m", "benchmarks.bare_client"], port, load, folder)


def _floor(program: list[str], port: int, load: Load, folder: Path) -> FloorRun:
    out = folder / "floor.jsonl"
    numbers = (port, load.streams, load.requests, load.tokens, round(load.spread_ms * 1000))
    command = [*program, *map(str, numbers), str(out)]
    with rig.start_client(command, stdout=subprocess.PIPE, cwd=rig.HERE.parent) as process:
        said = process.communicate()[0]
    if process.returncode:
        raise rig.RigError(f"{program[-1]} ended with {process.returncode}")
    told = json.loads(said)
    return FloorRun(truth.seen_by_floor(truth.read_lines(out)), told["cpu_ns"], told["events"])
