"""Samples what a server draws while a run goes on, off the load's own process: peaks of memory, time, power."""

from __future__ import annotations

import threading
import time
from array import array

from nilometer.core.clock import NS_PER_S
from nilometer.core.run import Draw
from nilometer.core.summary import Memory

from . import gpu, process

_EVERY_S = 0.5


class Sampler:
    """A thread that looks twice a second. Use as a context manager; ask `peaks` and `drawn` at the end."""

    def __init__(self, pid: int | None) -> None:
        self._pid = pid
        self._rss: int | None = None
        self._device: int | None = None
        self._cpu_s: dict[int, float] = {}
        self._rows = array("q"), array("q"), array("q")
        self._devices: int | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._has_device = gpu.used_bytes() is not None if pid is not None else False

    def __enter__(self) -> Sampler:
        if self._pid is not None:
            self._look()
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(_EVERY_S):
            self._look()

    def _look(self) -> None:
        if self._pid is not None:
            self._rss = _larger(self._rss, process.tree_rss_bytes(self._pid))
        if self._has_device:
            self._device = _larger(self._device, gpu.used_bytes())
        if self._pid is not None:
            self.note(process.tree_cpu_s(self._pid))

    def note(self, cpu_s: dict[int, float]) -> None:
        """A row of what was drawn so far; a child that has ended keeps what it took."""
        if not cpu_s:
            return
        self._cpu_s |= cpu_s
        at, cpu, power = self._rows
        at.append(time.monotonic_ns())
        cpu.append(round(sum(self._cpu_s.values()) * NS_PER_S))
        held = gpu.holding(cpu_s) if self._has_device else None
        if held is not None:
            self._devices = _larger(self._devices, held.devices)
            if held.power_mw is not None:
                power.append(held.power_mw)

    def drawn(self) -> Draw:
        """What was drawn, row by row."""
        at, cpu, power = self._rows
        whole = len(power) == len(at)
        return Draw(at=at.tobytes(), cpu=cpu.tobytes(), power=power.tobytes() if whole else b"", devices=self._devices)

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
