"""One accepted connection of the mock server: its own non-blocking socket, HTTP/1.1 requests in, bytes out.

The socket is written directly, never through a transport: a transport may hold a write back until the end of the
loop's turn, and the truth log would be wrong by that much.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import httptools

READ_BYTES = 1 << 18
BODY_LIMIT_BYTES = 64 << 20


class Request(NamedTuple):
    """One request, fully read at `read_ns`."""

    method: str
    path: str
    headers: dict[bytes, bytes]
    body: bytes
    read_ns: int
    keep_alive: bool
    chunked: bool = True
    """Whether a body without a length may come in chunks: not to a client of HTTP/1.0, which reads to the end."""


class Tls:
    """The TLS side of a connection, between two memory buffers."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._object = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._ready = False

    def open(self, data: bytes) -> bytes:
        """Plain bytes of what was received; handshake records are answered through `pending`. Raises ssl.SSLError."""
        self._incoming.write(data)
        plain = bytearray()
        try:
            if not self._ready:
                self._object.do_handshake()
                self._ready = True
            while piece := self._object.read(READ_BYTES):
                plain += piece
        except ssl.SSLWantReadError:
            pass
        return bytes(plain)

    def seal(self, data: bytes) -> bytes:
        """Records that carry `data`."""
        self._object.write(data)
        return self._outgoing.read()

    def pending(self) -> bytes:
        """Records that want to be sent without data of ours."""
        return self._outgoing.read()


class Connection:
    """Reads requests one after the other and hands each to `on_request`; the next only after `finish`."""

    def __init__(
        self,
        number: int,
        sock: socket.socket,
        loop: asyncio.AbstractEventLoop,
        *,
        tls: Tls | None,
        on_request: Callable[[Connection, Request], None],
        on_closed: Callable[[Connection], None],
    ) -> None:
        self.number = number
        self.on_drained: Callable[[], None] | None = None
        self.closed = False
        self._sock = sock
        self._fd = sock.fileno()
        self._loop = loop
        self._tls = tls
        self._on_request = on_request
        self._on_closed = on_closed
        self._parser: httptools.HttpRequestParser | None = httptools.HttpRequestParser(self)
        self._unsent = bytearray()
        self._asked: deque[Request] = deque()
        self._current: Request | None = None
        self._read_ns = 0
        self._too_large = False
        loop.add_reader(self._fd, self._readable)

    # -- reading

    def _readable(self) -> None:
        try:
            data = self._sock.recv(READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.close()
            return
        self._read_ns = time.monotonic_ns()
        if not data:
            self.close()
            return
        try:
            plain = self._open(data)
            if plain and self._parser is not None:
                self._parser.feed_data(plain)
        except ssl.SSLError:  # no TLS: there is nothing in which it could be told
            self.close()
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._refuse(b"400 Bad Request")

    def _open(self, data: bytes) -> bytes:
        if self._tls is None:
            return data
        plain = self._tls.open(data)
        records = self._tls.pending()
        if records:
            self._hand_over(records)
        return plain

    def _refuse(self, status: bytes) -> None:
        self.send(b"HTTP/1.1 %b\r\ncontent-length: 0\r\nconnection: close\r\n\r\n" % status)
        self.close()

    # -- callbacks of the parser

    def on_message_begin(self) -> None:
        self._url = b""
        self._headers: dict[bytes, bytes] = {}
        self._body = bytearray()

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        if self._headers.get(b"expect", b"").lower() == b"100-continue":
            self.send(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, data: bytes) -> None:
        if len(self._body) + len(data) > BODY_LIMIT_BYTES:
            self._too_large = True
            return
        self._body += data

    def on_message_complete(self) -> None:
        if self._parser is None:
            return
        if self._too_large:
            self._refuse(b"413 Content Too Large")
            return
        method = self._parser.get_method().decode()
        keep_alive = self._parser.should_keep_alive()
        path, chunked = self._url.decode("latin-1"), self._parser.get_http_version() != "1.0"
        body = bytes(self._body)
        self._asked.append(Request(method, path, self._headers, body, self._read_ns, keep_alive and chunked, chunked))
        if self._current is None:
            self._next()

    def _next(self) -> None:
        self._current = self._asked.popleft()
        self._on_request(self, self._current)

    # -- writing

    def send(self, data: bytes) -> bool:
        """Hand `data` to the kernel; False when it did not take all at once (the rest follows by itself)."""
        if self.closed or not data:
            return True
        return self._hand_over(data if self._tls is None else self._tls.seal(data))

    def _hand_over(self, data: bytes) -> bool:
        if self._unsent:
            self._unsent += data
            return False
        try:
            taken = self._sock.send(data)
        except (BlockingIOError, InterruptedError):
            taken = 0
        except OSError:
            self._loop.call_soon(self.close)
            return True
        if taken == len(data):
            return True
        self._unsent += data[taken:]
        self._loop.add_writer(self._fd, self._writable)
        return False

    def _writable(self) -> None:
        try:
            taken = self._sock.send(self._unsent)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.close()
            return
        del self._unsent[:taken]
        if not self._unsent:
            self._loop.remove_writer(self._fd)
            drained, self.on_drained = self.on_drained, None
            if drained is not None:
                drained()

    def finish(self) -> None:
        """The current answer is complete: keep the connection for the next request, or close it as was asked."""
        answered, self._current = self._current, None
        if answered is not None and not answered.keep_alive:
            self.close()
        elif self._asked and not self.closed:
            self._next()

    def close(self, reset: bool = False) -> None:
        """Close now; what the kernel has not taken is lost. With `reset` the peer sees a reset instead of an end."""
        if self.closed:
            return
        self.closed = True
        self._loop.remove_reader(self._fd)
        if self._unsent:
            self._loop.remove_writer(self._fd)
        if reset:
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._sock.close()
        self._parser = None
        self.on_drained = None
        self._on_closed(self)
