"""Where a service lives: its address taken apart, `/v1` put in exactly once, secrets masked for display."""

from __future__ import annotations

import re
from base64 import b64encode
from typing import NamedTuple
from urllib.parse import quote, unquote, urlsplit

from nilometer.core.errors import SpecError
from nilometer.core.secrets import mask_url

_V1_TAILS = ("/chat/completions", "/completions", "/models", "/responses", "/messages", "/embeddings", "/rerank")
_API_TAILS = (
    *(f"/v1{tail}" for tail in _V1_TAILS),
    "/chat/completions",
    "/completions",
    "/api/chat",
    "/generate_stream",
    "/generate",
    "/completion",
)
_STRICT_HOSTS = (".openai.com", ".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com")
_AS_WRITTEN = "/:@!$&'()*+,;=~-._%?"
"""What `quote` leaves alone in a path or query; the rest (spaces never get here) is made ASCII."""


class Endpoint(NamedTuple):
    """An OpenAI-compatible service. `base_path` has neither a trailing slash nor `/v1`.

    `query` is sent with every call.
    """

    scheme: str
    host: str
    port: int
    base_path: str
    query: str = ""
    authorization: str | None = None

    @property
    def tls(self) -> bool:
        return self.scheme == "https"

    @property
    def host_header(self) -> str:
        """The Host header: the port only where it is not the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"

    @property
    def below_v1(self) -> bool:
        """Whether the API is to be looked for below `/v1` first: not in an Azure deployment, which has none."""
        return not self.is_azure_deployment

    @property
    def is_azure_deployment(self) -> bool:
        return "/openai/deployments/" in self.base_path

    @property
    def is_strict(self) -> bool:
        """Whether OpenAI or Azure answers here: they refuse a request with a field that they do not know."""
        return self.is_azure_deployment or self.host.endswith(_STRICT_HOSTS)

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.host_header}"

    def path(self, tail: str) -> str:
        """Request path of an API call, such as `/chat/completions`: below `/v1`."""
        return self._with_query(f"{self.base_path}/v1{tail}")

    def root(self, tail: str) -> str:
        """Request path of what servers keep outside the API, such as `/health`, `/tokenize`."""
        first = tail[: tail.find("/", 1)] if "/" in tail[1:] else ""
        if first and self.base_path.endswith(first):  # the address names the API's own root: .../api, .../v1beta
            tail = tail.removeprefix(first)
        return self._with_query(f"{self.base_path}{tail}")

    def url(self, request_path: str) -> str:
        return self.origin + request_path

    @property
    def shown(self) -> str:
        """The address as it may be printed and stored: no credentials, no key-like query value."""
        return mask_url(self._with_query(self.origin + self.base_path))

    def _with_query(self, path: str) -> str:
        return f"{path}{'&' if '?' in path else '?'}{self.query}" if self.query else path


def parse(target: str) -> Endpoint:
    """Take a TARGET address apart; with or without `/v1`, or a whole API path. Refuses nonsense: slug `target_url`."""
    if "://" not in target or re.search(r"[\s\x00-\x1f]", target):
        raise _refusal(target)
    try:
        parts = urlsplit(target)
        port, host = parts.port, _ascii_host(parts.hostname or "")
        path, query = (quote(text, safe=_AS_WRITTEN) for text in (parts.path, parts.query))
        authorization = _basic(parts.username, parts.password)
    except ValueError:
        raise _refusal(target) from None
    if parts.scheme not in ("http", "https") or not host or port == 0:
        raise _refusal(target)
    own_port = 443 if parts.scheme == "https" else 80
    return Endpoint(parts.scheme, host, port or own_port, _base_path(path), query, authorization)


def _refusal(target: str) -> SpecError:
    """What is no address may hold a secret anywhere before an @."""
    return SpecError("target_url", target=mask_url(re.sub(r"(?s)^([A-Za-z][\w+.-]*://)?.*@", r"\1***@", target)))


def _ascii_host(host: str) -> str:
    """The name as the resolver, TLS and the Host header take it. Raises ValueError where there is no such form."""
    return host.encode("idna").decode("ascii")


def request_path(url: str) -> str:
    """Path and query of an address as a request line takes them, without the fragment."""
    parts = urlsplit(url)
    path = quote(parts.path, safe=_AS_WRITTEN) or "/"
    return f"{path}?{quote(parts.query, safe=_AS_WRITTEN)}" if parts.query else path


def shown_through(url: str, proxy: str | None) -> str:
    """An address as it may be printed, with the proxy that stands before it."""
    return mask_url(url) if proxy is None else f"{mask_url(url)} via {mask_url(proxy)}"


def _base_path(path: str) -> str:
    path = path.rstrip("/")
    tail = next((tail for tail in _API_TAILS if path.endswith(tail)), "/v1")
    return path.removesuffix(tail).rstrip("/")


def _basic(user: str | None, password: str | None) -> str | None:
    if user is None:
        return None
    return "Basic " + b64encode(f"{unquote(user)}:{unquote(password or '')}".encode()).decode()
