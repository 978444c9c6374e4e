"""Drives the load generator against a server of a test: by its real worker process, or by its loop in this process.

Both give back what the run left behind: the records of its journal, its trailer, how the worker ended.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from nilometer.core.environment import Environment
from nilometer.core.record import Call, Record
from nilometer.core.run import Health, Phases
from nilometer.load import journal
from nilometer.load.counters import Counters
from nilometer.load.crew import Crew
from nilometer.load.loop import LoadLoop
from nilometer.load.order import Go, Order, pack
from nilometer.load.supply import Supply
from nilometer.load.worker import new_event_loop
from nilometer.net.endpoint import parse
from nilometer.net.route import Route, resolve

MS = 1_000_000
S = 1_000_000_000
LIMIT_S = 20.0
"""No run of a test may take longer."""


class Outcome(NamedTuple):
    """What a run left behind. `phases` and `health` are of the trailer."""

    records: list[Record]
    trailer: journal.Trailer | None
    status: int | None = 0
    said: str = ""

    @property
    def phases(self) -> Phases:
        assert self.trailer is not None, self.said
        return self.trailer.phases

    @property
    def health(self) -> Health:
        assert self.trailer is not None, self.said
        return self.trailer.health

    def kinds(self) -> dict[tuple[str, str | None], int]:
        """(outcome, error kind) -> how many."""
        found: dict[tuple[str, str | None], int] = {}
        for record in self.records:
            found[record.outcome, record.error] = found.get((record.outcome, record.error), 0) + 1
        return found

    def one(self) -> Record:
        (record,) = self.records
        return record


def request(host: str, path: str = "/v1/chat/completions", body: bytes = b"{}", head: str = "") -> bytes:
    """A whole request; `head` are more header lines, each ending in CRLF."""
    lines = f"POST {path} HTTP/1.1\r\nHost: {host}\r\n{head}Content-Length: {len(body)}\r\n\r\n"
    return lines.encode() + body


def calls(n: int, host: str = "test", **fields: Any) -> Iterator[Call]:
    """`n` plain requests."""
    for seq in range(n):
        yield Call(seq=seq, request=request(host, head=f"X-Seq: {seq}\r\n"), **fields)


def due_calls(due_ms: Iterable[float], host: str = "test") -> Iterator[Call]:
    """Requests of an open loop, due at these ms from the start."""
    for seq, ms in enumerate(due_ms):
        yield Call(seq=seq, request=request(host, head=f"X-Seq: {seq}\r\n"), due_ns=round(ms * MS))


def order(folder: Path, target: str, **fields: Any) -> Order:
    """An order whose files lie in `folder`, its journal already begun; one lane and a drain of 5 s unless said."""
    worker = fields.get("worker", 0)
    told = {"lanes": 1, "drain_ns": 5 * S, "dialect": "chat", **fields}
    made = Order(target=target, journal=str(folder / f"{worker}.journal"), counters=str(folder / f"{worker}.c"), **told)
    begin(Path(made.journal), worker)
    return made


def begin(path: Path, worker: int = 0) -> None:
    """A journal with a header and nothing else."""
    journal.create(
        path,
        journal.Header(
            run="testtesttest",
            worker=worker,
            workers=1,
            spec={},
            environment=Environment(),
            started_wall_ns=time.time_ns(),
            tool_version="0",
        ),
    ).close()


def left(path: str, status: int | None = 0, said: str = "") -> Outcome:
    """What lies in a journal."""
    entries = list(journal.read(Path(path)))
    records = [entry for entry in entries if isinstance(entry, Record)]
    trailer = next((entry for entry in entries if isinstance(entry, journal.Trailer)), None)
    return Outcome(records, trailer, status, said)


def drive(told: Order, supply: Iterable[Call], meanwhile: Callable[[Crew], None] | None = None) -> Outcome:
    """The run in a worker process; `meanwhile` is called once the load was started."""
    with Crew([told], iter(supply)) as crew:
        crew.wait_ready()
        crew.go()
        if meanwhile is not None:
            meanwhile(crew)
        wait_until(lambda: not crew.running)
        (status,) = (worker.process.returncode for worker in crew.workers)
    return left(told.journal, status, crew.workers[0].said)


def drive_here(
    told: Order,
    supply: Iterable[Call],
    *,
    route: Route | None = None,
    write: Callable[[Record], None] | None = None,
    meanwhile: Callable[[LoadLoop], None] | None = None,
    after_ms: float = 0,
    batch: int = 16,
) -> Outcome:
    """The run in this process, quicker by a process start; `meanwhile` is called on the loop `after_ms` its start."""
    loop = new_event_loop()
    ours, theirs = socket.socketpair()
    feeder = threading.Thread(target=_feed, args=(theirs, iter(supply), batch), daemon=True)
    writer = journal.Writer(Path(told.journal))
    counters = Counters(Path(told.counters), create=True)
    load = LoadLoop(
        loop,
        told,
        route or resolve(parse(told.target), insecure=told.insecure, proxy=told.proxy),
        Supply(loop, ours, 64),
        write or writer.record,
        counters,
    )
    load.on_done = loop.stop
    load.prepare()
    start = time.monotonic_ns() + 20 * MS
    loop.call_later(0.02, load.go, Go(start, time.time_ns()))
    if meanwhile is not None:
        loop.call_later(0.02 + after_ms / 1e3, meanwhile, load)
    overdue = loop.call_later(LIMIT_S, load.cancel)
    feeder.start()
    try:
        loop.run_forever()
        writer.trailer(journal.Trailer(phases=load.phases(), health=load.health()))
    finally:
        overdue.cancel()
        ours.close()
        feeder.join(5)
        theirs.close()
        loop.close()
        writer.close()
        counters.close()
    return left(told.journal)


def _feed(pipe: socket.socket, supply: Iterator[Call], batch: int) -> None:
    try:
        held: list[Call] = []
        for call in supply:
            held.append(call)
            if len(held) == batch:
                pipe.sendall(pack(held))
                held = []
        if held:
            pipe.sendall(pack(held))
        pipe.shutdown(socket.SHUT_WR)
    except OSError:
        return  # the run is over


def wait_until(true: Callable[[], bool], limit_s: float = LIMIT_S) -> None:
    """Wait until it is so; an AssertionError when it does not come to pass."""
    end = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.005)


def alive(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def event(content: str, **more: Any) -> bytes:
    """A chat stream frame with this content."""
    return frame(choices=[{"index": 0, "delta": {"content": content}, "finish_reason": None}], **more)


def finish(reason: str = "stop") -> bytes:
    """The frame that names the finish reason."""
    return frame(choices=[{"index": 0, "delta": {}, "finish_reason": reason}])


def usage(prompt: int, completion: int) -> bytes:
    """The usage frame."""
    told = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return frame(choices=[], usage=told)


def frame(**fields: Any) -> bytes:
    return b"data: " + msgspec.json.encode({"id": "c", **fields}) + b"\n\n"


DONE = b"data: [DONE]\n\n"
SHORT = event("a") + event("b") + event("c") + finish() + usage(7, 3) + DONE
"""Three tokens, whole."""


def free_port() -> int:
    """A port on which nothing listens: bound once and let go."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))
