"""The calls that wait to be sent. They come over a pipe, ready-made.

The pipe is read only while the store is low: so the pipe itself holds the maker back, and nothing is decoded too early.
"""

from __future__ import annotations

import socket
from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable

from nilometer.core.record import Call

from .order import Unpacker, as_calls, received

_READ_BYTES = 262144
_CALM_S = 0.03
"""So long after it ran low the store is filled up: a wave of ends takes its calls and does not wait for unpacking."""


class Supply:
    """A store of Calls. `on_more` is told when calls came into an empty store, when it is filled, and at the end."""

    def __init__(self, loop: AbstractEventLoop, pipe: socket.socket, low: int) -> None:
        self._loop = loop
        self._pipe = pipe
        self._low = low
        self._calls: deque[Call] = deque()
        self._unpacker = Unpacker()
        self._reading = False
        self._waiting = False
        self.on_more: Callable[[], None] = lambda: None
        self.ended = False
        self.starved = 0
        pipe.setblocking(False)
        self._read_on()

    def take(self) -> Call | None:
        """The next call; None when there is none now (`exhausted` says whether there will be)."""
        if self._calls:
            call = self._calls.popleft()
            if len(self._calls) < self._low and not self._reading:
                self._run_low()
            return call
        if not self.ended:
            self.starved += 1
        return None

    def _run_low(self) -> None:
        if len(self._calls) < self._low // 2:  # no wave takes so many: they go faster than a calm moment comes
            self._read_on()
        elif not self._waiting:
            self._waiting = True
            self._loop.call_later(_CALM_S, self._read_on)

    def peek(self) -> Call | None:
        return self._calls[0] if self._calls else None

    @property
    def filled(self) -> bool:
        """Whether there is as much as the store holds, or all there will ever be."""
        return self.ended or len(self._calls) >= self._low

    @property
    def exhausted(self) -> bool:
        return self.ended and not self._calls

    def close(self) -> None:
        """Take no more; the maker meets a closed pipe."""
        self._read_off()
        self.ended = True
        self._calls.clear()
        self._pipe.close()

    def _read_on(self) -> None:
        self._waiting = False
        if not self.ended and not self._reading:
            self._loop.add_reader(self._pipe.fileno(), self._readable)
            self._reading = True

    def _read_off(self) -> None:
        if self._reading:
            self._loop.remove_reader(self._pipe.fileno())
            self._reading = False

    def _readable(self) -> None:
        data = received(self._pipe, _READ_BYTES)
        if data is None:
            return
        was_empty, was_filled = not self._calls, self.filled
        if data:
            for body in self._unpacker.feed(data):
                self._calls.extend(as_calls(body))
        else:
            self._read_off()
            self.ended = True
        if len(self._calls) >= 2 * self._low:
            self._read_off()
        if was_empty or self.filled != was_filled or self.ended:
            self.on_more()
