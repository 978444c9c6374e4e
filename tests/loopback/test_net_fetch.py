"""`fetch` against servers that answer, do not, or do otherwise: the answer, or the slug that says why there is none."""

from __future__ import annotations

import socket
import time

import pytest
from tests.loopback.driving import free_port
from tests.loopback.scripted import Certificate, Handler, Scripted, answering, certificate, ok, take_request

from nilometer.core.errors import TargetError
from nilometer.net.fetch import fetch


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return certificate(tmp_path_factory.mktemp("tls"))


def after_request(*writes: bytes | float, hang: bool = False) -> Handler:
    """Takes a request, then writes and sleeps (s) in turn."""

    def handle(sock: socket.socket) -> None:
        server_over = time.monotonic() + 10
        handle.asked.append(take_request(sock))  # type: ignore[attr-defined]
        for write in writes:
            if isinstance(write, float):
                time.sleep(write)
            else:
                sock.sendall(write)
        if hang:
            sock.settimeout(max(0.1, server_over - time.monotonic()))
            sock.recv(1)

    handle.asked = []  # type: ignore[attr-defined]
    return handle


def failing(handle: Handler, **fields: object) -> TargetError:
    with Scripted(handle) as server, pytest.raises(TargetError) as seen:
        fetch(server.url, **fields)  # type: ignore[arg-type]
    assert str(seen.value.params["url"]).startswith(server.url)
    return seen.value


def test_an_answer_is_given_back_whole() -> None:
    handle = after_request(0.05, ok(b"[]", "Content-Type: application/json", "X-Twice: é"))
    with Scripted(handle) as server:
        response = fetch(f"{server.url}/v1/models?x=1", headers={"X-A": "b"})
    assert (response.status, response.body) == (200, b"[]")
    assert response.headers["content-type"] == "application/json"
    assert 50_000_000 <= response.elapsed_ns < 5_000_000_000
    (asked,) = handle.asked  # type: ignore[attr-defined]
    assert asked.startswith(b"GET /v1/models?x=1 HTTP/1.1\r\n")
    assert b"\r\nX-A: b\r\n" in asked


def test_a_body_is_posted() -> None:
    handle = after_request(ok(b""))
    with Scripted(handle) as server:
        assert fetch(server.url, method="POST", body=b"{}").body == b""
    assert handle.asked[0].endswith(b"Content-Length: 2\r\n\r\n{}")  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("answer", "status", "body"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", 200, b"until the end"),
        (b"HTTP/1.0 200 OK\r\n\r\n", 200, b""),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n", 200, b"ab"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + ok(b"x"), 200, b"x"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b""),
        (b"HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", 302, b""),
        (b"HTTP/1.1 503 X\r\nContent-Length: 4\r\n\r\nbusy", 503, b"busy"),
        (ok(b"x") + b"garbage behind it", 200, b"x"),
    ],
)
def test_every_answer_that_is_one(answer: bytes, status: int, body: bytes) -> None:
    with Scripted(after_request(answer)) as server:
        response = fetch(server.url)
    assert (response.status, response.body) == (status, body)
    assert server.accepted == 1  # nothing is retried, no redirect followed


def test_nothing_listens() -> None:
    url = f"http://user:canary@127.0.0.1:{free_port()}"
    with pytest.raises(TargetError) as seen:
        fetch(url)
    assert (seen.value.slug, seen.value.exit_code) == ("connect_refused", 3)
    assert "canary" not in str(seen.value)


def test_a_name_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(TargetError) as seen:
        fetch("http://nobody.test")
    assert seen.value.slug == "name_unknown"


@pytest.mark.parametrize(
    "handle", [after_request(hang=True), after_request(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx", hang=True)]
)
def test_a_silent_server_is_waited_for_no_longer_than_said(handle: Handler) -> None:
    start = time.monotonic()
    fault = failing(handle, timeout_s=0.3)
    assert fault.slug == "timeout"
    assert fault.params["seconds"] == 0.3
    assert 0.3 <= time.monotonic() - start < 3


def test_a_trickle_does_not_extend_the_limit() -> None:
    trickle: list[bytes | float] = [b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"]
    for _ in range(60):
        trickle += [0.05, b"x"]
    start = time.monotonic()
    assert failing(after_request(*trickle), timeout_s=0.4).slug == "timeout"
    assert time.monotonic() - start < 2.5  # the server alone would take 3 s


@pytest.mark.parametrize(
    "part",
    [
        b"",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc",
        b"HTTP/1.1 100 Continue\r\n\r\n",
    ],
)
def test_an_answer_cut_short(part: bytes) -> None:
    assert failing(after_request(part)).slug == "connection_cut"


@pytest.mark.parametrize("garbage", [b"garbage\r\n\r\n", b"SSH-2.0-x\r\n", b"\x15\x03\x03\x00\x02\x02\x16"])
def test_what_is_not_http(garbage: bytes) -> None:
    assert failing(after_request(garbage)).slug == "not_http"


def test_an_answer_beyond_the_limit() -> None:
    fault = failing(after_request(ok(bytes(300_000))), limit_bytes=100_000)
    assert (fault.slug, fault.params["limit_bytes"]) == ("answer_too_large", 100_000)
    with Scripted(after_request(ok(bytes(300_000)))) as server:
        assert len(fetch(server.url, limit_bytes=400_000).body) == 300_000


def test_the_limit_holds_for_an_answer_that_comes_in_one_read() -> None:
    assert failing(after_request(ok(bytes(300))), limit_bytes=100).slug == "answer_too_large"


def test_tls_and_its_refusals(made: Certificate) -> None:
    with Scripted(answering(ok(b"safe")), made.server()) as server:
        assert fetch(server.url, insecure=True).body == b"safe"
        with pytest.raises(TargetError) as seen:
            fetch(server.url)
        assert seen.value.slug == "certificate_refused"
        assert seen.value.params["detail"] == "self-signed certificate"


def test_plain_http_where_tls_was_asked_for_and_the_other_way_round(made: Certificate) -> None:
    with Scripted(after_request(ok(b"x"))) as server, pytest.raises(TargetError) as seen:
        fetch(server.url.replace("http", "https"), insecure=True, timeout_s=0.3)
    assert seen.value.slug in ("tls_failed", "timeout")  # a server may wait for the end of a request in vain
    with Scripted(answering(ok(b"x")), made.server()) as server, pytest.raises(TargetError) as seen:
        fetch(server.url.replace("https", "http"))
    assert seen.value.slug in ("not_http", "connection_cut")


def test_a_plain_proxy_gets_the_absolute_form_and_its_credentials() -> None:
    handle = after_request(ok(b"forwarded"))
    with Scripted(handle) as between:
        proxy = f"http://user:pass@127.0.0.1:{between.port}"
        assert fetch("http://10.255.255.1:8000/v1/models", proxy=proxy).body == b"forwarded"
    (asked,) = handle.asked  # type: ignore[attr-defined]
    assert asked.startswith(b"GET http://10.255.255.1:8000/v1/models HTTP/1.1\r\nHost: 10.255.255.1:8000\r\n")
    assert b"\r\nProxy-Authorization: Basic dXNlcjpwYXNz\r\n" in asked


def test_proxy_variables_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    with Scripted(answering(ok(b"direct"))) as server:
        assert fetch(server.url).body == b"direct"
