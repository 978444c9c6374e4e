"""Routes: addresses in order, TLS, and the two ways through a proxy. Only numeric addresses: nothing is looked up."""

from __future__ import annotations

import socket
import ssl
from base64 import b64encode

import pytest

from nilometer.core.errors import SpecError, TargetError
from nilometer.net.endpoint import parse
from nilometer.net.fetch import request_bytes
from nilometer.net.route import resolve

BASIC = "Basic " + b64encode(b"user:pass").decode()


def test_a_plain_route() -> None:
    route = resolve(parse("http://127.0.0.1:8000"))
    assert [address for _, address in route.addresses] == [("127.0.0.1", 8000)]
    assert (route.tls, route.tunnel, route.absolute_form) == (None, None, False)
    assert route.target("/v1/models") == "/v1/models"


def test_ipv6() -> None:
    assert [address for _, address in resolve(parse("http://[::1]:8000")).addresses] == [("::1", 8000)]


def test_tls_is_checked_unless_told_otherwise() -> None:
    context = resolve(parse("https://127.0.0.1")).tls
    assert context is not None
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2
    context = resolve(parse("https://127.0.0.1"), insecure=True).tls
    assert context is not None
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_NONE, False)


def test_a_plain_target_through_a_proxy_is_asked_for_in_absolute_form() -> None:
    route = resolve(parse("http://10.0.0.1:8000/base"), proxy="http://user:pass@127.0.0.1:3128")
    assert [address for _, address in route.addresses] == [("127.0.0.1", 3128)]
    assert (route.absolute_form, route.tunnel) == (True, None)
    assert route.target("/base/v1/models") == "http://10.0.0.1:8000/base/v1/models"
    assert route.proxy_authorization == BASIC


def test_a_tls_target_through_a_proxy_has_a_tunnel() -> None:
    route = resolve(parse("https://10.0.0.1"), proxy="http://user:pass@127.0.0.1:3128")
    assert route.tunnel == (
        b"CONNECT 10.0.0.1:443 HTTP/1.1\r\nHost: 10.0.0.1:443\r\nProxy-Authorization: " + BASIC.encode() + b"\r\n\r\n"
    )
    assert route.server_name == "10.0.0.1"
    assert route.proxy_authorization is None  # said in the tunnel: the target must not see it
    assert route.target("/v1/models") == "/v1/models"


def test_a_tunnel_to_ipv6_has_brackets() -> None:
    route = resolve(parse("https://[::1]:8443"), proxy="http://127.0.0.1:3128")
    assert route.tunnel == b"CONNECT [::1]:8443 HTTP/1.1\r\nHost: [::1]:8443\r\n\r\n"


@pytest.mark.parametrize("proxy", ["https://127.0.0.1:3128", "socks5://127.0.0.1", "127.0.0.1:3128"])
def test_other_proxies_are_refused(proxy: str) -> None:
    with pytest.raises(SpecError) as seen:
        resolve(parse("http://127.0.0.1"), proxy=proxy)
    assert seen.value.slug in ("proxy_url", "target_url")


def test_a_name_nobody_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(TargetError) as seen:
        resolve(parse("http://user:canary@nobody.test:1"))
    assert (seen.value.slug, seen.value.exit_code) == ("name_unknown", 3)
    assert seen.value.params["host"] == "nobody.test"
    assert "canary" not in str(seen.value)


def test_a_request_is_whole() -> None:
    route = resolve(parse("http://user:pass@127.0.0.1:8000"))
    lines = request_bytes(route, "POST", "/v1/x?y=1", {"X-A": "é"}, b"body").split(b"\r\n")
    assert lines[:2] == [b"POST /v1/x?y=1 HTTP/1.1", b"Host: 127.0.0.1:8000"]
    assert lines[2].startswith(b"User-Agent: nilometer/")
    assert lines[3:] == [b"Authorization: " + BASIC.encode(), b"X-A: \xe9", b"Content-Length: 4", b"", b"body"]


def test_given_headers_come_before_our_own_and_a_get_has_no_length() -> None:
    route = resolve(parse("http://user:pass@127.0.0.1:8000"))
    request = request_bytes(route, "GET", "/", {"user-agent": "x", "AUTHORIZATION": "y"}, None)
    assert request == b"GET / HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nuser-agent: x\r\nAUTHORIZATION: y\r\n\r\n"


def test_a_given_host_stands_in_place_of_our_own() -> None:
    """Two Host lines are a bad request (RFC 9112, 3.2); a virtual host is asked for by its name."""
    route = resolve(parse("http://127.0.0.1:8000"))
    request = request_bytes(route, "GET", "/", {"host": "inner.example", "User-Agent": "x"}, None)
    assert request == b"GET / HTTP/1.1\r\nhost: inner.example\r\nUser-Agent: x\r\n\r\n"


def test_a_plain_proxy_is_told_its_credentials() -> None:
    route = resolve(parse("http://127.0.0.1:1"), proxy="http://user:pass@127.0.0.1:3128")
    lines = request_bytes(route, "GET", "/x", {}, None).split(b"\r\n")
    assert lines[0] == b"GET http://127.0.0.1:1/x HTTP/1.1"
    assert b"Proxy-Authorization: " + BASIC.encode() in lines


@pytest.mark.parametrize(
    ("name", "value"), [("X-A", "canary\r\nX-B: y"), ("X A", "canary"), ("X-A", "canary 模"), ("", "canary")]
)
def test_a_header_http_cannot_carry_is_refused_without_its_value(name: str, value: str) -> None:
    route = resolve(parse("http://127.0.0.1:1"))
    with pytest.raises(SpecError) as seen:
        request_bytes(route, "GET", "/", {name: value}, None)
    assert (seen.value.slug, seen.value.params) == ("header_invalid", {"header": name})
    assert "canary" not in str(seen.value)
