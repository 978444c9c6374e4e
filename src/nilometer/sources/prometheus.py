"""A Prometheus server as the source of an engine's pages: what it scraped of the families that are read, as text.

One range query over a stretch of time; each of its steps becomes a page as the engine writes it, with the labels that
Prometheus added, of which `instance` tells replicas apart.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import urlencode

import msgspec

from nilometer.core.errors import TargetError
from nilometer.core.secrets import mask_url
from nilometer.metrics.engine_pages import FAMILIES
from nilometer.metrics.page_lines import PARTS
from nilometer.net.fetch import Response, fetch

MOST_BYTES = 256 << 20
MOST_STEPS = 600
TIMEOUT_S = 30.0
_DETAIL_CHARS = 120


class Asked(NamedTuple):
    """A Prometheus, and the labels of the server there: `job="vllm"`."""

    url: str
    match: str = ""

    @property
    def selector(self) -> str:
        """All series that any engine's figures are read from."""
        names = "|".join(sorted(FAMILIES))
        parts = "|".join(("_total", *PARTS))
        return f'{{__name__=~"(?:{names})(?:{parts})?"{", " if self.match else ""}{self.match}}}'


class _Row(msgspec.Struct, frozen=True):
    metric: dict[str, str] = {}
    values: list[tuple[float, str]] = []


class _Data(msgspec.Struct, frozen=True):
    result: list[_Row] = []


class _Answer(msgspec.Struct, frozen=True):
    status: str
    data: _Data = _Data()
    error: str = ""


def require(asked: Asked, at_s: float, *, timeout_s: float = TIMEOUT_S) -> None:
    """Refuse before a test what cannot be answered after it: slugs of `pages`, and `prometheus_empty`."""
    if not _rows(asked, at_s - 1, at_s, 1, timeout_s):
        raise TargetError("prometheus_empty", url=mask_url(asked.url), match=asked.match or "{}")


def pages(asked: Asked, start_s: float, end_s: float, *, timeout_s: float = TIMEOUT_S) -> Iterator[tuple[float, str]]:
    """(unix time, page) in order, a step a second or MOST_STEPS in all; none where there was nothing.

    Raises TargetError: those of `net.fetch`, `prometheus_refused`.
    """
    step_s = max(1, math.ceil((end_s - start_s) / MOST_STEPS))
    lines: dict[float, list[str]] = defaultdict(list)
    for row in _rows(asked, start_s, end_s, step_s, timeout_s):
        series = _series(row.metric)
        for at_s, value in row.values:
            lines[at_s].append(f"{series} {value}")
    for at_s in sorted(lines):
        yield at_s, "\n".join(lines[at_s])


def _series(metric: dict[str, str]) -> str:
    labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in metric.items() if name != "__name__")
    return f"{metric.get('__name__', '')}{{{labels}}}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _rows(asked: Asked, start_s: float, end_s: float, step_s: float, timeout_s: float) -> list[_Row]:
    form = {"query": asked.selector, "start": f"{start_s:.3f}", "end": f"{end_s:.3f}", "step": f"{step_s:g}"}
    answer = fetch(
        _below(asked.url, "/api/v1/query_range"),
        method="POST",
        headers={"Content-Type": "application/x-www-form-urlencoded"},
        body=urlencode(form).encode(),
        timeout_s=timeout_s,
        limit_bytes=MOST_BYTES,
    )
    return _decoded(answer, asked.url)


def _below(url: str, tail: str) -> str:
    """The address with its path made longer; its query, if any, stays behind it."""
    place, mark, query = url.partition("?")
    return place.rstrip("/") + tail + mark + query


def _decoded(answer: Response, url: str) -> list[_Row]:
    try:
        told = msgspec.json.decode(answer.body, type=_Answer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        told = _Answer("error", error=answer.body[:_DETAIL_CHARS].decode("utf-8", "replace"))
    if told.status != "success":
        detail = " ".join(told.error.split())[:_DETAIL_CHARS]
        raise TargetError("prometheus_refused", url=mask_url(url), status=answer.status, detail=detail)
    return told.data.result
