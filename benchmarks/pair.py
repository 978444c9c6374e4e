"""Runs floor and tool back to back against the same scripted server and joins both with its log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from . import floors, rig, truth
from .tool import Load, ToolRun, measure


@dataclass
class Pair:
    """Both sides of one load."""

    load: Load
    floor: truth.Errors
    tool: truth.Errors
    floor_run: floors.FloorRun
    tool_run: ToolRun
    bare_run: floors.FloorRun | None = None

    @property
    def tool_us_per_event(self) -> float:
        """CPU of the load process per event, parsing included."""
        return self.tool_run.worker_cpu_ns / 1000 / max(1, self.tool.events)

    @property
    def late(self) -> str:
        """The server's own lateness in the tool's run, for the note."""
        late = truth.quantile(self.tool.server_late, 0.99) if self.tool.server_late else 0.0
        return f"server p99 {late:.2f} ms late" if late > 1 else ""


def run(load: Load, script: Mapping[str, float] = rig.PLAIN, *, bare: bool = False, hogs: int = 0) -> Pair:
    """Floor first, then the bare loop where asked, then the tool; hogs beside the tool only: the floor is the machine's
    own."""
    with rig.scratch() as folder:
        with rig.truth_server(folder, script) as server:
            floor_run = floors.drain(server.port, load, folder)
        floor_errors = truth.errors(floor_run.seen, truth.read_lines(server.log))
        bare_run = None
        if bare:
            with rig.truth_server(folder, script, log=False) as server:
                bare_run = floors.bare(server.port, load, folder)
        with rig.truth_server(folder, script) as server, rig.hogs(hogs):
            tool_run = measure(server.url, load, folder)
        lines = truth.read_lines(server.log)
    return Pair(load, floor_errors, truth.errors(tool_run.seen, lines), floor_run, tool_run, bare_run)


def q(values: Sequence[float], share: float) -> float:
    """Quantile of errors in ms."""
    return truth.quantile(values, share)
