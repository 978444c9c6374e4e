"""A server whose connections are handled by a function of the test, with or without TLS; and certificates for it."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

Handler = Callable[[socket.socket], None]


class Scripted:
    """Listens on a free loopback port and hands each connection to `handle` in a thread of its own.

    The connection is closed when the function returns; what it raises of OSError (the client left) is no fault.
    `accepted` counts connections, `seen` holds what handlers wish to keep.
    """

    def __init__(self, handle: Handler, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> None:
        self._handle = handle
        self._tls = tls
        self._host = host
        self.accepted = 0
        self.seen: list[bytes] = []
        self.over = threading.Event()
        self._threads: list[threading.Thread] = []
        self._open: set[socket.socket] = set()

    def __enter__(self) -> Scripted:
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        self._listener = socket.create_server((self._host, 0), family=family, backlog=1024)
        self.port: int = self._listener.getsockname()[1]
        host = f"[{self._host}]" if ":" in self._host else self._host
        self.url = f"{'https' if self._tls else 'http'}://{host}:{self.port}"
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        with socket.socket(self._listener.family) as waker:
            waker.connect_ex((self._host, self.port))
        self._accepting.join(10)
        for sock in list(self._open):
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue
        for thread in self._threads:
            thread.join(10)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            sock, _ = self._listener.accept()
            if self.over.is_set():
                sock.close()
                return
            self.accepted += 1
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._open.add(sock)
            thread = threading.Thread(target=self._serve, args=(sock,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, sock: socket.socket) -> None:
        try:
            if self._tls is not None:
                plain, sock = sock, self._tls.wrap_socket(sock, server_side=True)
                self._open.discard(plain)
                self._open.add(sock)
            self._handle(sock)
        except OSError:
            pass
        finally:
            self._open.discard(sock)
            sock.close()


def take_request(sock: socket.socket) -> bytes:
    """One whole request with its content-length body; b"" at the end of the connection."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = sock.recv(65536)
        if not more:
            return b""
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    length = 0
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            length = int(line.partition(b":")[2])
    while len(body) < length:
        more = sock.recv(65536)
        if not more:
            return b""
        body += more
    return head + b"\r\n\r\n" + body


def answering(answer: bytes, close: bool = False) -> Handler:
    """Answers each request of a connection with these bytes."""

    def handle(sock: socket.socket) -> None:
        while take_request(sock):
            sock.sendall(answer)
            if close:
                return

    return handle


def ok(body: bytes, *head: str) -> bytes:
    """A 200 with a content length and these header lines more."""
    lines = ["HTTP/1.1 200 OK", f"Content-Length: {len(body)}", *head]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class Certificate(NamedTuple):
    """A self-signed certificate for localhost and 127.0.0.1."""

    certificate: Path
    key: Path

    def server(self) -> ssl.SSLContext:
        """TLS 1.3 alone."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.load_cert_chain(self.certificate, self.key)
        return context


def certificate(folder: Path, name: str = "localhost") -> Certificate:
    """Made by the openssl program."""
    made = Certificate(folder / "server.pem", folder / "server.key")
    command = [
        *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
        *("-keyout", str(made.key), "-out", str(made.certificate), "-days", "2", "-subj", f"/CN={name}"),
        *("-addext", f"subjectAltName=DNS:{name}" + (",IP:127.0.0.1" if name == "localhost" else "")),
    ]
    subprocess.run(command, check=True, capture_output=True)
    return made
