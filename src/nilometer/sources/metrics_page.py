"""A server's metrics page from an address or a file, of bounded size; and what engines tell beside it.

llama.cpp tells its slots (`/slots`, `/props`), Ollama has no metrics page but a list of the models it holds
(`/api/ps`), TensorRT-LLM's own server has its page at `/prometheus/metrics`. Nothing is sent but GETs.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from nilometer.core.errors import DataError, NiloError, Param, TargetError
from nilometer.metrics.engine_pages import FAMILIES
from nilometer.metrics.pages import Page, read
from nilometer.metrics.server_figures import Loaded, ServerFigures, Slots
from nilometer.net.endpoint import Endpoint, parse
from nilometer.net.fetch import Response, fetch

MOST_BYTES = 16 << 20
"""A page of a fleet of engines takes some hundred kB."""
TIMEOUT_S = 10.0
PAGES = ("/metrics", "/prometheus/metrics")
PLACES = (*PAGES, "/api/ps")
_GZIP = b"\x1f\x8b"
_DETAIL_CHARS = 60

Ask = Callable[[str], Response]
Kind = TypeVar("Kind")


class Found(NamedTuple):
    """A page, and what stands beside it; of Ollama there is no page.

    `place` may be shown; `address` is where to ask again, with what the user put into it. A file has none.
    """

    place: str
    page: Page = Page()
    slots: Slots | None = None
    loaded: list[Loaded] | None = None
    address: str | None = None

    def beside(self, figures: ServerFigures) -> ServerFigures:
        """The page's figures with what was told beside it."""
        if self.loaded is not None:
            return replace(figures, engine="ollama", dialect="api/ps", engines=1, loaded=self.loaded)
        return replace(figures, slots=self.slots)


def read_file(path: Path, most: int = MOST_BYTES) -> Found:
    """A page kept in a file, packed with gzip or not.

    DataError `file_unreadable`, `packed_broken`, `metrics_file_large`, `metrics_file_not`.
    """
    place = str(path)
    try:
        with path.open("rb") as file:
            data = file.read(most + 1)
    except (OSError, ValueError) as fault:
        detail = fault.strerror if isinstance(fault, OSError) and fault.strerror else str(fault)
        raise DataError("file_unreadable", file=place, detail=detail) from None

    def refuse(slug: str, **params: Param) -> DataError:
        return DataError(slug, file=place, **params)

    return _taken(_text(data, most, refuse), place, lambda told: refuse("metrics_file_not", detail=told))


def read_url(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    insecure: bool = False,
    proxy: str | None = None,
    timeout_s: float = TIMEOUT_S,
    most: int = MOST_BYTES,
    places: Sequence[str] = PLACES,
) -> Found:
    """The page of a server: where its address says, or in the first of `places` that has one.

    SpecError `target_url`. TargetError: those of `net.fetch`, `unauthorised`, `metrics_page_missing`,
    `metrics_page_not`. DataError `metrics_file_large`, `packed_broken`.
    """
    endpoint = parse(url)
    sent = {"accept": "text/plain, application/json;q=0.5", **(headers or {})}

    def ask(path: str) -> Response:
        answer = fetch(
            endpoint.url(path), headers=sent, timeout_s=timeout_s, insecure=insecure, proxy=proxy, limit_bytes=most
        )
        if answer.status in (401, 403):
            told = f"{answer.status} {_begin(answer.body)}"
            raise TargetError("unauthorised", url=endpoint.shown, status=answer.status, detail=told)
        return answer

    path, found = _first(endpoint, ask, most, places)
    parts = urlsplit(url)
    found = found._replace(address=f"{parts.scheme}://{parts.netloc}{path}")
    is_llamacpp = any(name.startswith("llamacpp:") for name in found.page.names)
    return found._replace(slots=_slots(endpoint, ask)) if is_llamacpp else found


def _first(endpoint: Endpoint, ask: Ask, most: int, places: Sequence[str]) -> tuple[str, Found]:
    """The first place with a page; without one, what the first of them said."""
    named = endpoint.base_path.endswith(("metrics", "/api/ps"))
    paths = [endpoint.root("")] if named else [endpoint.root(place) for place in places]
    refusals: list[NiloError] = []
    for path in paths:
        try:
            return path, _at(endpoint, path, ask, most)
        except TargetError as fault:
            if fault.slug not in ("metrics_page_missing", "metrics_page_not"):
                raise
            refusals.append(fault)
    raise next((fault for fault in refusals if fault.slug == "metrics_page_not"), refusals[0])


