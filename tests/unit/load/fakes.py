"""Stand-ins for what the load loop lives in: an event loop that moves only when told, and a pipe of given reads."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any, cast


class FakeLoop:
    """Keeps what it is asked to call; `now_ns` moves by `run_until` alone. Fires timers late by `late_ns`."""

    def __init__(self, now_ns: int = 0, late_ns: int = 0) -> None:
        self.now_ns = now_ns
        self.late_ns = late_ns
        self.readers: dict[int, Callable[..., object]] = {}
        self.turns = 0
        self._count = 0
        self._soon: list[tuple[Callable[..., object], tuple[Any, ...]]] = []
        self._later: list[tuple[int, int, Callable[..., object], tuple[Any, ...]]] = []

    @property
    def as_loop(self) -> asyncio.AbstractEventLoop:
        return cast(asyncio.AbstractEventLoop, self)

    def monotonic_ns(self) -> int:
        return self.now_ns

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Any = None) -> Any:
        self._soon.append((callback, args))

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any, context: Any = None) -> Any:
        self._count += 1
        self._later.append((self.now_ns + round(delay * 1e9) + self.late_ns, self._count, callback, args))

    def add_reader(self, fd: Any, callback: Callable[..., object], *args: Any) -> None:
        self.readers[fd] = callback

    def remove_reader(self, fd: Any) -> bool:
        return self.readers.pop(fd, None) is not None

    def run_until(self, end_ns: int, turn_ns: int = 10_000) -> None:
        """Turn until this moment; a turn with something to call at once takes `turn_ns`."""
        while self.now_ns < end_ns:
            self.turns += 1
            soon, self._soon = self._soon, []
            for callback, args in soon:
                callback(*args)
            if self._soon:
                self.now_ns = min(self.now_ns + turn_ns, end_ns)
            else:
                self.now_ns = max(self.now_ns, min([end_ns, *(at for at, *_ in self._later)]))
            due = sorted(timer for timer in self._later if timer[0] <= self.now_ns)
            self._later = [timer for timer in self._later if timer[0] > self.now_ns]
            for _, _, callback, args in due:
                callback(*args)


class FakePipe:
    """Gives what is put into `reads`, one entry a read; empty: nothing there now."""

    def __init__(self) -> None:
        self.reads: list[bytes | OSError] = []
        self.closed = False

    def setblocking(self, flag: bool) -> None:
        assert not flag

    def fileno(self) -> int:
        return 7

    def recv(self, size: int) -> bytes:
        if not self.reads:
            raise BlockingIOError
        read = self.reads.pop(0)
        if isinstance(read, OSError):
            raise read
        assert len(read) <= size
        return read

    def close(self) -> None:
        self.closed = True

    @property
    def as_socket(self) -> socket.socket:
        return cast(socket.socket, self)
