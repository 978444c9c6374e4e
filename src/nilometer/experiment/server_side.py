"""The server's side of a run: its metrics page found before the load, looked at throughout, judged over the window.

A server without a page that is known is no fault of anybody: then there are no such figures.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from nilometer.core.clock import NS_PER_S
from nilometer.core.errors import NiloError, Param, TargetError
from nilometer.core.finding import Finding
from nilometer.core.mask import Mask
from nilometer.core.run import Phases
from nilometer.core.secrets import mask_url
from nilometer.core.summary import Memory, Summary
from nilometer.core.telemetry import Look, Telemetry
from nilometer.metrics.engine_pages import FAMILIES
from nilometer.metrics.host_figures import host_told
from nilometer.metrics.pages import read
from nilometer.metrics.server_figures import Slots
from nilometer.metrics.server_summary import told
from nilometer.metrics.server_watch import Seen, Watch, watch
from nilometer.net.endpoint import parse
from nilometer.sources import prometheus
from nilometer.sources.metrics_page import PAGES, read_url
from nilometer.sources.prometheus import Asked
from nilometer.telemetry.scrape import Scraper

from .approach import Approach, Headers, headers_to

FIND_S = 3.0
"""Longest wait for a page that may not be there; a server that is ready tells it in milliseconds."""
MOST_PAGES, LEAST_PAGES = 600, 20
MOST_JUDGED_CHARS = 12_000_000
"""Of a long window, or of a page of many engines, so many pages or so much text is judged, evenly spread: a few seconds
of work. The first and the last are among them."""
MOST_CHARS = 1_000_000
"""Of the lines worth keeping of one page, so that it can be stored; those of a hundred engines take half of it."""


class PagesFrom(NamedTuple):
    """Where the pages are, if not at the target: at an address of their own, or in a Prometheus."""

    url: str | None = None
    prometheus: str | None = None
    match: str = ""


TARGETS_OWN = PagesFrom()


class Found(NamedTuple):
    """Where the page is and how it is asked for, with what the user put into it; the slots told beside it."""

    address: str
    slots: Slots | None = None
    headers: Mapping[str, str] = {}
    insecure: bool = False
    proxy: str | None = None


class ServerSide(NamedTuple):
    """What was seen of a server: by its own word, and of its machine where that is this one."""

    looks: Iterable[Look] = ()
    slots: Slots | None = None
    host: Mapping[str, bytes] = {}
    cores: int | None = None
    """Processors that may be used there."""
    findings: Sequence[Finding] = ()

    @property
    def telemetry(self) -> Telemetry:
        return Telemetry(looks=self.looks, host=self.host)


NOT_SEEN = ServerSide()


def find(way: Approach, headers: Headers, pages: PagesFrom = TARGETS_OWN) -> Found | Asked | None:
    """The server's metrics page; None where the target has none, or one that no engine is known by.

    Of the target nothing is asked where the spec allows nothing but the load. Raises TargetError where there is nothing
    at the place that was named: `metrics_page_missing`, `metrics_page_not`, those of `sources.prometheus`, `net.fetch`.
    """
    if pages.prometheus is not None:
        asked = Asked(pages.prometheus, pages.match)
        prometheus.require(asked, time.time())
        return asked
    if pages.url is not None:
        return _at(way, headers, pages.url)
    try:
        return _at(way, headers, way.address) if way.spec.probe else None
    except NiloError:
        return None


def _at(way: Approach, headers: Headers, url: str) -> Found | None:
    """The page of a server, with the key and by the way of the load where it is the target's."""
    own = parse(url).origin == way.endpoint.origin
    sent = dict(headers_to(way.endpoint, way.spec, headers)) if own else {}
    if (named := parse(url).authorization) is not None:
        sent["Authorization"] = named
    insecure, proxy = way.spec.http.insecure, way.proxy if own else None
    page = read_url(url, headers=sent, insecure=insecure, proxy=proxy, timeout_s=FIND_S, places=PAGES)
    if page.address is None or page.loaded is not None or set(page.page.names).isdisjoint(FAMILIES):
        return None
    return Found(page.address, page.slots, sent, insecure, proxy)


