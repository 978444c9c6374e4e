"""Samples memory while a run goes on, off the load's own process, and keeps the peaks."""

from __future__ import annotations

import threading

from nilometer.core.summary import Memory

from . import gpu, process

_EVERY_S = 0.5


class MemorySampler:
    """A thread that looks twice a second. Use as a context manager; ask `peaks` at the end."""

    def __init__(self, pid: int | None) -> None:
        self._pid = pid
        self._rss: int | None = None
        self._device: int | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._has_device = gpu.used_bytes() is not None if pid is not None else False

    def __enter__(self) -> MemorySampler:
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
