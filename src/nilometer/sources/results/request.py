"""One request of a tool as a Record: moments from the durations that it noted, in ns on a clock that starts at 0.

A moment that cannot be had from what was noted stays None: a frame that may be empty is no first token.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from http import HTTPStatus
from itertools import accumulate, pairwise
from typing import Any, Literal, NamedTuple

import numpy as np

from nilometer.core.clock import NS_PER_S
from nilometer.core.mask import WORD_CHARS
from nilometer.core.record import ErrorKind, Frames, Outcome, Phase, Record, TokenSource

from .told import Notes

Empty = Literal["no", "end", "either"]
COUNTED: TokenSource = "usage"
"""Of tools that take the server's count, or count themselves where it sends none."""
TINY_S = 0.001
"""Two moments that are no further apart stand for each other."""
_LONGEST_S = 1e9
_NAMED = re.compile(r"\b([45]\d\d) ([a-z][a-z' -]+)")
_STATUS = re.compile(r"(?:http error|status(?:[ _]code)?)\W{0,3}([45]\d\d)\b")
_PHRASES = {status.phrase.lower(): int(status) for status in HTTPStatus if status >= 400}
_WORDS: tuple[tuple[str, ErrorKind], ...] = (
    ("certificate", "tls"),
    ("sslerror", "tls"),
    ("connecttimeout", "timeout_connect"),
    ("connectionrefused", "connect"),
    ("connect call failed", "connect"),
    ("clientconnectorerror", "connect"),
    ("connecterror", "connect"),
    ("timeouterror", "timeout_total"),
    ("readtimeout", "timeout_idle"),
)
"""What the exceptions of HTTP clients are called -> our kind; the first that is found counts."""


class Seen(NamedTuple):
    """What a tool noted of one request, in seconds; None what it did not.

    `gaps_s` lie between its frames, the first of which came after `ttft_s`. `empty`: where frames without text may
    stand among them, nowhere, at the end (the finish reason), or at either end (the role).
    """

    start_s: float = 0.0
    ttft_s: float | None = None
    gaps_s: Sequence[float | None] | None = None
    empty: Empty = "no"
    last_s: float | None = None
    """Start to the last token, where no gaps tell it."""
    ttfa_s: float | None = None
    e2e_s: float | None = None
    connect_s: float | None = None
    """It connected within what it measured: we start behind that."""
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    token_source: TokenSource = "none"
    outcome: Outcome = "ok"
    error: ErrorKind | None = None
    detail: str | None = None
    phase: Phase = "measured"
    asked_output: int | None = None


def record(seq: int, seen: Seen, notes: Notes) -> Record:
    """The request as a Record. A moment that no clock holds is None."""
    seen = _possible(seen, notes)
    first, frames = _frames(seen, notes)
    last = frames[-1] if frames else seen.last_s if seen.empty == "no" else None
    if first is None or (last is not None and last < first):
        last = None

    def at(span_s: float | None) -> int | None:
        return None if span_s is None else to_ns(seen.start_s + span_s)

    return Record(
        id=str(seq),
        seq=seq,
        phase=seen.phase,
        outcome=seen.outcome,
        error=seen.error,
        error_detail=None if seen.detail is None else short(seen.detail),
        connect_ns=to_ns(seen.connect_s),
        new_connection=bool(seen.connect_s),
        prompt_tokens=seen.prompt_tokens,
        cached_tokens=seen.cached_tokens,
        output_tokens=seen.output_tokens,
        token_source="none" if seen.output_tokens is None else seen.token_source,
        asked_output=seen.asked_output,
        frames=Frames(user=_packed(seen.start_s, frames)),
        sent_ns=at(seen.connect_s or 0.0),
        first_token_ns=at(first),
        first_answer_ns=at(seen.ttfa_s),
        last_token_ns=at(last),
        end_ns=at(seen.e2e_s),
    )


