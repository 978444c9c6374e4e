"""Columns of numbers over time, such as what the load worker saw of itself, as segments of bytes and back, exactly.

Codec `series-1`: each column as the distance of a number to the one before it; a column that is no whole number of
int64 stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from .columns import Columns, DamagedError, Ints, fold, pack, unfold, unpack

SERIES = "series-1"

PIECE_BYTES = 1 << 20
"""Of each of up to five columns in one segment; a multiple of 8. Of more columns each has less."""
_FULL_COLUMNS = 5


def encode(columns: Mapping[str, bytes]) -> list[bytes]:
    """The segments in order; none where every column is empty. Incompressible columns stay below 8 MB."""
    longest = max((len(column) for column in columns.values()), default=0)
    piece = PIECE_BYTES if len(columns) <= _FULL_COLUMNS else PIECE_BYTES * _FULL_COLUMNS // len(columns) // 8 * 8
    return [
        _encode({name: column[start : start + piece] for name, column in columns.items()})
        for start in range(0, longest, piece)
    ]


def _encode(columns: Mapping[str, bytes]) -> bytes:
    packed: Columns = {}
    for name, column in columns.items():
        if len(column) % 8:
            packed[f"{name}.bytes"] = np.frombuffer(column, dtype=np.uint8)
        elif column:
            numbers: Ints = np.frombuffer(column, dtype=np.int64)
            packed[name] = fold(np.diff(numbers, prepend=0))
    return pack(packed)


def decode(codecs: set[str], segments: Iterable[bytes]) -> dict[str, bytes]:
    """The columns by name, those that were empty left out; `codecs` are all of the segments. Raises DamagedError."""
    if codecs - {SERIES}:
        raise DamagedError(f"unknown codec {sorted(codecs - {SERIES})}")
    columns: dict[str, bytes] = {}
    for segment in segments:
        for name, packed in unpack(segment).items():
            whole = name.removesuffix(".bytes")
            piece = packed if whole != name else np.cumsum(unfold(packed))
            columns[whole] = columns.get(whole, b"") + piece.tobytes()
    return columns
