"""Samples a server on this machine while a run goes on, off the load's own process: memory, time, power, its host."""

from __future__ import annotations

import threading
import time
from array import array

from nilometer.core.clock import NS_PER_S
from nilometer.core.run import Draw
from nilometer.core.summary import Memory
from nilometer.metrics.host_figures import UNSEEN, HostRow

from . import gpu, host, process

_EVERY_S = 0.5
_SPREAD_S = 0.1
_GOLDEN = 0.618034
"""Looks are spread by this much, without a period: what stops and goes ten times a second must not look still."""


class Sampler:
    """A thread that looks twice a second. Use as a context manager; ask `peaks`, `drawn` and `host` at the end."""

    def __init__(self, pid: int | None) -> None:
        self._pid = pid
        self._rss: int | None = None
        self._device: int | None = None
        self._cpu_s: dict[int, float] = {}
        self._rows = array("q"), array("q"), array("q")
        self._host = tuple(array("q") for _ in HostRow._fields)
        self._devices: int | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._reader = host.Reader(pid) if pid is not None and host.is_here() else None
        self._gpus = gpu.Devices() if pid is not None else None

    def __enter__(self) -> Sampler:
        if self._pid is not None:
            self._look()
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._gpus is not None:
            self._gpus.close()

    def _run(self) -> None:
        turn = 0
        while not self._over.wait(_EVERY_S + _SPREAD_S * ((turn * _GOLDEN) % 1 - 0.5)):
            turn += 1
            self._look()

    def _look(self) -> None:
        if self._gpus is not None:
            self._device = _larger(self._device, self._gpus.used_bytes())
        if self._reader is not None:
            if (row := self._reader.look()) is not None:
                self._take(row, self._reader.pids)
        elif self._pid is not None:
            self._rss = _larger(self._rss, process.tree_rss_bytes(self._pid))
            self.note(process.tree_cpu_s(self._pid))

    def _take(self, row: HostRow, pids: list[int]) -> None:
        self._rss = _larger(self._rss, row.rss)
        held = None if self._gpus is None else self._gpus.holding(pids)
        if held is not None:
            row = row._replace(**held.columns())
        self._draw(row.at, row.server_cpu, held)
        for column, value in zip(self._host, row, strict=True):
            column.append(value)

    def note(self, cpu_s: dict[int, float]) -> None:
        """A row of what was drawn so far, where the machine does not show itself; a child that has ended keeps what
        it took."""
        if not cpu_s:
            return
        self._cpu_s |= cpu_s
        held = None if self._gpus is None else self._gpus.holding(list(cpu_s))
        self._draw(time.monotonic_ns(), round(sum(self._cpu_s.values()) * NS_PER_S), held)

    def _draw(self, at_ns: int, cpu_ns: int, held: gpu.Held | None) -> None:
        at, cpu, power = self._rows
        at.append(at_ns)
        cpu.append(cpu_ns)
        if held is not None:
            self._devices = _larger(self._devices, held.devices)
            if held.power_mw is not None:
                power.append(held.power_mw)

    def drawn(self) -> Draw:
        """What was drawn, row by row."""
        at, cpu, power = self._rows
        whole = len(power) == len(at)
        return Draw(at=at.tobytes(), cpu=cpu.tobytes(), power=power.tobytes() if whole else b"", devices=self._devices)

    def host(self) -> dict[str, bytes]:
        """What was seen of the machine, as columns; none that never was."""
        named = zip(HostRow._fields, self._host, strict=True)
        return {name: column.tobytes() for name, column in named if any(value != UNSEEN for value in column)}

    def peaks(self) -> Memory:
        """The largest figures seen; None for what could not be seen."""
        sources = [name for name, value in (("process tree", self._rss), ("nvml", self._device)) if value is not None]
        return Memory(
            server_rss_peak_bytes=self._rss,
            device_used_peak_bytes=self._device,
            source=" + ".join(sources) or None,
        )


def _larger(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else max(a, b)
