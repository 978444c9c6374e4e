"""A result file in memory, within a bound: what shape it has, and its JSON objects with the lines they stand on."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import msgspec

from nilometer.core.errors import DataError

from ..lines import Stream

MOST_BYTES = 1 << 30
"""A larger file is refused: it is held in memory."""
SQLITE = b"SQLite format 3\0"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|\bNaN\b|-?\bInfinity\b', re.DOTALL)
_BYTE = re.compile(r"byte (\d+)")
_FAULTS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_SNIFFED = 64
"""Lines of a table or text that are looked at to tell what it is."""

Members = dict[str, msgspec.Raw]
Shape = Literal["sqlite", "object", "lines", "array", "text"]
_MEMBERS = msgspec.json.Decoder(Members)
_ELEMENTS = msgspec.json.Decoder(list[msgspec.Raw])


class Opened:
    """One file. Refuses `file_unreadable`, `file_piped`, `packed_broken`, `file_no_text`, `result_empty`,
    `result_too_large`, `result_cut_off`, `result_broken`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.data = _read(path)
        self.shape: Shape = "text"
        self.first: Mapping[str, msgspec.Raw] = {}
        """The members of the first object."""
        self._look()

    @cached_property
    def modified_ns(self) -> int:
        """When the file was last written, ns since 1970."""
        return self.path.stat().st_mtime_ns

    @property
    def names(self) -> frozenset[str]:
        """Those of the members of the first object."""
        return frozenset(self.first)

    def objects(self) -> Iterator[tuple[int | None, Members]]:
        """(line, members) of each object: the lines of JSON lines, the elements of an array, or the one there is."""
        if self.shape == "object":
            yield None, self._whole(_MEMBERS)
        elif self.shape == "array":
            yield from ((None, self._element(element)) for element in self._whole(_ELEMENTS))
        elif self.shape == "lines":
            for number, line in enumerate(io.BytesIO(self.data), 1):
                if line.strip():
                    yield number, self._decoded(_MEMBERS, line, number - 1)

    def text_lines(self) -> list[str]:
        """The lines of a file that is no JSON."""
        try:
            return self.data.decode("utf-8").splitlines()
        except UnicodeDecodeError:
            raise DataError("file_no_text", file=str(self.path)) from None

    def beside(self, name: str) -> Opened | None:
        """Another file that its tool wrote into the same folder; None where it is not there or cannot be read."""
        path = self.path.with_name(name)
        try:
            return Opened(path) if path.is_file() else None
        except DataError:
            return None

    def broken(self, detail: str, line: int = 1) -> DataError:
        """The refusal of a file that is not as its tool writes it."""
        return DataError("result_broken", file=str(self.path), line=line, detail=detail[:200])

    def newer(self, tool: str, found: str, known: str) -> DataError:
        """The refusal of a file that a later version of its tool wrote."""
        return DataError("result_newer", file=str(self.path), tool=tool, found=found, known=known)

    def _look(self) -> None:
        if self.data.startswith(SQLITE):
            self.shape = "sqlite"
            return
        head = self.data[:4096].lstrip()
        if not head:
            raise DataError("result_empty", file=str(self.path))
        if head.startswith(_UTF16) or b"\0" in head:
            raise DataError("file_no_text", file=str(self.path))
        if head.startswith(b"["):
            self.shape = "array"
        elif head.startswith(b"{"):
            self.shape = "object" if self._is_one() else "lines"
        if self.shape != "text":
            self.first = next((members for _, members in self.objects()), {})

    def _is_one(self) -> bool:
        """One object, and not one a line."""
        try:
            self._whole(_MEMBERS)
        except DataError:
            line = self.data.lstrip().split(b"\n", 1)[0]
            return self._tried(line) is None
        return True

    def _tried(self, line: bytes) -> Members | None:
        try:
            return _MEMBERS.decode(_plain(line))
        except _FAULTS:
            return None

    def _whole(self, decoder: msgspec.json.Decoder[Any]) -> Any:
        return self._decoded(decoder, self.data, 0)

    def _element(self, element: msgspec.Raw) -> Members:
        members: Members = self._decoded(_MEMBERS, bytes(element), 0)
        return members

    def _decoded(self, decoder: msgspec.json.Decoder[Any], text: bytes, before: int) -> Any:
        """What stands in `text`, which begins behind `before` lines; NaN is read as null, an infinity as the text."""
        try:
            return decoder.decode(text)
        except _FAULTS as fault:
            first = fault
        try:
            return decoder.decode(_plain(text))
        except _FAULTS as fault:
            raise self._refusal(fault if _is_odd(text) else first, text, before) from None

    def _refusal(self, fault: Exception, text: bytes, before: int) -> DataError:
        if "truncated" in str(fault):
            return DataError("result_cut_off", file=str(self.path), line=before + text.rstrip().count(b"\n") + 1)
        at = _BYTE.search(str(fault))
        line = before + (text[: int(at[1])].count(b"\n") if at else 0) + 1
        return self.broken(str(fault), line)


def _is_odd(text: bytes) -> bool:
    return b"NaN" in text or b"Infinity" in text


def _plain(text: bytes) -> bytes:
    """JSON in which no number is written as Python writes those that are none."""
    if not _is_odd(text):
        return text
    return _TOKEN.sub(lambda found: _ODD.get(found[0], found[0]), text)


_ODD = {b"NaN": b"null", b"Infinity": b'"inf"', b"-Infinity": b'"-inf"'}


def _read(path: Path) -> bytes:
    held: list[bytes] = []
    size = 0
    for block in Stream(path).blocks():
        size += len(block)
        if size > MOST_BYTES:
            raise DataError("result_too_large", file=str(path), limit_bytes=MOST_BYTES)
        held.append(block)
    return held[0] if len(held) == 1 else b"".join(held)
