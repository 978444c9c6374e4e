"""One blocking request on a connection of its own: for probes, readiness and metrics pages, never for the load."""

from __future__ import annotations

import errno
import os
import select
import time
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import NamedTuple

import httptools

from nilometer import __version__
from nilometer.core.errors import TargetError
from nilometer.core.header import header_line
from nilometer.core.secrets import mask_url

from .connection import CertificateError, Connection, ProxyError, TlsError, Want
from .endpoint import parse, request_path, shown_through
from .inbox import Inbox
from .route import Address, Route, resolve

Reads = list[tuple[int, int]]
"""Per read its time in ns, and the pieces of body there were then."""


class Response(NamedTuple):
    """A whole answer; header names in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes
    elapsed_ns: int
    kept: bool | None = None
    """Whether the connection was still open `linger_s` after the answer; None where that was not looked at."""
    reads: tuple[tuple[int, int], ...] = ()
    """Per read that brought some of the body: ns from the start, bytes of body there were then."""


class Handshake(NamedTuple):
    """What opening a connection showed. All None without TLS; the certificate's own only where it was checked."""

    version: str | None = None
    name: str | None = None
    expires: str | None = None
    """The end of its validity, as `ssl.cert_time_to_seconds` reads it."""


class _Deadline:
    def __init__(self, url: str, seconds: float) -> None:
        self._url = url
        self._seconds = seconds
        self._end_ns = time.monotonic_ns() + int(seconds * 1e9)

    def wait(self, connection: Connection, want: Want) -> None:
        left_ms = (self._end_ns - time.monotonic_ns()) / 1e6
        poll = select.poll()
        poll.register(connection.fileno(), select.POLLOUT if want is Want.WRITE else select.POLLIN)
        if left_ms <= 0 or not poll.poll(left_ms):
            raise TargetError("timeout", url=self._url, seconds=self._seconds)


def fetch(
    url: str,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    timeout_s: float = 10.0,
    insecure: bool = False,
    proxy: str | None = None,
    limit_bytes: int = 16 << 20,
    linger_s: float = 0.0,
    at: Address | None = None,
) -> Response:
    """Ask once and wait for the whole answer; nothing is retried, no redirect followed.

    `at` is one of the addresses of the name, to be taken instead of the first that answers.
    With `linger_s` it stays on the connection so long afterwards, to see whether the server keeps it.
    Raises TargetError: `connect_refused`, `name_unknown`, `proxy_unreachable`, `proxy_refused`, `tls_failed`,
    `certificate_refused`, `timeout`, `connection_cut`, `not_http`, `answer_too_large`.
    """
    endpoint = parse(url)
    route = resolve(endpoint, insecure=insecure, proxy=proxy)
    if at is not None:
        route = route._replace(addresses=(at,))
    request = request_bytes(route, method, request_path(url), headers or {}, body)
    shown = shown_through(url, route.proxy)
    start_ns = time.monotonic_ns()
    deadline = _Deadline(shown, timeout_s)
    connection = _connect(route, deadline, mask_url(url), shown)
    try:
        inbox, reads = _exchange(connection, request, deadline, limit_bytes, shown)
        elapsed_ns = time.monotonic_ns() - start_ns
        kept = inbox.keep_alive and not _ends_within(connection, linger_s) if linger_s else None
    finally:
        connection.close()
    body, body_reads = b"".join(inbox.pieces), tuple(_body_reads(inbox.pieces, reads, start_ns))
    return Response(inbox.status or 0, inbox.headers, body, elapsed_ns, kept, body_reads)


def _body_reads(pieces: list[bytes], reads: Reads, start_ns: int) -> Iterator[tuple[int, int]]:
    """The reads that brought some of the body: ns from the start, bytes of body there were then."""
    sizes = [0, *accumulate(map(len, pieces))]
    before = 0
    for at_ns, n in reads:
        if n > before:
            yield at_ns - start_ns, sizes[n]
        before = n