def _at(endpoint: Endpoint, path: str, ask: Ask, most: int) -> Found:
    answer = ask(path)
    if 300 <= answer.status < 400 and answer.headers.get("location", "").endswith(f"{path}/"):
        answer = ask(f"{path}/")
    shown = parse(endpoint.url(path)).shown
    if answer.status != 200:
        raise TargetError("metrics_page_missing", url=shown, status=answer.status)

    def refuse(slug: str, **params: Param) -> DataError:
        return DataError(slug, file=shown, **params)

    text = _text(answer.body, most, refuse)
    return _taken(text, shown, lambda told: TargetError("metrics_page_not", url=shown, detail=told))


def _text(data: bytes, most: int, refuse: Callable[..., DataError]) -> str:
    """Unpacked where it is packed, and never larger than `most`."""
    if data.startswith(_GZIP):
        unpacking = zlib.decompressobj(wbits=31)
        try:
            data = unpacking.decompress(data, most + 1)
        except zlib.error as fault:
            raise refuse("packed_broken", detail=str(fault)) from None
        if not unpacking.eof and len(data) <= most:
            raise refuse("packed_broken", detail="the end is missing")
    if len(data) > most:
        raise refuse("metrics_file_large", most=most)
    return data.decode("utf-8", "replace")


def _taken(text: str, place: str, refuse: Callable[[str], NiloError]) -> Found:
    begin = text.lstrip("\ufeff \r\n\t")[:1]
    if begin in ("{", "["):
        loaded = _loaded(text)
        if loaded is None:
            raise refuse(_begin(text.encode()))
        return Found(place, loaded=loaded)
    page = read(text.removeprefix("\ufeff"), FAMILIES)
    if not page.is_metrics:
        raise refuse(_begin(text.encode()))
    return Found(place, page)


def _begin(data: bytes) -> str:
    """The beginning of what is no page, on one line, a dot for what cannot be printed."""
    text = re.sub(r"\s+", " ", data[:_DETAIL_CHARS].decode("utf-8", "replace")).strip()
    return repr("".join(char if char.isprintable() and char != "\ufffd" else "." for char in text))


class _Model(msgspec.Struct, frozen=True):
    name: str
    size: int | None = None
    size_vram: int | None = None
    context_length: int | None = None


class _Held(msgspec.Struct, frozen=True):
    models: list[_Model]


def _loaded(text: str) -> list[Loaded] | None:
    """Ollama's list of what it holds; None where the text is none."""
    try:
        held = msgspec.json.decode(text, type=_Held)
    except (msgspec.DecodeError, RecursionError):
        return None
    return [
        Loaded(model=one.name, bytes=one.size, device_bytes=one.size_vram, context_tokens=one.context_length)
        for one in held.models
    ]


class _Slot(msgspec.Struct, frozen=True):
    n_ctx: int | None = None
    is_processing: bool | None = None


class _Settings(msgspec.Struct, frozen=True):
    n_ctx: int | None = None


class _Props(msgspec.Struct, frozen=True):
    total_slots: int
    default_generation_settings: _Settings = _Settings()


def _slots(endpoint: Endpoint, ask: Ask) -> Slots | None:
    """What llama.cpp tells of its slots, by either of two pages; each can be closed."""
    rows = _decoded(_asked(endpoint, ask, "/slots"), list[_Slot])
    if rows:
        told = [row.is_processing for row in rows if row.is_processing is not None]
        busy = sum(told) if len(told) == len(rows) else None
        return Slots(total=len(rows), busy=busy, context_tokens=rows[0].n_ctx)
    props = _decoded(_asked(endpoint, ask, "/props"), _Props)
    if props is None:
        return None
    return Slots(total=props.total_slots, context_tokens=props.default_generation_settings.n_ctx)


def _asked(endpoint: Endpoint, ask: Ask, tail: str) -> bytes:
    """The page beside the metrics page; nothing where there is none, for the figures stand without it."""
    root = endpoint.base_path.removesuffix("/metrics")
    try:
        answer = ask(endpoint._replace(base_path=root).root(tail))
    except TargetError:
        return b""
    return answer.body if answer.status == 200 else b""


def _decoded(data: bytes, kind: type[Kind]) -> Kind | None:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
