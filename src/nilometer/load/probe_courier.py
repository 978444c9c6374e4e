"""Carries the probe's requests, one at a time: counts each, waits while the target is busy, names what went wrong.

It knows no dialect. Nothing is retried but what a busy target (429, 502, 503) put off, and that is counted and timed.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from typing import Any

from nilometer.core.errors import TargetError
from nilometer.core.mask import WORD_CHARS
from nilometer.core.secrets import is_secret_name, mask_url
from nilometer.core.spec import Http
from nilometer.net.endpoint import Endpoint, shown_through
from nilometer.net.fetch import Response, fetch
from nilometer.net.route import Address
from nilometer.wire.frame import complaint

BUSY = frozenset({429, 502, 503})
PAUSE_S = 0.5
LONGEST_PAUSE_S = 10.0
LINGER_S = 0.2
"""A server that closes kept connections does so at once, a busy one a little later."""
GLANCE_S = 15.0
"""Enough for what no model has to answer: lists and facts."""
KNOCK_S = 2.0
"""Enough for a first byte of whatever speaks the other scheme."""
PROXY_REFUSES = 407
_MUTE = frozenset({"not_http", "connection_cut", "timeout", "tls_failed"})
"""What asking for the wrong one of http and https may end in."""
_SPEAKS_OF_TLS = re.compile(rb"https|ssl", re.I)
Fetch = Callable[..., Response]


class Courier:
    """One target's. `requests` sent so far, `waited_s` spent waiting for a busy target, of `ready_s` at most."""

    def __init__(
        self,
        endpoint: Endpoint,
        http: Http,
        headers: Mapping[str, str],
        *,
        timeout_s: float,
        ready_s: float,
        fetch: Fetch = fetch,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self.endpoint = endpoint
        self.requests = 0
        self.waited_s = 0.0
        self._http = http
        self._headers = dict(headers)
        self._timeout_s = timeout_s
        self._ready_s = ready_s
        self._fetch = fetch
        self._wait = wait

    def send(self, path: str, body: bytes | None = None, method: str = "POST") -> Response:
        """GET, or `method` with a body. Any answer but a refusal of ourselves is handed back, also 400, 404 and 500.

        Raises TargetError: `unauthorised`, or `key_refused` where a key was sent, `redirected`, `target_busy` after
        waiting, `proxy_refused`, `scheme_wrong`, and those of `fetch`.
        """
        response = self._once(path, body, method) if self.requests else self._first(path, body, method)
        while response.status in BUSY:
            self._pause(path, response)
            response = self._once(path, body, method)
        if response.status == PROXY_REFUSES and self._http.proxy:
            proxy, url = mask_url(self._http.proxy), mask_url(self.endpoint.url(path))
            raise TargetError("proxy_refused", proxy=proxy, url=url, status=response.status, detail=told(response))
        if response.status in (401, 403):
            slug = "key_refused" if any(map(is_secret_name, self._headers)) else "unauthorised"
            raise TargetError(slug, url=self.shown(path), status=response.status, detail=told(response))
        if 300 <= response.status < 400:
            location = mask_url(response.headers.get("location", ""))[:WORD_CHARS]
            raise TargetError("redirected", url=self.shown(path), status=response.status, location=location)
        return response

    def try_(self, path: str, body: bytes | None = None) -> Response | None:
        """The answer of something that need not be there; None unless it came with status 200."""
        try:
            response = self._once(path, body)
        except TargetError:
            return None
        return response if response.status == 200 else None

    def glance(self, path: str, at: Address | None = None, *, timeout_s: float = GLANCE_S) -> Response:
        """One answer, whatever it is; `at` is the address of the target to be asked. Raises what `fetch` raises."""
        more: dict[str, Any] = {} if at is None else {"at": at}
        return self._once(path, None, timeout_s=timeout_s, **more)

    def keeps(self, path: str, body: bytes, method: str = "POST") -> bool | None:
        """Whether the server keeps a connection after such a request; None where it did not answer it."""
        try:
            response = self._once(path, body, method, linger_s=LINGER_S)
        except TargetError:
            return None
        return response.kept if response.status == 200 else None

    def shown(self, path: str) -> str:
        """The address of `path`, and the proxy before it, as they may be printed."""
        return shown_through(self.endpoint.url(path), self._http.proxy)

    def _once(self, path: str, body: bytes | None, method: str = "POST", **more: Any) -> Response:
        self.requests += 1
        headers = {"Accept": "*/*", "Accept-Encoding": "identity", **self._headers}
        if body is not None:
            headers["Content-Type"] = "application/json"
        return self._fetch(
            self.endpoint.url(path),
            method="GET" if body is None else method,
            headers=headers,
            body=body,
            insecure=self._http.insecure,
            proxy=self._http.proxy,
            **{"timeout_s": min(self._timeout_s, GLANCE_S) if body is None else self._timeout_s, **more},
        )

    def _first(self, path: str, body: bytes | None, method: str) -> Response:
        """The first words with a target, which may be in the wrong one of http and https: then `scheme_wrong`."""
        try:
            response = self._once(path, body, method)
        except TargetError as fault:
            if fault.slug in _MUTE:
                self._refuse_scheme(path)
            raise
        if response.status == 400 and not self.endpoint.tls and _SPEAKS_OF_TLS.search(response.body):
            self._refuse_scheme(path)
        return response

    def _refuse_scheme(self, path: str) -> None:
        """Raise `scheme_wrong` where the same port answers to the other scheme; no secret is sent for that."""
        other = self.endpoint._replace(scheme="http" if self.endpoint.tls else "https")
        self.requests += 1
        try:
            self._fetch(other.url(path), timeout_s=KNOCK_S, insecure=True, proxy=self._http.proxy)
        except TargetError:
            return
        raise TargetError("scheme_wrong", url=self.shown(path), answers=other.shown) from None

    def _pause(self, path: str, response: Response) -> None:
        asked = response.headers.get("retry-after", "")
        pause_s = min(float(asked), LONGEST_PAUSE_S) if asked.isdigit() else PAUSE_S
        pause_s = max(pause_s, PAUSE_S)
        if self.waited_s + pause_s > self._ready_s:
            raise TargetError(
                "target_busy",
                url=self.shown(path),
                status=response.status,
                seconds=round(self.waited_s, 1),
                detail=told(response),
            )
        self._wait(pause_s)
        self.waited_s += pause_s


def told(response: Response) -> str | None:
    """What the server said against the request, at most 200 bytes."""
    return complaint(response.body, marked=True)
