"""A lane: one connection and the request that is on its way on it. The hot path.

While a response streams it keeps stamps and pieces; nothing is parsed, and nothing that the garbage collector tracks is
made per event. When the response is whole, or cut, or overdue, the host is told; it refills first and digests later.
"""

from __future__ import annotations

import time
from asyncio import AbstractEventLoop
from collections.abc import Callable
from typing import Protocol

import httptools

from nilometer.core.record import ErrorKind
from nilometer.net.connection import ANCILLARY_BYTES, NO_STAMP, OWN_LIMITS, READ_BYTES, Connection, TlsError, Want
from nilometer.net.inbox import Inbox
from nilometer.net.route import Route

from .exchange import Exchange
from .order import Limits
from .outage import NO_SOCKET
from .overdue import limit_passed, may_be_stale, passed
from .pulse import LATE_NS, Pulse

monotonic_ns = time.monotonic_ns

STREAM_BYTES = 256 * 1024
"""A response longer than this is digested while it comes, so that memory stays bounded."""
_SILENCE_NS = 50_000_000
"""After so long without a byte in the middle of a response the connection is looked after, once."""
_RESET_LOOK_S, _RESET_LOOKS = 0.005, 4
"""A server that closes while a request lies unread resets the connection, some time after its end of file."""
_TRUST = 2
"""So often running may a kept connection turn out closed before a lane keeps none any more."""
GIANT_BYTES = 256 * 1024 * 1024  # a response longer than this is given up


class Host(Protocol):
    """The loop, as its lanes see it."""

    loop: AbstractEventLoop
    route: Route
    pulse: Pulse
    resent: int
    keep_alive: bool

    def opened(self, lane: Lane) -> None: ...

    def ended(self, lane: Lane, exchange: Exchange) -> None: ...

    def grown(self, exchange: Exchange) -> None: ...

    def next_connection(self) -> int: ...


