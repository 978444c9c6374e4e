"""The ways a load may go: on asyncio's own loop where uvloop is missing, through proxies, past a stalled handshake."""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
from pathlib import Path

import pytest
from tests.loopback.driving import MS, SHORT, S, calls, drive_here, due_calls, event, order, request
from tests.loopback.replay import Replay, Reply
from tests.loopback.scripted import Certificate, Scripted, answering, certificate, ok, take_request

from nilometer.core.record import Call
from nilometer.load.order import Limits
from nilometer.load.worker import new_event_loop
from nilometer.net.endpoint import parse
from nilometer.net.route import resolve

ANSWER = ok(SHORT, "Content-Type: text/event-stream")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def without_uvloop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    loop = new_event_loop()
    assert type(loop).__module__.startswith("asyncio")
    assert isinstance(loop, asyncio.AbstractEventLoop)
    loop.close()


# -- without uvloop ---------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("without_uvloop")
def test_closed_and_open_loop_without_uvloop(tmp_path: Path) -> None:
    steady = Reply(SHORT, schedule=((5, len(event("a"))), (15, len(SHORT) - len(event("a")))), ending="keep")
    with Replay(steady) as replay:
        outcome = drive_here(order(tmp_path, replay.url, lanes=4, requests=40), calls(100))
        assert outcome.kinds() == {("ok", None): 40}
        assert outcome.health.event_loop == "asyncio"
        second = tmp_path / "open"
        second.mkdir()
        outcome = drive_here(order(second, replay.url, lanes=None, duration_ns=5 * S), due_calls([10, 20, 120]))
    assert outcome.kinds() == {("ok", None): 3}
    assert min((record.sent_ns or 0) - (record.due_ns or 0) for record in outcome.records) >= 0


@pytest.mark.usefixtures("without_uvloop")
@pytest.mark.parametrize("ending", ["cut", "reset"])
def test_a_cut_without_uvloop(ending: str, tmp_path: Path) -> None:
    reply = Reply(event("a"), ending="cut" if ending == "cut" else "reset")
    with Replay(reply) as replay:
        outcome = drive_here(order(tmp_path, replay.url, lanes=2, requests=10), calls(20))
    assert outcome.kinds() == {("incomplete", None): 10}


@pytest.mark.usefixtures("without_uvloop")
def test_tls_and_a_limit_without_uvloop(made: Certificate, tmp_path: Path) -> None:
    def handle(sock: socket.socket) -> None:
        while asked := take_request(sock):
            if b"X-Seq: 2\r" in asked:
                server.over.wait(10)
                return
            sock.sendall(ANSWER)

    with Scripted(handle, made.server()) as server:
        told = order(tmp_path, server.url, requests=4, insecure=True, limits=Limits(first_ns=200 * MS))
        outcome = drive_here(told, calls(10))
    assert outcome.kinds() == {("ok", None): 3, ("error", "timeout_first_token"): 1}


# -- through proxies --------------------------------------------------------------------------------------------------


def test_a_plain_proxy_gets_the_requests_as_they_were_made(tmp_path: Path) -> None:
    """The calls hold the absolute form: what matters here is where they go."""
    asked: list[bytes] = []

    def handle(sock: socket.socket) -> None:
        while data := take_request(sock):
            asked.append(data)
            sock.sendall(ANSWER)

    with Scripted(handle) as between:
        route = resolve(parse("http://10.255.255.1:8000"), proxy=between.url)
        target = route.target("/v1/chat/completions")
        supply = [Call(seq, request("10.255.255.1:8000", target)) for seq in range(4)]
        told = order(tmp_path, "http://10.255.255.1:8000", requests=4, proxy=between.url)
        outcome = drive_here(told, supply)
    assert outcome.kinds() == {("ok", None): 4}
    assert all(data.startswith(b"POST http://10.255.255.1:8000/v1/chat/completions HTTP/1.1\r\n") for data in asked)
    assert outcome.health.connections_opened == 1


def tunnelling(port: int) -> tuple[list[bytes], Scripted]:
    """A proxy that joins both sides after CONNECT, whatever is asked for; what it was asked."""
    asked: list[bytes] = []

    def pump(source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            return

    def handle(sock: socket.socket) -> None:
        asked.append(take_request(sock))
        sock.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        with socket.create_connection(("127.0.0.1", port)) as onward:
            back = threading.Thread(target=pump, args=(onward, sock), daemon=True)
            back.start()
            pump(sock, onward)
            back.join(5)

    return asked, Scripted(handle)


def test_tls_through_a_tunnel(made: Certificate, tmp_path: Path) -> None:
    with Scripted(answering(ANSWER), made.server()) as server:
        asked, proxy = tunnelling(server.port)
        with proxy as between:
            told = order(tmp_path, server.url, lanes=2, requests=8, insecure=True, proxy=between.url)
            outcome = drive_here(told, calls(20))
    assert outcome.kinds() == {("ok", None): 8}
    assert len(asked) == outcome.health.connections_opened == 2
    assert all(data.startswith(f"CONNECT 127.0.0.1:{server.port} HTTP/1.1\r\n".encode()) for data in asked)
    first = [record for record in outcome.records if record.new_connection]
    assert all((record.connect_ns or 0) > 0 and (record.tls_ns or 0) > 0 for record in first)


def test_a_tunnel_that_is_refused_is_a_failure_to_connect(tmp_path: Path) -> None:
    with Scripted(answering(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")) as between:
        told = order(tmp_path, "https://127.0.0.1:1", requests=2, proxy=between.url)
        outcome = drive_here(told, calls(5))
    assert outcome.kinds() == {("error", "connect"): 2}
    assert all("407" in (record.error_detail or "") for record in outcome.records)


# -- stalled openings -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("proxied", [False, True])
def test_a_handshake_or_a_tunnel_that_stalls_is_held_to_the_limit_on_connecting(proxied: bool, tmp_path: Path) -> None:
    def silent(sock: socket.socket) -> None:
        sock.recv(65536)
        server.over.wait(10)

    with Scripted(silent) as server:
        url = f"https://127.0.0.1:{server.port}"
        told = order(
            tmp_path,
            url if not proxied else "https://127.0.0.1:1",
            lanes=2,
            requests=2,
            limits=Limits(connect_ns=250 * MS),
            insecure=True,
            proxy=server.url if proxied else None,
        )
        outcome = drive_here(told, calls(5))
    assert outcome.kinds() == {("error", "timeout_connect"): 2}
    assert all(record.sent_ns is None for record in outcome.records)
