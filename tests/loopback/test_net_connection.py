"""One connection on real sockets: addresses in turn, TLS 1.3, tunnels, stamps, backpressure, and what a peer may do."""

from __future__ import annotations

import select
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.loopback.driving import free_port
from tests.loopback.scripted import Certificate, Handler, Scripted, answering, certificate, ok, take_request

from nilometer.net.connection import NO_STAMP, Connection, TlsError, Want
from nilometer.net.endpoint import parse
from nilometer.net.route import Route, resolve

REQUEST = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return certificate(tmp_path_factory.mktemp("tls"))


def wait(connection: Connection, want: Want) -> None:
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLOUT if want is Want.WRITE else select.POLLIN)
    assert poll.poll(5000), f"nothing happened while waiting for {want!r}"


def opened(route: Route) -> Connection:
    connection = Connection(route)
    try:
        want = Want.WRITE
        while want is not Want.READY:
            wait(connection, want)
            want = connection.advance()
    except BaseException:
        connection.close()
        raise
    return connection


@pytest.fixture
def closing() -> Iterator[list[Connection]]:
    """Connections put in here are closed after the test."""
    kept: list[Connection] = []
    yield kept
    for connection in kept:
        connection.close()


def sent(connection: Connection, data: bytes) -> None:
    whole = connection.send(data)
    while not whole:
        wait(connection, Want.WRITE)
        whole = connection.flush()


def received(connection: Connection, size: int | None = None) -> tuple[bytes, list[bytes]]:
    """What comes up to `size` bytes or the end, and the stamps of the reads."""
    data, stamps = b"", list[bytes]()
    while size is None or len(data) < size:
        wait(connection, Want.READ)
        try:
            more, stamp = connection.receive()
        except BlockingIOError:
            continue
        if not more:
            return data, stamps
        data += more
        stamps.append(stamp)
    return data, stamps


def wall_ns(stamp: bytes) -> int:
    seconds, ns = struct.unpack("qq", stamp)
    return int(seconds) * 1_000_000_000 + int(ns)


def trusting(made: Certificate, url: str) -> Route:
    """A route that trusts the test's own certificate, and checks it."""
    context = ssl.create_default_context(cafile=str(made.certificate))
    return resolve(parse(url))._replace(tls=context)


# -- plain ------------------------------------------------------------------------------------------------------------


def test_a_request_and_its_answer(closing: list[Connection]) -> None:
    with Scripted(answering(ok(b"hello"), close=True)) as server:
        closing.append(connection := opened(resolve(parse(server.url))))
        assert connection.plain_recvmsg is not None
        before = time.time_ns()
        sent(connection, REQUEST)
        data, stamps = received(connection)
        after = time.time_ns()
    assert data == ok(b"hello")
    if connection.kernel_stamps:
        assert before <= wall_ns(stamps[0]) <= after
    else:
        assert stamps == [NO_STAMP] * len(stamps)


def test_a_refusal_is_an_oserror() -> None:
    with pytest.raises(ConnectionRefusedError):
        opened(resolve(parse(f"http://127.0.0.1:{free_port()}")))


@pytest.mark.parametrize("first", [(socket.AF_INET6, "::1"), (socket.AF_INET, "127.0.0.2"), (9999, "127.0.0.1")])
def test_the_next_address_is_tried(first: tuple[int, str], closing: list[Connection]) -> None:
    """::1 where the server listens on 127.0.0.1 alone, and a family this machine does not have."""
    family, host = first
    with Scripted(answering(ok(b"x"), close=True)) as server:
        route = resolve(parse(server.url))
        route = route._replace(addresses=((family, (host, server.port)), *route.addresses))
        closing.append(connection := opened(route))
        sent(connection, REQUEST)
        assert received(connection)[0] == ok(b"x")


def test_the_last_address_names_the_fault() -> None:
    port = free_port()
    addresses = ((9999, ("127.0.0.1", port)), (socket.AF_INET, ("127.0.0.1", port)))
    with pytest.raises(ConnectionRefusedError):
        opened(resolve(parse(f"http://127.0.0.1:{port}"))._replace(addresses=addresses))
    with pytest.raises(OSError, match="not supported"):
        opened(resolve(parse(f"http://127.0.0.1:{port}"))._replace(addresses=addresses[:1]))


def test_a_large_request_goes_out_bit_by_bit(closing: list[Connection]) -> None:
    go = threading.Event()
    body = bytes(range(256)) * 40_000  # 10 MB: more than any socket buffer

    def slow(sock: socket.socket) -> None:
        go.wait(10)
        server.seen.append(take_request(sock))
        sock.sendall(ok(b"x"))

    request = b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    with Scripted(slow) as server:
        closing.append(connection := opened(resolve(parse(server.url))))
        assert not connection.send(request)  # some is left
        assert not connection.flush()  # and the server takes none
        go.set()
        while not connection.flush():
            wait(connection, Want.WRITE)
        assert received(connection, len(ok(b"x")))[0] == ok(b"x")
    assert server.seen == [request]


def spoken(sock: socket.socket) -> None:
    """Says something unasked after the first answer."""
    take_request(sock)
    sock.sendall(ok(b"x"))
    time.sleep(0.05)  # not in the same read
    sock.sendall(b"more")
    take_request(sock)


