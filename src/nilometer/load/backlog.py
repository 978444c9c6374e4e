"""Responses that have ended and wait to be digested and written down: later, and a little at a time.

Parsing a wave of ended responses at once would keep the loop from the streams that run: it starts when no response has
ended for a while, and holds the loop for a fraction of a millisecond at a time.
"""

from __future__ import annotations

import time
from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable
from typing import Protocol

from nilometer.core.mask import Mask
from nilometer.core.record import Record
from nilometer.wire.dialects import spoken

from .digest import Digest
from .exchange import Exchange
from .order import Order
from .pulse import Pulse

NEVER_NS = 1 << 62
_SETTLE_NS = 10_000_000
"""Parsing starts when no response has ended for this long: a wave of ends is refilled undisturbed."""
_PATIENCE_NS = 100_000_000
"""... but no response waits longer than this."""
_SLICE_NS = 300_000
"""Parsing holds the loop no longer than this at a time."""


class Timers(Protocol):
    """What the backlog needs of the loop it works in."""

    loop: AbstractEventLoop
    pulse: Pulse


class Backlog:
    """A queue of ended exchanges. Each becomes a Record, is written, and then counted in `recorded`."""

    def __init__(
        self, host: Timers, order: Order, write: Callable[[Record], None], on_fault: Callable[[OSError], None]
    ) -> None:
        self._host = host
        self._dialect = spoken(order.dialect, order.protocol)
        self._keep_text = order.keep_text
        self._mask = Mask(order.secrets)
        self._worker = order.worker
        self._write = write
        self._on_fault = on_fault
        self._broken = False
        self._queue: deque[Exchange] = deque()
        self._readings: dict[Exchange, Digest] = {}
        self._pumping = False
        self._last_end_ns = 0
        self.recorded = 0

    def __len__(self) -> int:
        return len(self._queue)

    def add(self, exchange: Exchange) -> None:
        """Take an ended exchange; it is digested soon."""
        self._queue.append(exchange)
        self._last_end_ns = time.monotonic_ns()
        if not self._pumping:
            self._pumping = True
            self._host.loop.call_later(_SETTLE_NS / 1e9, self._pump)

    def digest(self, exchange: Exchange) -> Digest:
        """The reading of an exchange, begun or gone on with."""
        reading = self._readings.get(exchange)
        if reading is None:
            reading = self._readings[exchange] = Digest(exchange, self._dialect, self._keep_text, self._mask)
        return reading

    def answer(self, exchange: Exchange) -> str | None:
        """What an ended exchange was answered, read at once if it still waits; None where it was not ok."""
        if exchange in self._readings or exchange in self._queue:
            self._step(exchange, NEVER_NS)
            return self.digest(exchange).answer_text()
        return exchange.answer

    def clear(self, on_step: Callable[[], None]) -> None:
        """Digest all that is left, however long it takes: the load is over. `on_step` is told before each."""
        while self._queue:
            on_step()
            exchange = self._queue.popleft()
            self._step(exchange, NEVER_NS)
            self._record(exchange)

    def _pump(self) -> None:
        now = time.monotonic_ns()
        calm = now - self._last_end_ns >= _SETTLE_NS
        if not calm and self._queue and now - (self._queue[0].end_user or now) < _PATIENCE_NS:
            self._host.loop.call_later(_SETTLE_NS / 1e9, self._pump)
            return
        deadline = now + _SLICE_NS
        while self._queue and time.monotonic_ns() < deadline:
            if not self._step(self._queue[0], deadline):
                break
            self._record(self._queue.popleft())
        if self._queue:
            self._host.loop.call_soon(self._pump)
        else:
            self._pumping = False

    def _step(self, exchange: Exchange, deadline_ns: int) -> bool:
        reading = self.digest(exchange)
        try:
            return reading.step(deadline_ns)
        except Exception as fault:  # noqa: BLE001 - one response must not end the load
            reading.give_up(repr(fault))
            return True

    def _record(self, exchange: Exchange) -> None:
        """Write the record down, then count it. After a fault nothing more is written."""
        reading = self.digest(exchange)
        del self._readings[exchange]
        if exchange.call.later:
            exchange.answer = reading.answer_text()
        if self._broken:
            return
        try:
            self._write_down(reading)
        except OSError as fault:
            self._broken = True
            self._on_fault(fault)
            return
        self.recorded += 1

    def _write_down(self, reading: Digest) -> None:
        pulse, worker = self._host.pulse, self._worker
        try:
            self._write(reading.record(pulse, worker))
        except OSError:
            raise
        except Exception as fault:  # noqa: BLE001 - one response must not end the load: a count beyond 64 bits, say
            reading.give_up(repr(fault))
            self._write(reading.record(pulse, worker))
