"""Which places of a user's own protocol had nothing in any answer: a path that is mistyped finds nothing, silently."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol

from ..core.finding import Finding
from .custom import COUNTS

SLUG = "places_not_found"


class Read(Protocol):
    """What shows, in an answer or in its record, which places were found."""

    @property
    def native_finish_reason(self) -> str | None: ...
    @property
    def prompt_tokens(self) -> int | None: ...
    @property
    def cached_tokens(self) -> int | None: ...
    @property
    def reasoning_tokens(self) -> int | None: ...
    @property
    def token_source(self) -> str: ...


def seen_in(read: Read, *, text: bool, ended: bool) -> set[str]:
    """The keys of a protocol's places at which this answer had something; `text`, `ended`: whether these came."""
    seen = {
        "text": text,
        "finish": read.native_finish_reason is not None,
        "end": ended,
        "end_mark": ended,
        "prompt_tokens": read.prompt_tokens is not None,
        "cached_tokens": read.cached_tokens is not None,
        "output_tokens": read.token_source == "usage",
        "reasoning_tokens": read.reasoning_tokens is not None,
    }
    return {key for key, found in seen.items() if found}


def places_not_found(protocol: dict[str, Any], seen: Collection[str], *, streamed: bool) -> list[Finding]:
    """A finding that names the places of a protocol, as plain values, that are not among those seen; none: no finding.

    Thoughts, an error and the model's name may well be in no answer.
    """
    table = "stream" if streamed else "whole"
    told = ("text", "finish", "end", "end_mark", *COUNTS)
    places = {key: place for key, place in (protocol.get(table) or {}).items() if key in told and key not in seen}
    if not places:
        return []
    named = ", ".join(f"{table}.{key} = {place}" for key, place in places.items())
    return [Finding(slug=SLUG, kind="validity", severity="high", params={"places": named})]
