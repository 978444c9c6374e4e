"""What stands between us and a target is named for what it is: proxy, certificate, http or https."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.loopback.driving import free_port
from tests.loopback.scripted import Certificate, Handler, Scripted, answering, certificate, ok

from nilometer.core.errors import SpecError, TargetError
from nilometer.core.spec import Http, Spec
from nilometer.load.probe import probe
from nilometer.net.endpoint import parse

MODELS = ok(b'{"data": [{"id": "m"}]}', "Content-Type: application/json")
REFUSES_PLAIN = ok(b"<html>The plain HTTP request was sent to HTTPS port</html>").replace(b"200 OK", b"400 Bad Request")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return certificate(tmp_path_factory.mktemp("tls"))


def refusal(url: str, **http: object) -> TargetError:
    with pytest.raises(TargetError) as seen:
        probe(parse(url), Spec(target=url, http=Http(**http)), {}, timeout_s=1.0)  # type: ignore[arg-type]
    return seen.value


def hang(sock: socket.socket) -> None:
    sock.settimeout(5)
    while sock.recv(4096):
        pass


def close(sock: socket.socket) -> None:
    sock.recv(4096)


def garbage(sock: socket.socket) -> None:
    sock.recv(4096)
    sock.sendall(b"SSH-2.0-x\r\n")


def alert(sock: socket.socket) -> None:
    sock.recv(4096)
    sock.sendall(b"\x15\x03\x01\x00\x02\x02\x46")


def told_off(sock: socket.socket) -> None:
    sock.recv(4096)
    sock.sendall(REFUSES_PLAIN)


def tls_port(made: Certificate, to_plain: Handler) -> Handler:
    """A port that speaks TLS, and does something else to who does not."""
    context = made.server()

    def handle(sock: socket.socket) -> None:
        if sock.recv(1, socket.MSG_PEEK) != b"\x16":
            to_plain(sock)
            return
        with context.wrap_socket(sock, server_side=True) as safe:
            answering(MODELS)(safe)

    return handle


def plain_port(to_tls: Handler) -> Handler:
    """The other way round."""

    def handle(sock: socket.socket) -> None:
        if sock.recv(1, socket.MSG_PEEK) == b"\x16":
            to_tls(sock)
        else:
            answering(MODELS)(sock)

    return handle


@pytest.mark.parametrize("to_plain", [hang, close, alert, told_off])
def test_http_to_a_port_that_speaks_tls_is_told_of_https(made: Certificate, to_plain: Handler) -> None:
    with Scripted(tls_port(made, to_plain)) as server:
        fault = refusal(f"{server.url}/v1")
        https = server.url.replace("http", "https")
    assert (fault.slug, fault.params["answers"]) == ("scheme_wrong", https)


@pytest.mark.parametrize("to_tls", [hang, close, garbage, told_off])
def test_https_to_a_port_that_speaks_plain_http_is_told_of_http(to_tls: Handler) -> None:
    with Scripted(plain_port(to_tls)) as server:
        fault = refusal(server.url.replace("http", "https"))
    assert (fault.slug, fault.params["answers"]) == ("scheme_wrong", server.url)


@pytest.mark.parametrize(("handle", "slug"), [(hang, "timeout"), (close, "connection_cut"), (garbage, "not_http")])
def test_a_port_that_speaks_neither_is_not_said_to(handle: Handler, slug: str) -> None:
    with Scripted(handle) as server:
        assert refusal(server.url).slug == slug


def test_no_secret_goes_to_the_port_under_the_other_scheme() -> None:
    seen = []

    def note(sock: socket.socket) -> None:
        seen.append(sock.recv(4096))
        sock.sendall(MODELS)

    with Scripted(note) as server:
        url = server.url.replace("http://", "https://user:canary@")
        with pytest.raises(TargetError):
            probe(parse(url), Spec(target=url), {"Authorization": "Bearer canary"}, timeout_s=1.0)
    assert len(seen) == 2
    assert b"canary" not in b"".join(seen)
    assert b"uthorization" not in b"".join(seen)


def test_a_certificate_is_refused_with_the_reason(
    made: Certificate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reason(of: Certificate) -> object:
        with Scripted(answering(MODELS), of.server()) as server:
            fault = refusal(server.url)
        assert fault.slug == "certificate_refused"
        return fault.params["detail"]

    assert reason(made) == "self-signed certificate"
    other = certificate(tmp_path, "other.example")
    monkeypatch.setenv("SSL_CERT_FILE", str(other.certificate))
    assert "127.0.0.1" in str(reason(other))
    old = Certificate(tmp_path / "old.pem", made.key)
    subprocess.run(
        ["openssl", "x509", "-in", made.certificate, "-signkey", made.key, "-days", "-1", "-out", old.certificate],
        check=True,
        capture_output=True,
    )
    monkeypatch.setenv("SSL_CERT_FILE", str(old.certificate))
    assert reason(old) == "certificate has expired"


def test_what_the_advice_on_certificates_names_helps(made: Certificate, monkeypatch: pytest.MonkeyPatch) -> None:
    with Scripted(answering(MODELS), made.server()) as server:
        assert refusal(server.url, insecure=True).slug != "certificate_refused"
        monkeypatch.setenv("SSL_CERT_FILE", str(made.certificate))
        assert refusal(server.url).slug != "certificate_refused"


def proxy_saying(answer: bytes) -> Handler:
    def handle(sock: socket.socket) -> None:
        sock.recv(4096)
        sock.sendall(answer)

    return handle


@pytest.mark.parametrize("target", ["http://127.0.0.1:9", "https://127.0.0.1:9"])
def test_a_proxy_that_is_not_there_is_named(target: str) -> None:
    for place in (f"127.0.0.1:{free_port()}", "nobody.invalid:3128"):
        fault = refusal(target, proxy=f"http://user:canary@{place}")
        assert (fault.slug, fault.params["proxy"]) == ("proxy_unreachable", f"http://{place}")
        assert "canary" not in str(fault)


@pytest.mark.parametrize(
    ("target", "answer", "slug", "status"),
    [
        ("https", b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "proxy_refused", 407),
        ("http", b"HTTP/1.1 407 Auth\r\nContent-Length: 0\r\n\r\n", "proxy_refused", 407),
        ("https", b"HTTP/1.1 502 Bad Gateway\r\n\r\n", "proxy_refused", 502),
        ("https", b"", "proxy_unreachable", None),
        ("https", b"garbage\r\n\r\n", "proxy_unreachable", None),
    ],
)
def test_a_proxy_that_refuses_is_named(target: str, answer: bytes, slug: str, status: int | None) -> None:
    with Scripted(proxy_saying(answer)) as between:
        fault = refusal(f"{target}://127.0.0.1:9", proxy=between.url)
    assert (fault.slug, fault.params.get("status"), fault.params["proxy"]) == (slug, status, between.url)


def test_a_proxy_that_is_mute_is_named() -> None:
    with Scripted(hang) as between:
        assert refusal("https://127.0.0.1:9", proxy=between.url).slug == "proxy_unreachable"
        fault = refusal("http://127.0.0.1:9", proxy=between.url)
    assert fault.slug == "timeout"  # it may be the target's silence that it hands on
    assert between.url in str(fault.params["url"])


@pytest.mark.parametrize("proxy", ["https://127.0.0.1:3128", "socks5://127.0.0.1:1080", "127.0.0.1:3128"])
def test_a_proxy_of_another_kind_is_refused_as_such(proxy: str) -> None:
    with pytest.raises(SpecError) as seen:
        probe(parse("http://127.0.0.1:9"), Spec(target="http://127.0.0.1:9", http=Http(proxy=proxy)), {})
    assert (seen.value.slug, seen.value.params["proxy"]) == ("proxy_url", proxy)


def nilo(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "XDG_DATA_HOME": str(folder), "LC_ALL": "C.UTF-8", "NILO_LANG": "en"}
    command = [sys.executable, "-m", "nilometer", *words]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=90, check=False)


LOAD = ("--no-probe", "--model", "m", "-c", "2", "--warmup", "0", "--requests", "20", "--input-tokens", "8")


def test_a_load_that_no_proxy_lets_through_names_the_proxy(tmp_path: Path) -> None:
    proxy = f"http://127.0.0.1:{free_port()}"
    done = nilo(tmp_path, "measure", "http://127.0.0.1:9", *LOAD, "--proxy", proxy)
    assert done.returncode == 3
    assert f"20 requests to http://127.0.0.1:9 met no connection through the proxy {proxy}" in done.stderr
    assert "(proxy_lost)" in done.stderr
    shown = json.loads(nilo(tmp_path, "runs", "show", "latest", "--errors", "--json").stdout)
    assert {failure["detail"] for failure in shown["failed_requests"]} == {f"proxy {proxy}: Connection refused"}


def test_a_load_that_never_gets_through_a_handshake_says_so(tmp_path: Path, made: Certificate) -> None:
    with Scripted(answering(MODELS), made.server()) as server:
        done = nilo(tmp_path, "measure", server.url, *LOAD)
    assert (done.returncode, "(tls_lost)" in done.stderr) == (3, True), done.stderr
    assert "could be made in 20 tries" in done.stderr
    shown = json.loads(nilo(tmp_path, "runs", "show", "latest", "--errors", "--json").stdout)
    assert {failure["detail"] for failure in shown["failed_requests"]} == {
        "CERTIFICATE_VERIFY_FAILED: self-signed certificate"
    }


def test_the_doctor_names_the_proxy(tmp_path: Path) -> None:
    proxy = f"http://127.0.0.1:{free_port()}"
    done = nilo(tmp_path, "doctor", "http://127.0.0.1:9", "--proxy", proxy, "--json")
    check = next(check for check in json.loads(done.stdout)["checks"] if check["slug"] == "address")
    assert (done.returncode, check["value"]) == (3, "proxy_unreachable")


def test_a_target_that_only_hangs_up_is_told_with_its_number(tmp_path: Path) -> None:
    words = ("--no-probe", "--model", "m", "--warmup", "0", "--duration", "60s", "--input-tokens", "8")
    with Scripted(close) as server:
        done = nilo(tmp_path, "measure", server.url, *words, "--json")
    counts = json.loads(done.stdout)["run_requests"]
    assert (done.returncode, "(target_lost)" in done.stderr) == (3, True), done.stderr
    assert counts["incomplete"] > 0
    assert f"{counts['incomplete']} requests to {server.url}" in done.stderr
