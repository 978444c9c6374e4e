"""What of a request goes into a workload file: the text only where it is asked for. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from . import estimate
from .entry import NS_PER_S, Entry, Part, Row, is_prompt

Text = Literal["kept", "redacted", "lengths"]
"""`redacted`: who spoke and how long, sessions by number; `lengths`: totals, gaps and blocks, nothing else."""


def rows(text: Text, first_ns: int | None) -> Callable[[Entry], Row]:
    """What makes the rows of one file; offsets count from `first_ns`."""
    sessions: dict[str, str] = {}

    def row(entry: Entry) -> Row:
        session = entry.session
        if session is not None and text == "redacted":
            session = sessions.setdefault(session, f"s{len(sessions) + 1}")
        return Row(
            offset_s=None if entry.at_ns is None or first_ns is None else (entry.at_ns - first_ns) / NS_PER_S,
            input_tokens=entry.input_tokens,
            output_tokens=entry.output_tokens,
            turns=entry.turns,
            parts=_parts(entry.parts, text),
            hash_ids=None if text == "kept" and is_prompt(entry.parts) else entry.hash_ids,
            session=None if text == "lengths" else session,
            scenario=entry.scenario,
            custom_id=entry.custom_id if text == "kept" else None,
            guessed_input=entry.guessed_input,
            guessed_output=entry.guessed_output,
        )

    return row


def _parts(parts: tuple[Part, ...], text: Text) -> tuple[Part, ...]:
    if text == "kept":
        return parts
    if text == "lengths":
        return ()
    return tuple(
        Part(part.role, None, part.tokens if part.text is None else estimate.tokens(part.text)) for part in parts
    )
