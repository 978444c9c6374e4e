"""A wake-up at an absolute monotonic time for an asyncio loop.

Event loops round their timers to whole milliseconds; a Linux timerfd is exact to some ten microseconds. Elsewhere the
loop's own timer is used.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys
import time
from collections.abc import Callable

_NS_PER_S = 1_000_000_000
_CLOCK_MONOTONIC = 1
_ABSOLUTE = 1
_NONBLOCK = os.O_NONBLOCK if hasattr(os, "O_NONBLOCK") else 0


class _TimeSpec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("ns", ctypes.c_long))


class _TimerSpec(ctypes.Structure):
    _fields_ = (("interval", _TimeSpec), ("value", _TimeSpec))


class Alarm:
    """Calls `ring` once, at or soon after the time last set."""

    def __init__(self, loop: asyncio.AbstractEventLoop, ring: Callable[[], None]) -> None:
        self._loop = loop
        self._ring = ring
        self._due_ns: int | None = None
        self._handle: asyncio.Handle | None = None
        self._fd = -1
        if sys.platform == "linux":
            self._libc = ctypes.CDLL(None, use_errno=True)
            self._fd = self._libc.timerfd_create(_CLOCK_MONOTONIC, _NONBLOCK | os.O_CLOEXEC)
        if self._fd >= 0:
            loop.add_reader(self._fd, self._fired)

    def set(self, due_ns: int) -> None:
        """Ring at `due_ns` (CLOCK_MONOTONIC), or earlier if an earlier time was set before and has not rung."""
        if self._due_ns is not None and self._due_ns <= due_ns:
            return
        self._due_ns = due_ns
        if due_ns <= time.monotonic_ns():
            self._cancel()
            self._handle = self._loop.call_soon(self._now)
        elif self._fd >= 0:
            seconds, ns = divmod(due_ns, _NS_PER_S)
            spec = _TimerSpec(_TimeSpec(0, 0), _TimeSpec(seconds, ns))
            self._libc.timerfd_settime(self._fd, _ABSOLUTE, ctypes.byref(spec), None)
        else:
            self._cancel()
            self._handle = self._loop.call_later((due_ns - time.monotonic_ns()) / _NS_PER_S, self._now)

    def _cancel(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _fired(self) -> None:
        try:
            os.read(self._fd, 8)
        except BlockingIOError:
            return
        self._now()

    def _now(self) -> None:
        self._due_ns = None
        self._cancel()
        self._ring()

    def close(self) -> None:
        """Never ring again."""
        self._cancel()
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1
