"""The server's side of a run: its metrics page found before the load, looked at throughout, judged over the window.

A server without a page that is known is no fault of anybody: then there are no such figures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from nilometer.core.clock import NS_PER_S
from nilometer.core.errors import NiloError
from nilometer.core.mask import Mask
from nilometer.core.run import Phases
from nilometer.core.summary import Memory, Summary
from nilometer.core.telemetry import Look, Telemetry
from nilometer.metrics.engine_pages import FAMILIES
from nilometer.metrics.host_figures import host_told
from nilometer.metrics.pages import read
from nilometer.metrics.server_figures import Slots
from nilometer.metrics.server_summary import told
from nilometer.metrics.server_watch import Seen, Watch, watch
from nilometer.sources.metrics_page import PAGES, read_url
from nilometer.telemetry.scrape import Scraper

from .approach import Approach, Headers, headers_to

FIND_S = 3.0
"""Longest wait for a page that may not be there; a server that is ready tells it in milliseconds."""
MOST_PAGES = 600
"""So many are judged of a long window, evenly spread; the first and the last are among them."""

MOST_CHARS = 1_000_000
"""Of the lines worth keeping of one page, so that it can be stored; those of a hundred engines take half of it."""


class Found(NamedTuple):
    """Where the page is, with what the user put into it, and the slots that the engine told beside it."""

    address: str
    slots: Slots | None = None


class ServerSide(NamedTuple):
    """What was seen of a server: by its own word, and of its machine where that is this one."""

    looks: Iterable[Look] = ()
    slots: Slots | None = None
    host: Mapping[str, bytes] = {}
    cores: int | None = None
    """Processors that may be used there."""

    @property
    def telemetry(self) -> Telemetry:
        return Telemetry(looks=self.looks, host=self.host)


NOT_SEEN = ServerSide()


def find(way: Approach, headers: Headers) -> Found | None:
    """The target's metrics page; None where it has none, or one that no engine is known by.

    Nothing is asked where the spec allows nothing but the load.
    """
    if not way.spec.probe:
        return None
    sent = dict(headers_to(way.endpoint, way.spec, headers))
    try:
        page = read_url(
            way.address,
            headers=sent,
            insecure=way.spec.http.insecure,
            proxy=way.proxy,
            timeout_s=FIND_S,
            places=PAGES,
        )
    except NiloError:
        return None
    if page.address is None or page.loaded is not None or set(page.page.names).isdisjoint(FAMILIES):
        return None
    return Found(page.address, page.slots)


@contextmanager
def watching(found: Found | None, way: Approach, headers: Headers, file: Path) -> Iterator[Callable[[], ServerSide]]:
    """Look at the page, where there is one, until the context is left or what it gives is asked: what was seen.

    The file is scratch, and gone afterwards.
    """
    if found is None:
        yield lambda: NOT_SEEN
        return
    file.touch(mode=0o600)
    sent = dict(headers_to(way.endpoint, way.spec, headers))
    with Scraper(found.address, file, headers=sent, insecure=way.spec.http.insecure, proxy=way.proxy) as scraper:

        def seen() -> ServerSide:
            scraper.close()
            return ServerSide(_Looks(scraper, Mask(way.secrets)), found.slots)

        try:
            yield seen
        finally:
            scraper.close()
            file.unlink(missing_ok=True)


class _Looks:
    """What the scraper saw, read anew each time it is asked: the pages of hours are not held at once."""

    def __init__(self, scraper: Scraper, mask: Mask) -> None:
        self._scraper = scraper
        self._mask = mask

    def __iter__(self) -> Iterator[Look]:
        return (self._kept(look) for look in self._scraper.looks())

    def _kept(self, look: Look) -> Look:
        """Labels of a page hold names that people gave."""
        if look.text is None:
            return look
        if len(look.text) > MOST_CHARS:
            return look._replace(text=None, fault="page_large")
        return look._replace(text=self._mask(look.text))


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
    inside = [
        i for i, look in enumerate(side.looks) if look.text and start_ns <= look.asked_ns and look.answered_ns < end_ns
    ]
    judged = set(thinned(inside))
    pages = [
        Seen(look.asked_ns, look.answered_ns, read(look.text or "", FAMILIES))
        for i, look in enumerate(side.looks)
        if i in judged
    ]
    found = watch(pages, start_ns, end_ns)
    return None if found is None else replace(found, figures=replace(found.figures, slots=side.slots))


def thinned(places: Sequence[int]) -> Sequence[int]:
    """At most MOST_PAGES of them, evenly spread from the first to the last."""
    if len(places) <= MOST_PAGES:
        return places
    step = (len(places) - 1) / (MOST_PAGES - 1)
    return [places[round(i * step)] for i in range(MOST_PAGES)]


def _with_kv(memory: Memory, share: float | None) -> Memory:
    if share is None:
        return memory
    source = " + ".join(filter(None, (memory.source, "metrics page")))
    return replace(memory, kv_used_peak_ratio=share, source=source)
