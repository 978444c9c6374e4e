"""Addresses taken apart: `/v1` once, IPv6, ports, queries; and no secret in what is shown or refused."""

from __future__ import annotations

from base64 import b64decode

import pytest

from nilometer.core.errors import SpecError
from nilometer.net.endpoint import Endpoint, parse, request_path

CHAT = "/chat/completions"


@pytest.mark.parametrize(
    "target",
    [
        "http://h:8000",
        "http://h:8000/",
        "http://h:8000/v1",
        "http://h:8000/v1/",
        "http://h:8000/v1/chat/completions",
        "http://h:8000/v1/completions",
        "http://h:8000/v1/models/",
        "http://h:8000/chat/completions",
        "HTTP://H:8000",
        "http://h:8000/v1#part",
    ],
)
def test_every_way_to_write_it_is_the_same_service(target: str) -> None:
    endpoint = parse(target)
    assert endpoint == Endpoint("http", "h", 8000, "")
    assert endpoint.url(endpoint.path(CHAT)) == "http://h:8000/v1/chat/completions"
    assert endpoint.url(endpoint.root("/health")) == "http://h:8000/health"


@pytest.mark.parametrize(
    ("target", "path", "health"),
    [
        ("https://h/openai/v1", "/openai/v1/chat/completions", "/openai/health"),
        ("https://h/openai/v1/chat/completions", "/openai/v1/chat/completions", "/openai/health"),
        ("https://h/openai/", "/openai/v1/chat/completions", "/openai/health"),
        ("https://h/v1beta", "/v1beta/v1/chat/completions", "/v1beta/health"),
        ("https://h/v1/proxy", "/v1/proxy/v1/chat/completions", "/v1/proxy/health"),
        ("https://h/xv1", "/xv1/v1/chat/completions", "/xv1/health"),
        ("https://h/models", "/models/v1/chat/completions", "/models/health"),
        (
            "https://h/openai/deployments/d/chat/completions?api-version=2024-06-01",
            "/openai/deployments/d/v1/chat/completions?api-version=2024-06-01",
            "/openai/deployments/d/health?api-version=2024-06-01",
        ),
        ("https://h/@cf/meta", "/@cf/meta/v1/chat/completions", "/@cf/meta/health"),
        ("https://h/模型", "/%E6%A8%A1%E5%9E%8B/v1/chat/completions", "/%E6%A8%A1%E5%9E%8B/health"),
        ("https://h/a%20b", "/a%20b/v1/chat/completions", "/a%20b/health"),
    ],
)
def test_base_paths(target: str, path: str, health: str) -> None:
    endpoint = parse(target)
    assert (endpoint.path(CHAT), endpoint.root("/health")) == (path, health)


@pytest.mark.parametrize(
    ("target", "host", "port", "header"),
    [
        ("http://h", "h", 80, "h"),
        ("https://h", "h", 443, "h"),
        ("https://h:80", "h", 80, "h:80"),
        ("http://h:443", "h", 443, "h:443"),
        ("http://h:80", "h", 80, "h"),
        ("http://h:", "h", 80, "h"),
        ("http://[::1]:8000", "::1", 8000, "[::1]:8000"),
        ("https://[2001:DB8::1]", "2001:db8::1", 443, "[2001:db8::1]"),
        ("http://127.0.0.1:1", "127.0.0.1", 1, "127.0.0.1:1"),
        ("http://bücher.example", "xn--bcher-kva.example", 80, "xn--bcher-kva.example"),
    ],
)
def test_hosts_and_ports(target: str, host: str, port: int, header: str) -> None:
    endpoint = parse(target)
    assert (endpoint.host, endpoint.port, endpoint.host_header) == (host, port, header)
    assert endpoint.tls == target.startswith("https")
    assert endpoint.origin == f"{endpoint.scheme}://{header}"


