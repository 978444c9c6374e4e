"""The parent's side of the seam: start the workers of a run, feed them calls, watch their counters, end them.

Only processes started here are ended, by their ids. What a worker measured is in its journal, whatever becomes of it.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from nilometer.core.errors import EngineError
from nilometer.core.record import Call

from .counters import Counters, Field, State
from .order import Cancel, Control, Drain, Go, Order, StopReason, pack

_BATCH = 16
_FEEDER_NICE = 10
_START_LIMIT_S = 60.0
_END_LIMIT_S = 10.0
SILENT_LOOKS = 80
"""A worker without a sign of life over so many looks is ended. Looks, not time: what stops both stops the count too."""
SILENT = "silent"
"""The last word of a worker that had none."""


class Worker:
    """One worker process and its two pipes."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.said = ""
        self._alive_ns = 0
        self._silent = 0
        self.counters = Counters(Path(order.counters), create=True)
        self._calls, calls_theirs = socket.socketpair()
        self._control, control_theirs = socket.socketpair()
        fds = (calls_theirs.fileno(), control_theirs.fileno())
        command = [sys.executable, "-m", "nilometer.load.worker", *map(str, fds)]
        self.process = subprocess.Popen(
            command, pass_fds=fds, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        calls_theirs.close()
        control_theirs.close()
        self._control.sendall(pack(order))

    def feed(self, next_batch: Callable[[], list[Call]]) -> None:
        """Send calls until there are no more or the worker wants none; runs in a thread of its own.

        Making them may wait, the load may not: the thread steps behind the worker where they share a processor.
        """
        _step_back()
        try:
            while batch := next_batch():
                self._calls.sendall(pack(batch))
        except OSError:
            return  # the worker has closed its end: the load is over
        finally:
            self._calls.close()

    def tell(self, message: Control) -> None:
        """Send an order; a worker that is gone needs none."""
        try:
            self._control.sendall(pack(message))
        except OSError:
            return

    @property
    def state(self) -> State:
        return State(self.counters[Field.STATE])

    def end_if_silent(self) -> None:
        """Kill a worker that gave no sign of life over so many of these looks, a stopped or a hung one."""
        alive_ns = self.counters[Field.ALIVE_NS]
        self._silent = self._silent + 1 if alive_ns == self._alive_ns else 0
        self._alive_ns = alive_ns
        if self._silent >= SILENT_LOOKS and self.process.poll() is None:
            self.process.kill()
            self.said = SILENT

    def close(self) -> None:
        """End the worker if it still lives and take down what it said on stderr; may be called twice."""
        self._control.close()
        try:
            _, said = self.process.communicate(timeout=_END_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            _, said = self.process.communicate()
        self.said = self.said or said.decode(errors="replace")
        self.counters.close()

    @property
    def last_word(self) -> str:
        """The last line it said on stderr: why it ended before its time; "" where it said nothing."""
        return self.said.strip().rpartition("\n")[2]


def _step_back() -> None:
    """Lower this thread's priority; on Linux a nice value is a thread's own."""
    if sys.platform.startswith("linux"):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _FEEDER_NICE)


def usable_cores() -> list[int]:
    """The cores this process may use, where the platform tells; else none."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def pins(workers: int, cores: Sequence[int]) -> list[int | None]:
    """A core of its own for each of several workers, if one at least is left for all else; None where not."""
    if workers < 2 or len(cores) <= workers:
        return [None] * workers
    return list(cores[-workers:])


class Crew:
    """All workers of one run. Use as a context manager: on leaving, none is alive."""

    def __init__(self, orders: list[Order], calls: Iterator[Call]) -> None:
        self._iterator = calls
        self._lock = threading.Lock()
        self._fault: BaseException | None = None
        self.workers = [Worker(order) for order in orders]
        for worker, core in zip(self.workers, pins(len(orders), usable_cores()), strict=True):
            if core is not None:
                os.sched_setaffinity(worker.process.pid, {core})
        self._feeders = [
            threading.Thread(target=worker.feed, args=(self._batch,), daemon=True) for worker in self.workers
        ]

    def __enter__(self) -> Crew:
        for feeder in self._feeders:
            feeder.start()
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers:
            worker.close()
        for feeder in self._feeders:
            feeder.join(timeout=5)

    def _batch(self) -> list[Call]:
        with self._lock:
            try:
                return list(islice(self._iterator, _BATCH))
            except BaseException as fault:  # noqa: BLE001 - carried to the thread that owns the run, and raised there
                self._fault = fault
                return []

    def check(self) -> None:
        """Raise what the maker of calls met, if anything."""
        if self._fault is not None:
            raise self._fault

    def wait_ready(self) -> None:
        """Return when every worker has its connections; slug `worker_not_ready` when one does not get there."""
        limit = time.monotonic() + _START_LIMIT_S
        while any(worker.state is State.STARTING for worker in self.workers):
            self.check()
            died = next((w for w in self.workers if w.process.poll() is not None), None)
            if died is not None or time.monotonic() > limit:
                raise _not_ready(died)
            time.sleep(0.01)

    def go(self, lead_ns: int = 50_000_000) -> Go:
        """Start the load of all workers at one moment, a little ahead."""
        go = Go(start_ns=time.monotonic_ns() + lead_ns, started_wall_ns=time.time_ns() + lead_ns)
        self.tell(go)
        return go

    def tell(self, message: Control) -> None:
        for worker in self.workers:
            worker.tell(message)

    def drain(self, why: StopReason) -> None:
        self.tell(Drain(why))

    def kill(self) -> None:
        """End the workers whatever they do; their journals hold what was measured."""
        for worker in self.workers:
            worker.process.kill()

    def cancel(self) -> None:
        self.tell(Cancel())

    @property
    def running(self) -> bool:
        return any(worker.process.poll() is None for worker in self.workers)

    def total(self, field: Field) -> int:
        return sum(worker.counters[field] for worker in self.workers)

    def unheard_ns(self, now_ns: int) -> int:
        """For how long no running worker has heard of the target; 0 where one has."""
        since = [w.counters[Field.UNHEARD_SINCE_NS] for w in self.workers if w.process.poll() is None]
        return now_ns - max(since) if since and all(since) else 0

    def end_the_silent(self) -> None:
        for worker in self.workers:
            worker.end_if_silent()

    def states(self) -> list[State]:
        return [worker.state for worker in self.workers]


def _not_ready(died: Worker | None) -> EngineError:
    if died is None:
        return EngineError("worker_not_ready", why=f"{_START_LIMIT_S:.0f} s")
    died.close()
    return EngineError("worker_not_ready", why=died.last_word or f"exit {died.process.returncode}")
