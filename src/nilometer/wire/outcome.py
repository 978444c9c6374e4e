"""How a response that was answered at all is judged: outcome, error kind, and the server's own words.

What the net and the timers see (refused, cut off by us, out of time) is judged where it is seen, not here.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core.record import ErrorKind, Outcome
from .answer import Answer
from .frame import complaint, excerpt

_STREAM_STARTS = (b"data:", b"event:", b":", b"id:", b"retry:")
_JSON_STARTS = (b"{", b"[")
_JSON_KINDS = frozenset({"application/json", "application/x-ndjson", "application/jsonl", "application/x-jsonlines"})


class Verdict(NamedTuple):
    """`detail` is at most 200 bytes of what the server said."""

    outcome: Outcome
    error: ErrorKind | None = None
    detail: str | None = None


def is_stream(content_type: str | None, head: bytes, *, lines: bool = False) -> bool | None:
    """Whether the body is a stream (True) or one JSON (False); None: neither, so no model answer.

    The first bytes rule, since servers mislabel both; the content type decides where they do not tell. Where the
    dialect streams `lines` of JSON, JSON is a stream: only its reader can tell whether one line is all there is.
    """
    start = _start(head)
    if start.startswith(_JSON_STARTS):
        return lines
    if start.startswith(_STREAM_STARTS):
        return None if lines else True
    kind = (content_type or "").partition(";")[0].strip().lower()
    if kind == "text/event-stream" and not (lines or start.startswith(b"<")):
        return True
    json = kind in _JSON_KINDS or kind.endswith("+json")
    return lines if json and not start else None


def _start(head: bytes) -> bytes:
    return head.removeprefix(b"\xef\xbb\xbf").lstrip()


def judge(
    *,
    status: int | None,
    content_type: str | None,
    head: bytes,
    answer: Answer | None,
    whole: bool,
    lines: bool = False,
    encoding: str | None = None,
) -> Verdict:
    """The verdict on one response.

    `status` None: closed before a status line. `head`: the first 400 bytes of the body. `answer` None: nothing was
    read. `whole`: the body ended as HTTP says it should. `lines`: the dialect streams lines of JSON. `encoding`: the
    Content-Encoding; none is asked for, and a body that has one is not read.
    """
    if status is None:
        return Verdict("incomplete")
    packed = None if (encoding or "identity").lower() == "identity" else excerpt(f"Content-Encoding: {encoding}")
    if not 200 <= status < 300:
        return Verdict("error", _status_kind(status), packed or complaint(head, marked=True))
    if packed:
        return Verdict("error", "not_a_model_answer", packed)
    if not head:
        return Verdict("error", "not_a_model_answer") if whole else Verdict("incomplete")
    streamed = is_stream(content_type, head, lines=lines)
    if streamed is None or answer is None:
        return Verdict("error", "not_a_model_answer", excerpt(head))
    return _judge_answer(answer, streamed, head, whole)


def _status_kind(status: int) -> ErrorKind:
    if status == 429:
        return "http_429"
    if 400 <= status < 500:
        return "http_4xx"
    return "http_5xx" if 500 <= status < 600 else "not_a_model_answer"


def _judge_answer(answer: Answer, streamed: bool, head: bytes, whole: bool) -> Verdict:
    fault = answer.fault
    if fault is not None:
        # JSON that was cut reads as malformed, but what is wrong with it is the cut.
        cut = fault.kind == "malformed" and not streamed and not whole
        return Verdict("incomplete") if cut else Verdict("error", fault.kind, fault.detail)
    if answer.complete and answer.choices:
        return Verdict("ok")
    no_stream = not streamed or not (answer.choices or _start(head).startswith(_STREAM_STARTS))
    if answer.complete or (whole and no_stream):
        return Verdict("error", "not_a_model_answer", excerpt(head))
    return Verdict("incomplete")