@pytest.mark.parametrize(
    "target",
    [
        "",
        "h:8000",
        "localhost",
        "//h",
        "ftp://h",
        "http://",
        "http://:80",
        "http:///v1",
        "http://h:port",
        "http://h:70000",
        "http://h:0",
        "http://[::1",
        "http://h /v1",
        "http://h/v1\n",
        "http://h\tx",
        "http://\udcff/",
        "http://" + "ü" * 70 + ".example",
        "http://" + "a" * 64,
        "http://a..b",
        "https://.h",  # TLS has no such name
    ],
)
def test_nonsense_is_refused(target: str) -> None:
    with pytest.raises(SpecError) as seen:
        parse(target)
    assert (seen.value.slug, seen.value.exit_code) == ("target_url", 2)


@pytest.mark.parametrize(
    "target",
    [
        "http://user:canary@h:port",
        "user:canary@h:8000",
        "http://user:can ary@h",
        "http://user:canary/x@h",
        "http://user:c@n@ary@h:99999",
        "http://user:canary?x@h:0",
        "ftp://canary@h/path@x",
        "http://h:x/?api_key=canary",
    ],
)
def test_a_refusal_tells_no_secret(target: str) -> None:
    with pytest.raises(SpecError) as seen:
        parse(target)
    told = str(seen.value)
    assert not any(part in told for part in ("canary", "ary", "can"))
    assert "***" in told


def test_credentials_become_a_header_and_are_not_shown() -> None:
    endpoint = parse("https://us%40er:p%2Fw@h/base?api-key=canary&api-version=1&sig=&x=y")
    assert endpoint.authorization is not None
    kind, _, code = endpoint.authorization.partition(" ")
    assert (kind, b64decode(code)) == ("Basic", b"us@er:p/w")
    assert endpoint.shown == "https://h/base?api-key=***&api-version=1&sig=***&x=y"
    assert endpoint.path(CHAT) == "/base/v1/chat/completions?api-key=canary&api-version=1&sig=&x=y"
    assert parse("http://user@h").authorization == "Basic dXNlcjo="
    assert parse("http://h").authorization is None


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("http://h", "/"),
        ("http://h/", "/"),
        ("http://h?x=1", "/?x=1"),
        ("http://h/a/b?x=1&y=%20#part", "/a/b?x=1&y=%20"),
        ("http://h/é?q=é", "/%C3%A9?q=%C3%A9"),
    ],
)
def test_request_paths(url: str, path: str) -> None:
    assert request_path(url) == path


@pytest.mark.parametrize(
    ("target", "tail", "path"),
    [
        ("http://h", "/api/chat", "/api/chat"),
        ("http://h/api", "/api/chat", "/api/chat"),
        ("http://h/api/chat", "/api/chat", "/api/chat"),
        ("http://h/proxy/api/", "/api/tags", "/proxy/api/tags"),
        ("http://h/proxy", "/api/tags", "/proxy/api/tags"),
        ("http://h/generate_stream", "/generate", "/generate"),
        ("http://h/health", "/health", "/health/health"),
        ("https://h/v1beta?key=k", "/v1beta/models/m:stream?alt=sse", "/v1beta/models/m:stream?alt=sse&key=k"),
    ],
)
def test_what_an_address_names_already_is_not_put_in_twice(target: str, tail: str, path: str) -> None:
    assert parse(target).root(tail) == path


@pytest.mark.parametrize("tail", ["responses", "messages", "embeddings", "rerank", "models"])
def test_whole_api_paths_are_taken_for_their_service(tail: str) -> None:
    assert parse(f"http://h/x/v1/{tail}").base_path == "/x"


@pytest.mark.parametrize(
    ("address", "strict"),
    [
        ("https://api.openai.com/v1", True),
        ("https://h.openai.azure.com/openai/v1", True),
        ("http://127.0.0.1:1/openai/deployments/d", True),
        ("http://127.0.0.1:1", False),
        ("https://notopenai.com", False),
    ],
)
def test_services_that_refuse_unknown_fields(address: str, strict: bool) -> None:
    assert parse(address).is_strict is strict


def test_an_azure_deployment_has_no_v1() -> None:
    azure = parse("https://h.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21")
    assert (azure.is_azure_deployment, azure.below_v1) == (True, False)
    assert (parse("https://h/openai").is_azure_deployment, parse("https://h/openai").below_v1) == (False, True)