def gaps_of(moments_s: Sequence[float]) -> list[float | None]:
    """What lies between neighbouring moments; None where the later one stands first."""
    return [gap if (gap := later - earlier) >= 0 else None for earlier, later in pairwise(moments_s)]


def to_ns(seconds: float | None) -> int | None:
    """A moment or a span in ns; None of what no clock holds."""
    return None if seconds is None or not abs(seconds) <= _LONGEST_S else round(seconds * NS_PER_S)


def error_kind(text: str | None, code: int | None = None) -> ErrorKind | None:
    """The kind of a failure from its status or from what its tool wrote; None where that tells none."""
    words = " ".join((text or "").lower().split())
    code = _status(words) if code is None else code
    if code is not None and 400 <= code < 600:
        return "http_429" if code == 429 else "http_5xx" if code >= 500 else "http_4xx"
    dense = words.replace(" ", "").replace("_", "")
    return next((kind for name, kind in _WORDS if name in dense), None)


def short(text: str) -> str:
    """A tool's words as they may be kept: on one line, at most WORD_CHARS."""
    return " ".join(text.split())[:WORD_CHARS]


def _possible(seen: Seen, notes: Notes) -> Seen:
    """Without spans that cannot be: what would lie before the start."""
    spans = ("ttft_s", "ttfa_s", "last_s", "e2e_s", "connect_s")
    wrong = [name for name in spans if (span := getattr(seen, name)) is not None and not span >= 0]
    for name in wrong:
        notes.odd("import_impossible", name.removesuffix("_s"))
    nothing: dict[str, Any] = dict.fromkeys(wrong)
    return seen._replace(**nothing) if nothing else seen


def _status(words: str) -> int | None:
    """The HTTP status in what a client said: by its name at the beginning, as `500 internal server error`, or called
    so. A number alone is none: it may be a line of a traceback."""
    for phrase, code in _PHRASES.items():
        if words.startswith(phrase):
            return code
    for found in _NAMED.finditer(words):
        if any(int(found[1]) == code and found[2].startswith(phrase) for phrase, code in _PHRASES.items()):
            return int(found[1])
    called = _STATUS.search(words)
    return None if called is None else int(called[1])


def _frames(seen: Seen, notes: Notes) -> tuple[float | None, list[float]]:
    """(start to first token, start to each frame with matter), in seconds, as far as the frames can be trusted."""
    gaps = None if seen.gaps_s is None else [gap for gap in seen.gaps_s if gap is not None]
    if not seen.ttft_s or seen.outcome != "ok" or gaps is None or len(gaps) < len(seen.gaps_s or ()):
        return seen.ttft_s or None, []
    at = [seen.ttft_s, *(seen.ttft_s + passed for passed in accumulate(gaps))]
    spare = len(at) - seen.output_tokens if seen.output_tokens else 0
    if seen.empty == "no" or spare <= 0:
        return seen.ttft_s, at
    at = at[:-spare] if seen.empty == "end" else _without_role(at, gaps, spare, notes)
    return at[0] if at else None, at


def _without_role(at: list[float], gaps: list[float], spare: int, notes: Notes) -> list[float]:
    """Frames of a chat of which there are `spare` more than tokens: the first names the role, the last the finish.

    With one spare it is that of the two that hardly has a time of its own. Where neither can be told, the first token
    was not seen: nothing.
    """
    if spare > 1:
        notes.odd("import_role_frame_left_out", "ttft", "ttft")
        return at[1:-1]
    if gaps[0] <= TINY_S:
        return at[1:]
    if gaps[-1] <= TINY_S:
        return at[:-1]
    notes.odd("import_first_frame_empty", "ttft", "ttft")
    return []


def _packed(start_s: float, frames: Sequence[float]) -> bytes:
    if not frames or not abs(start_s + frames[-1]) <= _LONGEST_S:
        return b""
    return np.rint((start_s + np.array(frames)) * NS_PER_S).astype("<i8").tobytes()
