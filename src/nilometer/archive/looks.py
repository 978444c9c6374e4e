"""Looks at a metrics page as segments of bytes and back, exactly.

Codec `looks-1`: stamps as distances to the one before, texts joined; a page hardly differs from the one before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from nilometer.core.telemetry import Look

from .columns import DamagedError, fold, ints, pack, texts, unfold, unpack, untexts

LOOKS = "looks-1"
PIECE_CHARS = 1_500_000
"""Of the texts in one segment: UTF-8 that nothing makes smaller stays below 8 MB."""


def encode(seen: Iterable[Look]) -> Iterator[bytes]:
    """The segments in order; none of no looks."""
    for piece in _pieces(seen):
        asked = ints(one.asked_ns for one in piece)
        yield pack(
            {
                "asked": fold(np.diff(asked, prepend=0)),
                "took": fold(ints(one.answered_ns - one.asked_ns for one in piece)),
                **texts("text", [one.text for one in piece]),
                **texts("fault", [one.fault for one in piece]),
            }
        )


def _pieces(seen: Iterable[Look]) -> Iterator[list[Look]]:
    piece: list[Look] = []
    held = 0
    for one in seen:
        size = len(one.text or one.fault or "")
        if piece and held + size > PIECE_CHARS:
            yield piece
            piece, held = [], 0
        piece.append(one)
        held += size
    if piece:
        yield piece


def decode(codecs: set[str], segments: Iterable[bytes]) -> list[Look]:
    """The looks in order; `codecs` are all of the segments. Raises DamagedError."""
    if codecs - {LOOKS}:
        raise DamagedError(f"unknown codec {sorted(codecs - {LOOKS})}")
    return [look for segment in segments for look in _decoded(segment)]


def _decoded(segment: bytes) -> Iterator[Look]:
    columns = unpack(segment)
    try:
        asked = np.cumsum(unfold(columns["asked"]))
        answered = asked + unfold(columns["took"])
        said, faults = untexts("text", columns), untexts("fault", columns)
        yield from (Look(*cells) for cells in zip(asked.tolist(), answered.tolist(), said, faults, strict=True))
    except (KeyError, ValueError) as fault:
        raise DamagedError(f"looks: {fault}") from None
