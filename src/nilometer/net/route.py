"""How to reach an endpoint: resolved addresses, TLS context, proxy. Made once, used by every connection."""

from __future__ import annotations

import socket
import ssl
from typing import NamedTuple

from nilometer.core.errors import SpecError, TargetError
from nilometer.core.secrets import mask_url

from .endpoint import Endpoint, parse

Address = tuple[int, tuple[str, int]]


class Route(NamedTuple):
    """`addresses` in the resolver's order.

    `tunnel` is a CONNECT request to be sent first, where a proxy stands before TLS.
    """

    endpoint: Endpoint
    addresses: tuple[Address, ...]
    tls: ssl.SSLContext | None
    server_name: str
    tunnel: bytes | None = None
    absolute_form: bool = False
    proxy_authorization: str | None = None
    """What a plain proxy wants with every request; a tunnel has said it already."""
    proxy: str | None = None
    """The proxy's address as it may be printed."""

    def target(self, request_path: str) -> str:
        """The request target of the request line: absolute where a plain proxy must forward it."""
        return self.endpoint.url(request_path) if self.absolute_form else request_path


def resolve(endpoint: Endpoint, *, insecure: bool = False, proxy: str | None = None) -> Route:
    """Look the name up and prepare TLS.

    Refuses with TargetError `name_unknown`, or `proxy_unreachable` where it is the proxy's name; SpecError `proxy_url`.
    """
    proxy = proxy or None
    hop = _proxy_endpoint(proxy) if proxy else endpoint
    context = _tls_context(insecure) if endpoint.tls else None
    tunnelled = proxy is not None and endpoint.tls
    return Route(
        endpoint=endpoint,
        addresses=_addresses(hop) if proxy is None else _addresses_of_proxy(hop, endpoint),
        tls=context,
        server_name=endpoint.host,
        tunnel=_connect_request(endpoint, hop) if tunnelled else None,
        absolute_form=proxy is not None and not endpoint.tls,
        proxy_authorization=hop.authorization if proxy is not None and not endpoint.tls else None,
        proxy=hop.shown if proxy is not None else None,
    )


def _addresses(endpoint: Endpoint) -> tuple[Address, ...]:
    try:
        found = socket.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as fault:
        raise TargetError("name_unknown", host=endpoint.host, detail=str(fault)) from None
    return tuple((family, (str(address[0]), int(address[1]))) for family, _, _, _, address in found)


def _addresses_of_proxy(hop: Endpoint, endpoint: Endpoint) -> tuple[Address, ...]:
    try:
        return _addresses(hop)
    except TargetError as fault:
        detail = fault.params["detail"]
        raise TargetError("proxy_unreachable", proxy=hop.shown, url=endpoint.shown, detail=detail) from None


def _tls_context(insecure: bool) -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _proxy_endpoint(proxy: str) -> Endpoint:
    try:
        hop = parse(proxy)
    except SpecError as fault:
        raise SpecError("proxy_url", proxy=fault.params["target"]) from None
    if hop.tls:
        raise SpecError("proxy_url", proxy=mask_url(proxy))
    return hop


def _connect_request(endpoint: Endpoint, hop: Endpoint) -> bytes:
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    lines = [f"CONNECT {host}:{endpoint.port} HTTP/1.1", f"Host: {host}:{endpoint.port}"]
    if hop.authorization:
        lines.append(f"Proxy-Authorization: {hop.authorization}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
