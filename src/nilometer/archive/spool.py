"""Segments between their making and the transaction that writes them: in memory while small, then in a nameless file.

The file lies beside an archive that is one, where the room is needed anyway, and is gone when the process ends, however
it ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import NamedTuple

BLOB_LIMIT_BYTES = 8_000_000
"""Most that one row of the database may hold of a segment."""


class Part(NamedTuple):
    """One row of `record_segment` but for its run."""

    n: int
    part: int
    codec: str
    records: int
    blob: bytes


class _Segment(NamedTuple):
    codec: str
    records: int
    size_bytes: int


class Spool:
    """Takes segments in, gives them back as rows of at most BLOB_LIMIT_BYTES."""

    def __init__(self, folder: Path | None) -> None:
        place = None if folder is None else str(folder)
        self._file = SpooledTemporaryFile(max_size=BLOB_LIMIT_BYTES, dir=place)  # noqa: SIM115 - closed by __exit__
        self._segments: list[_Segment] = []

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._file.close()

    @property
    def records(self) -> int:
        """Records in all segments."""
        return sum(segment.records for segment in self._segments)

    def add(self, codec: str, records: int, blob: bytes) -> None:
        """Append one segment."""
        self._file.write(blob)
        self._segments.append(_Segment(codec, records, len(blob)))

    def parts(self) -> Iterator[Part]:
        """All segments in order, cut into parts."""
        self._file.seek(0)
        for n, segment in enumerate(self._segments):
            for part, start in enumerate(range(0, segment.size_bytes, BLOB_LIMIT_BYTES)):
                blob = self._file.read(min(BLOB_LIMIT_BYTES, segment.size_bytes - start))
                yield Part(n, part, segment.codec, segment.records, blob)
