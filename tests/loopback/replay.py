"""A server for tests that answers with given bytes at given times, and keeps when it wrote them.

One thread per connection, sleeping to absolute times (some 0.1 ms late on a calm machine). It decides nothing: what it
sends is a `Reply`, what it received and wrote is kept for the test to compare with.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

TESTS = Path(__file__).parent.parent
CASES = TESTS / "cases"
STREAMS = (CASES / "sse", TESTS / "captures" / "dialects")
"""Bodies with their schedules and what is expected of them."""
NS_PER_MS = 1_000_000

Framing = Literal["chunked", "length", "close", "raw"]
Ending = Literal["eof", "keep", "cut", "reset", "hang"]


@dataclass(frozen=True)
class Reply:
    """One response. `schedule`: (ms after the request was fully read, body bytes written then).

    `framing`: chunked, content-length, delimited by the end of the connection, or raw (body without any header).
    `ending`: end the body properly and close; keep the connection; close or reset without ending the body; stay
    silent with the connection open. The headers leave with the first bytes unless `head_ms` says when.
    """

    body: bytes
    schedule: tuple[tuple[float, int], ...] = ()
    status: int = 200
    content_type: str = "text/event-stream"
    framing: Framing = "chunked"
    ending: Ending = "eof"
    headers: tuple[tuple[str, str], ...] = ()
    head_ms: float | None = None

    def cut_at(self, size: int) -> Reply:
        """The same, closed after `size` body bytes without an end."""
        return replace(self, body=self.body[:size], ending="cut")

    def pieces(self) -> list[tuple[float, bytes]]:
        """(ms, bytes) of each write; body bytes the schedule does not cover go with its last entry."""
        pieces: list[tuple[float, bytes]] = []
        at = 0
        for ms, size in self.schedule or ((0.0, len(self.body)),):
            piece = self.body[at : at + size]
            at += size
            if piece:
                pieces.append((ms, piece))
        if at < len(self.body):
            pieces.append((self.schedule[-1][0], self.body[at:]))
        return pieces

    def head(self) -> bytes:
        """Status line and headers; empty with raw framing."""
        if self.framing == "raw":
            return b""
        lines = [f"HTTP/1.1 {self.status} Replayed", f"content-type: {self.content_type}"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        if self.framing == "chunked":
            lines.append("transfer-encoding: chunked")
        elif self.framing == "length":
            lines.append(f"content-length: {len(self.body)}")
        if self.framing == "close" or self.ending == "eof":
            lines.append("connection: close")
        return ("\r\n".join(lines) + "\r\n\r\n").encode()


@dataclass
class Exchange:
    """One request as it came in and the response as it went out; ns of CLOCK_MONOTONIC."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int
    read_ns: int
    writes: list[tuple[int, int]] = field(default_factory=list)
    """(ns just before, body bytes) of each write."""
    end_ns: int | None = None
    """Just before the last bytes left."""


def stems() -> list[str]:
    """The names of all stream cases."""
    found = (path for folder in STREAMS for path in folder.glob("*.expected.json"))
    return sorted(path.name.removesuffix(".expected.json") for path in found)


def dialect_of(expected: dict[str, Any]) -> str:
    """The dialect of a stream case: as it says, else by where it was asked."""
    named = {
        "/v1/chat/completions": "chat",
        "/api/chat": "ollama",
        "/generate_stream": "tgi",
        "/v1/messages": "anthropic",
    }
    return str(expected.get("dialect") or named[expected["endpoint"]])


def case(stem: str, framing: Framing = "chunked", ending: Ending = "eof") -> tuple[Reply, dict[str, Any]]:
    """A stream case: the reply that obeys its schedule, and what is expected of it."""
    (told,) = (path for folder in STREAMS if (path := folder / f"{stem}.expected.json").exists())
    expected: dict[str, Any] = json.loads(told.read_text("utf-8"))
    (body_file,) = (path for path in told.parent.glob(f"{stem}.*") if path != told)
    schedule = tuple((float(ms), int(size)) for ms, size in expected["schedule_ms_bytes"])
    assert sum(size for _, size in schedule) == body_file.stat().st_size, stem
    reply = Reply(
        body=body_file.read_bytes(),
        schedule=schedule,
        status=expected["status"],
        content_type=expected["content_type"],
        framing=framing,
        ending=ending,
    )
    return reply, expected


