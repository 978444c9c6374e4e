"""Clients of a mock that plays a service: all at once, or one after the other, and the truth of what they got."""

from __future__ import annotations

import contextlib
import http.client
import json
import time
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from nilometer.engines.mock import Mock, launched
from nilometer.engines.mock_script import Script
from nilometer.engines.mock_service import from_tree
from nilometer.engines.mock_truth import TruthLine

FAST = {"fixed_ms": 2}


class Got(NamedTuple):
    """An answer as a plain client has it."""

    status: int
    headers: dict[str, str]
    body: bytes


@contextlib.contextmanager
def playing(cost: dict[str, Any] | None = None, **tables: Any) -> Iterator[Mock]:
    """A mock that plays what a file of these tables would describe."""
    with launched(Script(template_tokens=0), service=from_tree({"cost": cost or FAST, **tables}, "test")) as mock:
        yield mock


def asked(tokens: int = 4, prompt: str = "how high", **more: Any) -> dict[str, Any]:
    return {"prompt": prompt, "max_tokens": tokens, "stream": True, "stream_options": {"include_usage": True}} | more


def sent(mock: Mock, body: dict[str, Any], url: str | None = None) -> http.client.HTTPConnection:
    """A connection that has asked: the mock, or what stands before it at `url`."""
    parts = urlsplit(url or mock.url)
    client = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=20)
    client.request("POST", "/v1/completions", json.dumps(body))
    return client


def got(client: http.client.HTTPConnection) -> Got:
    answer = client.getresponse()
    told = Got(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
    client.close()
    return told


def at_once(mock: Mock, *bodies: dict[str, Any]) -> list[Got]:
    """All are sent before the first answer is read."""
    return [got(client) for client in [sent(mock, body) for body in bodies]]


def in_turn(mock: Mock, *bodies: dict[str, Any]) -> list[Got]:
    return [got(sent(mock, body)) for body in bodies]


def truth(mock: Mock, requests: int) -> list[TruthLine]:
    """Once so many have ended."""
    for _ in range(400):
        lines = mock.truth()
        if len(lines) >= requests:
            return lines
        time.sleep(0.005)
    raise AssertionError(f"only {len(mock.truth())} of {requests} ended")