def closed(sock: socket.socket) -> None:
    take_request(sock)
    sock.sendall(ok(b"x"))


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize(
    ("handle", "gone"), [(answering(ok(b"x")), False), (closed, True), (spoken, True)], ids=["kept", "closed", "spoken"]
)
def test_whether_a_kept_connection_is_still_good(
    tls: bool, handle: Handler, gone: bool, made: Certificate, closing: list[Connection]
) -> None:
    with Scripted(handle, made.server() if tls else None) as server:
        closing.append(connection := opened(resolve(parse(server.url), insecure=True)))
        sent(connection, REQUEST)
        received(connection, len(ok(b"x")))
        if gone:
            wait(connection, Want.READ)
        assert connection.idle_closed() is gone  # TLS 1.3 session tickets alone are no end
        if not gone:
            sent(connection, REQUEST)
            assert received(connection, len(ok(b"x")))[0] == ok(b"x")


# -- TLS --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_tls_with_a_certificate_that_is_trusted(host: str, made: Certificate, closing: list[Connection]) -> None:
    with Scripted(answering(ok(b"hello"), close=True), made.server()) as server:
        closing.append(connection := opened(trusting(made, f"https://{host}:{server.port}")))
        assert connection.plain_recvmsg is None
        sent(connection, REQUEST)
        data, stamps = received(connection)
    assert data == ok(b"hello")
    assert all(stamp != NO_STAMP for stamp in stamps) == connection.kernel_stamps


def test_much_goes_both_ways_through_tls(made: Certificate, closing: list[Connection]) -> None:
    body = bytes(range(256)) * 8_000  # 2 MB, some 125 records

    def echo(sock: socket.socket) -> None:
        sock.sendall(ok(take_request(sock).partition(b"\r\n\r\n")[2]))

    with Scripted(echo, made.server()) as server:
        closing.append(connection := opened(resolve(parse(server.url), insecure=True)))
        sent(connection, b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        assert received(connection)[0] == ok(body)


def test_a_certificate_nobody_vouches_for_is_refused(made: Certificate) -> None:
    with Scripted(answering(ok(b"x")), made.server()) as server, pytest.raises(TlsError) as seen:
        opened(resolve(parse(server.url)))
    assert "CERTIFICATE_VERIFY_FAILED" in str(seen.value)


def test_a_certificate_for_another_name_is_refused(tmp_path: Path) -> None:
    other = certificate(tmp_path, "other.example")
    with Scripted(answering(ok(b"x")), other.server()) as server, pytest.raises(TlsError):
        opened(trusting(other, f"https://localhost:{server.port}"))


def hang_up(sock: socket.socket) -> None:
    sock.recv(65536)


def reset(sock: socket.socket) -> None:
    sock.recv(10)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@pytest.mark.parametrize("handle", [hang_up, reset, answering(ok(b"x"))], ids=["closed", "reset", "plain http"])
def test_a_handshake_that_breaks_is_a_tls_error(handle: Handler) -> None:
    def in_time(sock: socket.socket) -> None:
        sock.settimeout(0.2)  # a plain server never sees the end of a request in a client hello
        handle(sock)

    with Scripted(in_time) as server, pytest.raises(TlsError):
        opened(resolve(parse(server.url.replace("http", "https")), insecure=True))


def test_what_comes_behind_the_end_of_tls_is_left_alone(made: Certificate, closing: list[Connection]) -> None:
    """Data, close_notify and garbage in one segment: the data counts, then it is over."""
    context = made.server()

    def rude(sock: socket.socket) -> None:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(incoming, outgoing, server_side=True)
        for _ in range(10):
            incoming.write(sock.recv(65536))
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                sock.sendall(outgoing.read())
        tls.write(b"last words")
        with suppress(ssl.SSLWantReadError):
            tls.unwrap()
        sock.sendall(outgoing.read() + b"garbage" * 3)

    with Scripted(rude) as server:
        closing.append(connection := opened(resolve(parse(server.url.replace("http", "https")), insecure=True)))
        assert received(connection)[0] == b"last words"


# -- proxies ----------------------------------------------------------------------------------------------------------


def proxy(reply: bytes, target: int | None = None) -> Handler:
    """A proxy that gives this reply to CONNECT, and then joins both sides where there is a target."""

    def handle(sock: socket.socket) -> None:
        handle.asked.append(take_request(sock))  # type: ignore[attr-defined]
        for byte in reply:
            sock.sendall(bytes([byte]))
        if target is not None:
            with socket.create_connection(("127.0.0.1", target)) as onward:
                back = threading.Thread(target=pump, args=(onward, sock), daemon=True)
                back.start()
                pump(sock, onward)
                back.join(5)

    handle.asked = []  # type: ignore[attr-defined]
    return handle


def pump(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        return


def test_tls_through_a_tunnel(made: Certificate, closing: list[Connection]) -> None:
    with Scripted(answering(ok(b"through"), close=True), made.server()) as server:
        handle = proxy(b"HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\n", server.port)
        with Scripted(handle) as between:
            told = f"http://user:pass@127.0.0.1:{between.port}"
            context = ssl.create_default_context(cafile=str(made.certificate))
            route = resolve(parse(server.url), proxy=told)._replace(tls=context)
            closing.append(connection := opened(route))
            sent(connection, REQUEST)
            assert received(connection, len(ok(b"through")))[0] == ok(b"through")
            connection.close()
    (asked,) = handle.asked  # type: ignore[attr-defined]
    assert asked.startswith(f"CONNECT 127.0.0.1:{server.port} HTTP/1.1\r\n".encode())
    assert b"Proxy-Authorization: Basic dXNlcjpwYXNz" in asked


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n",
        b"HTTP/1.1 502 no 200 today\r\n\r\n",
        b"HTTP/1.1 20",
        b"",
        b"x" * 20_000,
    ],
)
def test_a_tunnel_that_is_refused_is_a_failed_connection(reply: bytes) -> None:
    with Scripted(proxy(reply)) as between, pytest.raises(ConnectionError) as seen:
        opened(resolve(parse("https://127.0.0.1:1"), proxy=between.url))
    assert "proxy" in str(seen.value)
