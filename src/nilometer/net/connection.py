"""One connection: a non-blocking socket of our own, TLS through memory buffers, kernel receive stamps.

It knows no HTTP beyond a proxy's CONNECT and no event loop: whoever drives it waits for what `advance` wants. It must
not parse or keep what it reads.
"""

from __future__ import annotations

import errno
import os
import socket
import ssl
import struct
import sys
from collections.abc import Callable
from enum import IntEnum
from typing import Any

from .route import Route

READ_BYTES = 65536
SO_TIMESTAMPNS = 35
"""Linux, asm-generic/socket.h; the name is missing in `socket` before 3.13."""
_STAMP_BYTES = 16
ANCILLARY_BYTES = socket.CMSG_SPACE(_STAMP_BYTES) if hasattr(socket, "CMSG_SPACE") else 0
NO_STAMP = b"\xff" * _STAMP_BYTES
"""In place of a kernel stamp that was not there: both halves of the timespec are -1."""
_TUNNEL_LIMIT = 16384
_TCP_INFO_BYTES = 104
_TCP_CLOSE = 7
_UNACKED = struct.Struct("=I")
_UNACKED_AT = 24
"""Linux, struct tcp_info in linux/tcp.h: the state is its first byte, tcpi_unacked its fifth u32 after 8 bytes."""
OWN_LIMITS = (errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS, errno.ENOMEM)
"""What says that this machine has no socket left to connect with: files, ports, memory."""


class Want(IntEnum):
    """What an opening connection waits for."""

    READY = 0
    READ = 1
    WRITE = 2


class TlsError(OSError):
    """The handshake failed, or the peer broke the TLS protocol."""


class CertificateError(TlsError):
    """The peer's certificate was not accepted; `detail` says why."""

    def __init__(self, fault: ssl.SSLCertVerificationError) -> None:
        super().__init__(fault.errno, f"{fault.reason}: {fault.verify_message}")
        self.detail = fault.verify_message.rstrip(".")


class ProxyError(ConnectionError):
    """The proxy before the target was not there, or refused: then with the `status` of its answer."""

    def __init__(self, proxy: str, code: int, detail: str, status: int | None = None) -> None:
        super().__init__(code, f"proxy {proxy}: {detail}")
        self.proxy = proxy
        self.detail = detail
        self.status = status


