"""What a reader hands back for one answer, and the names of the ways an answer ends. Values only."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from ..core.record import ErrorKind, TokenSource

Scalar = float | int | str | bool | None

FINISH_REASONS: dict[str, str] = {
    "stop": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "word": "stop",
    "completed": "stop",
    "stop_sequence": "stop",
    "end_turn": "stop",
    "length": "length",
    "max_tokens": "length",
    "max_length": "length",
    "model_length": "length",
    "limit": "length",
    "max_output_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_calls": "tool_calls",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
    "refusal": "content_filter",
    "safety": "content_filter",
    "recitation": "content_filter",
    "blocklist": "content_filter",
    "prohibited_content": "content_filter",
    "spii": "content_filter",
    "image_safety": "content_filter",
    "image_prohibited_content": "content_filter",
}
"""Native finish reason in small letters -> ours; one that is not here is `other`."""

FAILED_FINISHES = frozenset({"abort", "error"})
"""Finish reasons by which a server says, with status 200, that it gave the answer up."""


class Fault(NamedTuple):
    """The first thing that makes the answer an error; `detail` is the server's own words, at most 200 bytes."""

    kind: ErrorKind
    detail: str | None


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """One answer, read to its end. Tokens are None where nobody stated them; texts only where they were to be kept.

    `complete`: every choice seen has finished, or the end mark came. `first_answer` counts matter events from 0.
    `choices` is 0 where the body held no choice at all. `hidden_tokens`: tokens are counted that were never streamed.
    `text`, `reasoning` and `tool_arguments` are those of the first choice.
    """

    finish_reason: str | None = None
    native_finish_reason: str | None = None
    complete: bool = False
    matter_events: int = 0
    first_answer: int | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    token_source: TokenSource = "none"
    choices: int = 0
    hidden_tokens: bool = False
    fault: Fault | None = None
    model: str | None = None
    server: dict[str, Scalar] | None = None
    server_request_id: str | None = None
    text: str | None = None
    reasoning: str | None = None
    tool_arguments: str | None = None
    usage_seen: bool = False


def normal_finish(native: str | None) -> str | None:
    """One of stop, length, tool_calls, content_filter, other; None where the server named no reason."""
    return None if native is None else FINISH_REASONS.get(native.lower(), "other")


def estimate_tokens(matter_events: int, text_bytes: int) -> int:
    """Output tokens where nobody counted them: four bytes a token, but at least one a frame with matter."""
    return max(matter_events, round(text_bytes / 4))