class Lane:
    """Idle, opening, or busy with one exchange."""

    __slots__ = (
        "_connecting_ns",
        "_end_kernel",
        "_end_user",
        "_fd",
        "_fresh",
        "_host",
        "_inbox",
        "_number",
        "_pulse",
        "_recvmsg",
        "_seen_ns",
        "_stale",
        "_watching_write",
        "connect_ns",
        "connection",
        "exchange",
        "ready",
        "tls_ns",
    )

    def __init__(self, host: Host) -> None:
        self._host = host
        self._pulse = host.pulse
        self.connection: Connection | None = None
        self.exchange: Exchange | None = None
        self.ready = False
        self._inbox = Inbox()
        self._fd = -1
        self._watching_write = False
        self._recvmsg: Callable[..., tuple[bytes, list[tuple[int, int, bytes]], int, object]] | None = None
        self._fresh = False
        self._stale = 0 if host.keep_alive else _TRUST
        self._seen_ns: int | None = None
        self._number = 0
        self._connecting_ns = 0
        self._end_user: int | None = None
        self._end_kernel = NO_STAMP
        self.connect_ns: int | None = None
        self.tls_ns: int | None = None

    def open(self) -> None:
        """Start connecting; `ready` turns true when requests may be sent."""
        self._inbox = Inbox()
        self._fresh = True
        self._number = self._host.next_connection()
        self._connecting_ns = monotonic_ns()
        self.connect_ns = self.tls_ns = None
        try:
            self.connection = Connection(self._host.route)
        except OSError as fault:
            self._failed("connect", fault)
            return
        self._watch_opening(Want.WRITE)

    def _watch_opening(self, want: Want) -> None:
        assert self.connection is not None  # noqa: S101 - called only while opening
        self._fd = self.connection.fileno()
        if want is Want.WRITE:
            self._host.loop.add_writer(self._fd, self._opening)
            self._watching_write = True
        else:
            self._host.loop.add_reader(self._fd, self._opening)

    def _opening(self) -> None:
        connection = self.connection
        assert connection is not None  # noqa: S101 - the watcher is removed with the connection
        self._unwatch()
        try:
            want = connection.advance()
        except TlsError as fault:
            self._failed("tls", fault)
            return
        except OSError as fault:
            self._failed("connect", fault)
            return
        now = monotonic_ns()
        if connection.connected and self.connect_ns is None:
            self.connect_ns = now - self._connecting_ns
        if want is Want.READY:
            self._opened(now)
        else:
            self._watch_opening(want)

    def _opened(self, now: int) -> None:
        if self._host.route.tls is not None and self.connect_ns is not None:
            self.tls_ns = now - self._connecting_ns - self.connect_ns
        assert self.connection is not None  # noqa: S101 - it was just opened
        self.ready = True
        self._recvmsg = self.connection.plain_recvmsg
        self._fd = self.connection.fileno()
        self._host.loop.add_reader(self._fd, self.readable)
        if self.exchange is not None:
            self._send(self.exchange)
        else:
            self._host.opened(self)

    def _failed(self, kind: ErrorKind, fault: OSError) -> None:
        self.close()
        if self.exchange is not None:
            self._finish(NO_SOCKET if fault.errno in OWN_LIMITS else kind, fault.strerror or str(fault))
        else:
            self._host.opened(self)  # tried: it will be tried again when there is something to send

    def start(self, exchange: Exchange, at_once: bool) -> None:
        """Send a request, on the open connection where there still is one.

        `at_once`: the connection was in use until this very moment, so it need not be asked whether it still is open.
        """
        self.exchange = exchange
        connection = self.connection
        if connection is not None and not self.ready:
            return  # still opening: sent when it is open
        if connection is not None and (at_once or not connection.idle_closed()):
            self._send(exchange)
        else:
            self.close()
            self.open()

    def _send(self, exchange: Exchange) -> None:
        connection = self.connection
        assert connection is not None  # noqa: S101 - sent only on an open connection
        exchange.pieces = self._inbox.expect()
        exchange.connection = self._number
        if self._fresh:
            exchange.new_connection = True
            exchange.connect_ns, exchange.tls_ns = self.connect_ns, self.tls_ns
            self._fresh = False
        exchange.previous_user, exchange.previous_kernel = self._end_user, self._end_kernel
        exchange.sent_ns = monotonic_ns()
        try:
            whole = connection.send(exchange.call.request)
        except OSError as fault:
            self._broken(fault)
            return
        if whole:
            exchange.sent_end_ns = monotonic_ns()
        else:
            self._host.loop.add_writer(self._fd, self._writable)
            self._watching_write = True

    def _writable(self) -> None:
        connection, exchange = self.connection, self.exchange
        if connection is None or exchange is None:
            return
        try:
            whole = connection.flush()
        except OSError as fault:
            self._broken(fault)
            return
        if whole:
            exchange.sent_end_ns = monotonic_ns()
            self._host.loop.remove_writer(self._fd)
            self._watching_write = False

    def readable(self) -> None:  # noqa: C901, PLR0912 - runs for every event: a call more would be paid for each
        """Read once: stamp, keep, and see whether the response is whole."""
        try:
            if self._recvmsg is not None:  # without TLS, one call less
                data, ancillary, _, _ = self._recvmsg(READ_BYTES, ANCILLARY_BYTES)
                stamp = ancillary[0][2] if ancillary else NO_STAMP
            else:
                data, stamp = self.connection.receive()  # type: ignore[union-attr]
        except BlockingIOError:
            return
        except OSError as fault:
            self._broken(fault)
            return
        now = monotonic_ns()
        exchange = self.exchange
        if not data or exchange is None:
            self._closed_by_peer()
            return
        pieces = exchange.pieces
        before = len(pieces)
        try:
            self._inbox.feed(data)
        except httptools.HttpParserError as fault:
            if not self._inbox.done:
                self.close()
                self._finish("malformed", f"not HTTP: {fault}")
                return
            self._inbox.keep_alive = False  # bytes that nobody asked for, behind a whole response
        exchange.end_user = now
        exchange.end_kernel = stamp
        if exchange.first_user is None:
            exchange.first_user = now
            exchange.first_kernel = stamp
            if not exchange.new_connection:
                self._stale = 0
        count = len(pieces) - before
        if count == 1:
            exchange.user.append(now)
            exchange.kernel += stamp
        elif count:
            exchange.user.extend((now,) * count)
            exchange.kernel += stamp * count
        pulse = self._pulse
        pulse.frames += count
        if now - pulse.beat_ns > LATE_NS:
            exchange.late.add(now)
        if self._inbox.done:
            self._whole()
        else:
            exchange.size += len(data)
            if exchange.size > STREAM_BYTES:
                self._long(exchange)

    def _whole(self) -> None:
        unsent = self.exchange is not None and self.exchange.sent_end_ns is None
        if not self._inbox.keep_alive or self._stale >= _TRUST or unsent:  # unsent: the rest would be in the next's way
            self.close()
        self._finish("whole", None)

    def _long(self, exchange: Exchange) -> None:
        self.take_head(exchange)
        if exchange.size > GIANT_BYTES:
            self.close()
            self._finish("malformed", f"an answer of more than {GIANT_BYTES >> 20} MiB")
        else:
            self._host.grown(exchange)

    def _closed_by_peer(self) -> None:
        exchange, connection = self.exchange, self.connection
        if exchange is not None and connection is not None and self._may_be_stale(exchange) and connection.was_taken():
            self._unwatch()
            self._await_reset(exchange, _RESET_LOOKS)
        else:
            self._end_by_peer()

    def _await_reset(self, exchange: Exchange, looks: int) -> None:
        """A kept connection was closed without a byte: a reset after it says that the request lay there unread."""
        if self.exchange is not exchange or self.connection is None:
            return  # given up meanwhile
        if not self.connection.was_taken():
            self._end_by_peer()
        elif looks:
            self._host.loop.call_later(_RESET_LOOK_S, self._await_reset, exchange, looks - 1)
        else:
            self._stale += 1
            self.close()
            self._finish("cut", None)

    def _end_by_peer(self) -> None:
        by_close = self._inbox.ends_by_close
        self.close()
        if self.exchange is not None and not self._sent_in_vain(self.exchange):
            self._finish("closed" if by_close else "cut", None)

    def _may_be_stale(self, exchange: Exchange) -> bool:
        return may_be_stale(exchange, monotonic_ns(), self.connect_ns or 0)

    def _broken(self, fault: OSError) -> None:
        self.close()
        if self.exchange is not None and not self._sent_in_vain(self.exchange):
            self._finish("tls" if isinstance(fault, TlsError) else "cut", fault.strerror or str(fault))

    def _sent_in_vain(self, exchange: Exchange) -> bool:
        """Whether a kept connection was closed by the server before it saw the request; then it goes out on a new one.

        Servers close kept connections whenever they like, some after every stream although they offered to keep them.
        The request was not taken, so this is no second try (RFC 9112, 9.3.1); it is counted all the same. A server that
        took the request and then closed has failed it. A lane that meets a closed connection twice running closes its
        connections itself from then on.
        """
        if not self._may_be_stale(exchange):
            return False
        self._stale += 1
        self._host.resent += 1
        exchange.sent_ns = exchange.sent_end_ns = None
        self.open()
        return True

    def abort(self, ending: str, detail: str | None = None) -> None:
        """End the request on its way from our side, or the opening ahead of one; the connection goes with it."""
        self.close()
        if self.exchange is not None:
            self._finish(ending, detail)
        else:
            self._host.opened(self)

    def take_head(self, exchange: Exchange) -> bool:
        """Note status and headers as far as they have come; False before they are whole."""
        exchange.status = self._inbox.status
        exchange.headers = self._inbox.headers
        return self._inbox.headers_done

    def _finish(self, ending: str, detail: str | None) -> None:
        exchange = self.exchange
        assert exchange is not None  # noqa: S101 - every caller has looked
        self.exchange = None
        exchange.ending = ending
        exchange.detail = detail
        if exchange.sent_ns is not None:
            self.take_head(exchange)
        exchange.ended_ns = monotonic_ns()
        if ending in ("whole", "closed"):
            self._end_user, self._end_kernel = exchange.end_user, exchange.end_kernel
        else:
            self._end_user, self._end_kernel = exchange.ended_ns, NO_STAMP
        self._host.ended(self, exchange)

    def overdue(self, now: int, limits: Limits) -> ErrorKind | None:
        """Which limit the request on its way has passed, or the connection that is opened ahead; None: none."""
        exchange = self.exchange
        if exchange is not None and exchange.sent_ns is not None:
            return limit_passed(exchange, now, limits)
        opening = self.connection is not None and not self.ready
        if opening and passed(now, self._connecting_ns, limits.connect_ns):
            return "timeout_connect"
        late = exchange is not None and passed(now, exchange.started_ns, limits.total_ns)
        return "timeout_total" if late else None

    def look_after(self, now: int) -> None:
        """Read where nothing came for a while: uvloop tells of a reset once, and not if data came just before it."""
        exchange = self.exchange
        if exchange is None or exchange.end_user is None or exchange.end_user == self._seen_ns or not self.ready:
            return
        if now - exchange.end_user > _SILENCE_NS:
            self._seen_ns = exchange.end_user
            self.readable()

    def close(self) -> None:
        """Close the connection, if any; the lane can be started again."""
        if self.connection is not None:
            self._unwatch()
            self.connection.close()
            self.connection = None
        self.ready = False

    def _unwatch(self) -> None:
        if self._fd < 0:
            return
        self._host.loop.remove_reader(self._fd)
        if self._watching_write:
            self._host.loop.remove_writer(self._fd)
            self._watching_write = False
        self._fd = -1