def look(url: str, *, timeout_s: float = 10.0, insecure: bool = False, proxy: str | None = None) -> Handshake:
    """Open a connection, ask nothing and close it. Raises TargetError as `fetch` does."""
    route = resolve(parse(url), insecure=insecure, proxy=proxy)
    shown = shown_through(url, route.proxy)
    connection = _connect(route, _Deadline(shown, timeout_s), mask_url(url), shown)
    connection.close()
    version, certificate = connection.handshake()
    subject = {name: value for part in certificate.get("subject", ()) for name, value in part}
    names = [value for kind, value in certificate.get("subjectAltName", ()) if kind == "DNS"]
    return Handshake(version, subject.get("commonName", next(iter(names), None)), certificate.get("notAfter"))


def _ends_within(connection: Connection, seconds: float) -> bool:
    """Whether the peer ends the connection, on which nothing is asked, within this time."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(seconds * 1_000)) and connection.idle_closed()


def request_bytes(route: Route, method: str, path: str, headers: Mapping[str, str], body: bytes | None) -> bytes:
    """A whole HTTP/1.1 request. Content-Length is there whenever a body is.

    Refuses a header that HTTP cannot carry: slug `header_invalid`; its value is never told.
    """
    lines = [f"{method} {route.target(path)} HTTP/1.1"]
    given = {name.lower() for name in headers}
    if "host" not in given:
        lines.append(f"Host: {route.endpoint.host_header}")
    if "user-agent" not in given:
        lines.append(f"User-Agent: nilometer/{__version__}")
    if route.endpoint.authorization and "authorization" not in given:
        lines.append(f"Authorization: {route.endpoint.authorization}")
    if route.proxy_authorization:
        lines.append(f"Proxy-Authorization: {route.proxy_authorization}")
    lines += [header_line(name, value) for name, value in headers.items()]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + (body or b"")


def _connect(route: Route, deadline: _Deadline, url: str, shown: str) -> Connection:
    connection: Connection | None = None
    try:
        connection = Connection(route)
        want = Want.WRITE
        while want is not Want.READY:
            deadline.wait(connection, want)
            want = connection.advance()
    except TargetError:
        _close(connection)
        if connection is not None and connection.at_proxy:
            late = os.strerror(errno.ETIMEDOUT)
            raise TargetError("proxy_unreachable", proxy=route.proxy, url=url, detail=late) from None
        raise
    except OSError as fault:
        _close(connection)
        raise _no_connection(fault, url, shown) from None
    return connection


def _no_connection(fault: OSError, url: str, shown: str) -> TargetError:
    """What met us on the way to a connection; a proxy's own faults are not the target's."""
    detail = fault.strerror or str(fault)
    if isinstance(fault, ProxyError) and fault.status is not None:
        return TargetError("proxy_refused", proxy=fault.proxy, url=url, status=fault.status, detail=fault.detail)
    if isinstance(fault, ProxyError):
        return TargetError("proxy_unreachable", proxy=fault.proxy, url=url, detail=fault.detail)
    if isinstance(fault, CertificateError):
        return TargetError("certificate_refused", url=shown, detail=fault.detail)
    return TargetError("tls_failed" if isinstance(fault, TlsError) else "connect_refused", url=shown, detail=detail)


def _close(connection: Connection | None) -> None:
    if connection is not None:
        connection.close()


def _exchange(
    connection: Connection, request: bytes, deadline: _Deadline, limit_bytes: int, url: str
) -> tuple[Inbox, Reads]:
    inbox = Inbox()
    received = 0
    reads: Reads = []
    try:
        sent = connection.send(request)
        while not sent:
            deadline.wait(connection, Want.WRITE)
            sent = connection.flush()
        while not inbox.done:
            deadline.wait(connection, Want.READ)
            try:
                data, _ = connection.receive()
            except BlockingIOError:
                continue
            if not data:
                break
            received += len(data)
            if received > limit_bytes:
                raise TargetError("answer_too_large", url=url, limit_bytes=limit_bytes)
            inbox.feed(data)
            reads.append((time.monotonic_ns(), len(inbox.pieces)))
    except httptools.HttpParserError as fault:
        if not inbox.done:
            raise TargetError("not_http", url=url, detail=str(fault)) from None
    except OSError as fault:
        raise TargetError("connection_cut", url=url, detail=fault.strerror or str(fault)) from None
    if not inbox.done and not inbox.ends_by_close:
        raise TargetError("connection_cut", url=url, detail="the connection was closed before the answer was whole")
    return inbox, reads
