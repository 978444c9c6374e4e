"""The worker process: `python -m nilometer.load.worker CALLS_FD CONTROL_FD`. One load loop, its pipes, its journal.

It ends when the load is over, when it is told to, or when the control pipe closes because the parent died; in each case
with what was measured in the journal. The garbage collector is off; the terminal's Ctrl-C is the parent's business.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import sys
import threading
from pathlib import Path

from nilometer.core.errors import NiloError
from nilometer.core.run import Phases
from nilometer.net.endpoint import parse
from nilometer.net.route import resolve

from .counters import Counters, Field, State
from .journal import Trailer, Writer
from .loop import LoadLoop, broken_journal
from .order import Cancel, Drain, Go, Order, Unpacker, as_control, as_order, received
from .supply import Supply

_READ_BYTES = 65536
_STORE_CALLS = 64
EXIT_DEATH = 4
"""The load ended before its time, for a reason that is this worker's last word."""
EXIT_TARGET = 5
"""The target's name was lost between the parent's probe and the worker's start."""


def new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop's where it is installed, else asyncio's own."""
    try:
        import uvloop  # noqa: PLC0415 - not on every platform
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def receive_order(control: socket.socket) -> tuple[Order, Unpacker, list[bytes]]:
    """Wait for the order; whatever followed it in the same read is handed on."""
    unpacker = Unpacker()
    bodies: list[bytes] = []
    while not bodies:
        data = control.recv(_READ_BYTES)
        if not data:
            raise SystemExit(0)
        bodies = unpacker.feed(data)
    return as_order(bodies[0]), unpacker, bodies[1:]


class ControlPipe:
    """Listens to the parent; its silence (end of file) is an order to cancel."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, pipe: socket.socket, unpacker: Unpacker, load: LoadLoop
    ) -> None:
        self._loop, self._pipe, self._unpacker, self._load = loop, pipe, unpacker, load
        pipe.setblocking(False)
        loop.add_reader(pipe.fileno(), self._readable)

    def _readable(self) -> None:
        data = received(self._pipe, _READ_BYTES)
        if data is None:
            return
        if not data:
            self.close()
            self._load.cancel()
        for body in self._unpacker.feed(data):
            self.obey(body)

    def obey(self, body: bytes) -> None:
        message = as_control(body)
        if isinstance(message, Go):
            self._load.go(message)
        elif isinstance(message, Drain):
            self._load.drain(message.why)
        elif isinstance(message, Cancel):
            self._load.cancel()

    def close(self) -> None:
        self._loop.remove_reader(self._pipe.fileno())


def _sync_every_second(journal: Writer, over: threading.Event) -> None:
    """Off the loop: what was written is on the disk within a second, also when the power fails."""
    while not over.wait(1.0):
        try:
            journal.sync()
        except OSError:
            return  # the loop's next write meets the same fault and says so


def run(calls: socket.socket, control: socket.socket) -> int:
    """One load test's share, whole; returns the exit status."""
    order, unpacker, early = receive_order(control)
    try:
        route = resolve(parse(order.target), insecure=order.insecure, proxy=order.proxy)
    except NiloError as fault:
        sys.stderr.write(f"{fault.slug}\n")
        return EXIT_TARGET
    loop = new_event_loop()
    counters = Counters(Path(order.counters))
    journal = Writer(Path(order.journal))
    supply = Supply(loop, calls, max(_STORE_CALLS, (order.lanes or 0) * 2))
    load = LoadLoop(loop, order, route, supply, journal.record, counters)
    pipe = ControlPipe(loop, control, unpacker, load)
    load.on_done = loop.stop
    for body in early:
        pipe.obey(body)
    over = threading.Event()
    syncer = threading.Thread(target=_sync_every_second, args=(journal, over), daemon=True)
    gc.collect()
    gc.freeze()
    gc.disable()
    load.prepare()
    syncer.start()
    loop.run_forever()
    over.set()
    status = _close_journal(journal, load)
    counters[Field.STATE] = State.DONE
    supply.close()
    loop.close()
    return status


def _close_journal(journal: Writer, load: LoadLoop) -> int:
    phases: Phases = load.phases()
    death = load.death
    try:
        journal.trailer(Trailer(phases=phases, health=load.health()))
        journal.sync()
    except OSError as fault:
        death = death or broken_journal(fault)
    finally:
        journal.close()
    if death is not None:
        sys.stderr.write(f"{death}\n")
    return 0 if death is None else EXIT_DEATH


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # a group's signals are the parent's to act on
        signal.signal(number, signal.SIG_IGN)
    calls, control = (socket.socket(fileno=int(fd)) for fd in sys.argv[1:3])
    sys.exit(run(calls, control))


if __name__ == "__main__":
    main()