@contextmanager
def watching(found: Found | Asked | None, secrets: Iterable[str], file: Path) -> Iterator[Callable[[], ServerSide]]:
    """Look at the page, where there is one, until the context is left or what it gives is asked: what was seen.

    A Prometheus is asked then, of all that time. The file is scratch, and gone afterwards.
    """
    mask = Mask(secrets)
    if found is None:
        yield lambda: NOT_SEEN
        return
    if isinstance(found, Asked):
        since_s = time.time()
        yield lambda: _scraped_by(found, since_s, mask)
        return
    file.touch(mode=0o600)
    with Scraper(found.address, file, headers=found.headers, insecure=found.insecure, proxy=found.proxy) as scraper:

        def seen() -> ServerSide:
            scraper.close()
            return ServerSide(_Looks(scraper, mask), found.slots)

        try:
            yield seen
        finally:
            scraper.close()
            file.unlink(missing_ok=True)


def _scraped_by(asked: Asked, since_s: float, mask: Mask) -> ServerSide:
    """What a Prometheus has of the time since then; that it no longer answers costs the run nothing else."""
    ahead_ns = time.time_ns() - time.monotonic_ns()
    try:
        told = list(prometheus.pages(asked, since_s, time.time()))
    except TargetError as fault:
        mask.error(fault)
        params: dict[str, Param] = {"url": mask_url(asked.url), "detail": fault.slug}
        return ServerSide(findings=(Finding(slug="prometheus_lost", kind="note", severity="low", params=params),))
    stamps = [round(at_s * NS_PER_S) - ahead_ns for at_s, _ in told]
    return ServerSide([_kept(Look(at, at, text), mask) for at, (_, text) in zip(stamps, told, strict=True)])


def _kept(look: Look, mask: Mask) -> Look:
    """As it may be stored: labels of a page hold names that people gave."""
    if look.text is None:
        return look
    if len(look.text) > MOST_CHARS:
        return look._replace(text=None, fault="page_large")
    return look._replace(text=mask(look.text))


class _Looks:
    """What the scraper saw, read anew each time it is asked: the pages of hours are not held at once."""

    def __init__(self, scraper: Scraper, mask: Mask) -> None:
        self._scraper = scraper
        self._mask = mask

    def __iter__(self) -> Iterator[Look]:
        return (_kept(look, self._mask) for look in self._scraper.looks())


def with_server(summary: Summary, side: ServerSide, phases: Phases) -> Summary:
    """The Summary with what was seen of the window; what the server's answers told stands before what its page did."""
    if summary.window.end_s is None:
        return summary
    start_ns, end_ns = (
        phases.measured_ns + round(border_s * NS_PER_S) for border_s in (summary.window.start_s, summary.window.end_s)
    )
    watched = _watched(side, start_ns, end_ns)
    figures = {} if watched is None else told(watched)
    return replace(
        summary,
        server={**figures, **summary.server},
        host={**host_told(side.host, start_ns, end_ns, side.cores)},
        memory=_with_kv(summary.memory, figures.get("kv_usage_max")),
    )


def _watched(side: ServerSide, start_ns: int, end_ns: int) -> Watch | None:
    inside, chars = [], 0
    for i, look in enumerate(side.looks):
        if look.text and start_ns <= look.asked_ns and look.answered_ns < end_ns:
            inside.append(i)
            chars += len(look.text)
    judged = set(thinned(inside, chars))
    pages = [
        Seen(look.asked_ns, look.answered_ns, read(look.text or "", FAMILIES))
        for i, look in enumerate(side.looks)
        if i in judged
    ]
    found = watch(pages, start_ns, end_ns)
    return None if found is None else replace(found, figures=replace(found.figures, slots=side.slots))


def thinned(places: Sequence[int], chars: int) -> Sequence[int]:
    """As many of them as are judged, evenly spread from the first to the last; `chars` is what all of them hold."""
    most = max(LEAST_PAGES, min(MOST_PAGES, len(places) * MOST_JUDGED_CHARS // max(chars, 1)))
    if len(places) <= most:
        return places
    step = (len(places) - 1) / (most - 1)
    return [places[round(i * step)] for i in range(most)]


def _with_kv(memory: Memory, share: float | None) -> Memory:
    if share is None:
        return memory
    source = " + ".join(filter(None, (memory.source, "metrics page")))
    return replace(memory, kv_used_peak_ratio=share, source=source)