NOT_FOUND = Reply(b'{"error":{"message":"not here","code":404}}', status=404, content_type="application/json",
                  framing="length", ending="keep")  # fmt: skip

Chooser = Callable[[Exchange], Reply]


class Replay:
    """Serves one reply, one per path (others get 404), or what a function of the exchange chooses.

    As a context manager: listens on a free port of 127.0.0.1; `exchanges` fills in order of arrival.
    """

    def __init__(self, answers: Reply | dict[str, Reply] | Chooser, port: int = 0) -> None:
        self._choose = _chooser(answers)
        self.exchanges: list[Exchange] = []
        self._stopped = threading.Event()
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._accepted = 0
        self.port = port

    def __enter__(self) -> Replay:
        self._listener = socket.create_server(("127.0.0.1", self.port), backlog=1024)
        self.port = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        with socket.socket() as waker:  # an accept() that waits is not woken by closing its socket
            waker.settimeout(5)
            waker.connect_ex(("127.0.0.1", self.port))
        with self._lock:
            for sock in self._open:
                with contextlib.suppress(OSError):  # closed, or its peer is gone already
                    sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)
        self._listener.close()

    def _start(self, run: Callable[[], None]) -> None:
        thread = threading.Thread(target=run, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._stopped.is_set():
            sock, _ = self._listener.accept()
            if self._stopped.is_set():
                sock.close()
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._accepted += 1
            with self._lock:
                self._open.add(sock)
            self._start(lambda sock=sock, number=self._accepted: self._serve(sock, number))  # type: ignore[misc]

    def _serve(self, sock: socket.socket, number: int) -> None:
        try:
            with sock.makefile("rb") as reading:
                while (exchange := _read_request(reading, number)) is not None:
                    self.exchanges.append(exchange)
                    reply = self._choose(exchange)
                    self._answer(sock, exchange, reply)
                    if reply.ending != "keep":
                        break
        except OSError:
            pass  # the client left, or the test is over
        finally:
            with self._lock:
                self._open.discard(sock)
                sock.close()

    def _answer(self, sock: socket.socket, exchange: Exchange, reply: Reply) -> None:
        pending = reply.head()
        if reply.head_ms is not None:
            self._sleep_until(exchange.read_ns + round(reply.head_ms * NS_PER_MS))
            sock.sendall(pending)
            pending = b""
        pieces = reply.pieces()
        for index, (ms, piece) in enumerate(pieces):
            self._sleep_until(exchange.read_ns + round(ms * NS_PER_MS))
            data = pending + (b"%x\r\n%b\r\n" % (len(piece), piece) if reply.framing == "chunked" else piece)
            if index == len(pieces) - 1 and reply.framing == "chunked" and reply.ending in ("eof", "keep"):
                data += b"0\r\n\r\n"
            now_ns = time.monotonic_ns()
            exchange.writes.append((now_ns, len(piece)))
            exchange.end_ns = now_ns
            sock.sendall(data)
            pending = b""
        if pending:
            sock.sendall(pending)
        if reply.ending == "hang":
            self._stopped.wait()
        if reply.ending == "reset":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def _sleep_until(self, at_ns: int) -> None:
        """Coarse with the stop signal in view, then a plain sleep, which is finer."""
        coarse_s = (at_ns - time.monotonic_ns()) / 1e9 - 0.005
        if coarse_s > 0 and self._stopped.wait(coarse_s):
            raise OSError("the test is over")
        left_s = (at_ns - time.monotonic_ns()) / 1e9
        if left_s > 0:
            time.sleep(left_s)


def _chooser(answers: Reply | dict[str, Reply] | Chooser) -> Chooser:
    if isinstance(answers, Reply):
        reply = answers
        return lambda exchange: reply
    if isinstance(answers, dict):
        table = answers
        return lambda exchange: table.get(exchange.path, NOT_FOUND)
    return answers


def _read_request(reading: Any, connection: int) -> Exchange | None:
    """The next request, None at the end of the connection. Understands content-length only."""
    line = reading.readline()
    if not line:
        return None
    method, path, _ = line.decode("latin-1").split(" ", 2)
    headers: dict[str, str] = {}
    while (line := reading.readline()) not in (b"\r\n", b"\n", b""):
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.strip().lower()] = value.strip()
    body = reading.read(int(headers.get("content-length", "0")))
    return Exchange(method, path, headers, body, connection, time.monotonic_ns())