class Connection:
    """One TCP (and TLS) connection along a Route."""

    __slots__ = (
        "_address",
        "_incoming",
        "_outgoing",
        "_recvmsg",
        "_route",
        "_stage",
        "_tls",
        "_tunnel_reply",
        "_unsent",
        "kernel_stamps",
        "sock",
    )

    def __init__(self, route: Route) -> None:
        self._route = route
        self._address = -1
        self._tls: ssl.SSLObject | None = None
        self._unsent = b""
        self._tunnel_reply = b""
        self._stage = "connect"
        self.kernel_stamps = False
        self.sock = self._next_socket()

    def _next_socket(self) -> socket.socket:
        """Start a non-blocking connect to the next address. Raises the last OSError when none is left."""
        self._address += 1
        family, address = self._route.addresses[self._address]
        try:
            self.sock = sock = socket.socket(family, socket.SOCK_STREAM)
        except OSError as fault:  # a family this machine does not have, or no file left
            return self._after_refusal(fault.errno or errno.EAFNOSUPPORT)
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.kernel_stamps = _ask_for_stamps(sock)
        self._recvmsg = sock.recvmsg
        code = sock.connect_ex(address)
        if code not in (0, errno.EINPROGRESS, errno.EWOULDBLOCK):
            sock.close()
            return self._after_refusal(code)
        return sock

    def _after_refusal(self, code: int) -> socket.socket:
        if self._address + 1 < len(self._route.addresses):
            return self._next_socket()
        if self._route.proxy is not None:
            raise ProxyError(self._route.proxy, code, os.strerror(code))
        raise OSError(code, os.strerror(code))

    @property
    def plain_recvmsg(self) -> Callable[..., tuple[bytes, list[tuple[int, int, bytes]], int, object]] | None:
        """The socket's own recvmsg, for a reader that must be quick; None where TLS has to be taken off first."""
        return None if self._tls is not None else self._recvmsg

    def fileno(self) -> int:
        return self.sock.fileno()

    @property
    def connected(self) -> bool:
        """Whether the TCP connection stands; tunnel and handshake may still be to come."""
        return self._stage != "connect"

    @property
    def at_proxy(self) -> bool:
        """Whether it is a proxy's turn: to be there, or to make the tunnel."""
        return self._route.proxy is not None and self._stage in ("connect", "tunnel")

    def advance(self) -> Want:
        """Go on with connecting, tunnel and handshake; READY when requests may be sent.

        It stops when the TCP connection stands, so that its time can be told from the handshake's. The socket may be
        another one afterwards (next address): ask `fileno` again. Raises OSError, TlsError.
        """
        if self._stage == "connect":
            code = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                self.sock.close()
                self._after_refusal(code)
                return Want.WRITE
            self._enter_next_stage()
            return Want.READY if self._stage == "open" else Want.WRITE
        if self._stage == "tunnel" and not self._tunnel_done():
            return Want.READ
        if self._stage == "tls":
            return self._handshake()
        return Want.READY

    def _enter_next_stage(self) -> None:
        route = self._route
        if self._stage == "connect" and route.tunnel:
            self._stage = "tunnel"
            self.sock.send(route.tunnel)
        elif route.tls is not None:
            self._stage = "tls"
            self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            self._tls = route.tls.wrap_bio(self._incoming, self._outgoing, server_hostname=route.server_name)
        else:
            self._stage = "open"

    def _tunnel_done(self) -> bool:
        try:
            data = self.sock.recv(READ_BYTES)
        except BlockingIOError:
            return False
        self._tunnel_reply += data
        if not data or len(self._tunnel_reply) > _TUNNEL_LIMIT:
            raise self._no_tunnel("it closed the connection without making the tunnel")
        head, end, _ = self._tunnel_reply.partition(b"\r\n\r\n")
        if not end:
            return False
        status = head.split(b" ", 2)[1:2]
        if status != [b"200"]:
            told = head.partition(b"\r\n")[0][:60].decode("latin-1")
            raise self._no_tunnel(told, int(status[0]) if status and status[0].isdigit() else None)
        self._enter_next_stage()
        return True

    def _no_tunnel(self, detail: str, status: int | None = None) -> ProxyError:
        return ProxyError(self._route.proxy or "", errno.ECONNREFUSED, detail, status)

    def _handshake(self) -> Want:
        assert self._tls is not None  # noqa: S101 - the stage says so
        try:
            while True:
                try:
                    self._tls.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    self._flush_tls()
                    if not self._pull():
                        return Want.READ
            self._flush_tls()
        except ssl.SSLCertVerificationError as fault:
            raise CertificateError(fault) from None
        except ssl.SSLError as fault:
            raise TlsError(fault.errno, str(fault.reason or fault)) from None
        except TlsError:
            raise
        except OSError as fault:
            raise TlsError(fault.errno, f"the connection broke during the handshake: {fault.strerror}") from None
        self._stage = "open"
        return Want.READY

    def _pull(self) -> bool:
        """Move what the socket has into the TLS buffer; False when there is nothing yet."""
        try:
            data = self.sock.recv(READ_BYTES)
        except BlockingIOError:
            return False
        if not data:
            raise TlsError(errno.ECONNRESET, "the peer closed the connection during the handshake")
        self._incoming.write(data)
        return True

    def receive(self) -> tuple[bytes, bytes]:
        """(bytes, kernel stamp as 16 raw bytes of a timespec, or NO_STAMP); (b"", ...) at the end of the stream.

        Raises BlockingIOError when nothing is there (with TLS: no whole record yet), OSError when it broke.
        """
        data, ancillary, _, _ = self._recvmsg(READ_BYTES, ANCILLARY_BYTES)
        stamp = ancillary[0][2] if ancillary else NO_STAMP
        if self._tls is not None and data:
            data = self._decrypt(data)
        return data, stamp

    def _decrypt(self, data: bytes) -> bytes:
        tls = self._tls
        assert tls is not None  # noqa: S101 - called only with TLS
        self._incoming.write(data)
        try:
            plain = tls.read(READ_BYTES)
            while plain and (tls.pending() or self._incoming.pending):
                try:
                    more = tls.read(READ_BYTES)
                except ssl.SSLWantReadError:
                    break
                if not more:  # the peer has said that it ends
                    break
                plain += more
        except ssl.SSLWantReadError:
            self._flush_tls()
            raise BlockingIOError from None
        except ssl.SSLZeroReturnError:
            return b""
        except ssl.SSLError as fault:
            raise TlsError(fault.errno, str(fault.reason or fault)) from None
        return plain

    def send(self, data: bytes) -> bool:
        """Hand `data` to the kernel; False when some is left for `flush`. Raises OSError."""
        if self._tls is not None:
            self._tls.write(data)
            self._flush_tls()
            return not self._unsent
        try:
            done = self.sock.send(data)
        except BlockingIOError:
            done = 0
        if done == len(data):
            return True
        self._unsent = data[done:]
        return False

    def flush(self) -> bool:
        """Hand over what `send` left; True when all is gone."""
        try:
            done = self.sock.send(self._unsent)
        except BlockingIOError:
            return False
        self._unsent = self._unsent[done:]
        return not self._unsent

    def _flush_tls(self) -> None:
        if self._outgoing.pending:
            self._unsent += self._outgoing.read()
        if self._unsent:
            self.flush()

    def handshake(self) -> tuple[str | None, dict[str, Any]]:
        """TLS version and the peer's certificate as `SSLObject.getpeercert` gives it; None and empty without TLS."""
        if self._tls is None:
            return None, {}
        return self._tls.version(), self._tls.getpeercert() or {}

    def was_taken(self) -> bool:
        """Whether the peer acknowledged all that was sent and ended in good order: then it had the request.

        False after a reset, or with bytes that were never acknowledged: it had closed before they came. Where the
        platform does not tell (no TCP_INFO), False.
        """
        if not sys.platform.startswith("linux"):
            return False
        info = self.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
        (unacknowledged,) = _UNACKED.unpack_from(info, _UNACKED_AT)
        return info[0] != _TCP_CLOSE and unacknowledged == 0

    def idle_closed(self) -> bool:
        """Whether the peer has closed (or spoken on) a connection on which nothing is asked."""
        try:
            self.sock.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return self._tls is None or self._post_handshake_only()

    def _post_handshake_only(self) -> bool:
        """TLS peers may speak unasked (session tickets): take that in, and say whether it was an end."""
        try:
            self.receive()
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True

    def close(self) -> None:
        self.sock.close()


def _ask_for_stamps(sock: socket.socket) -> bool:
    """Ask the kernel to stamp what arrives (CLOCK_REALTIME, ns). False where the platform has no such stamps."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    except OSError:
        return False
    return True
