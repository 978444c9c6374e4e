"""What the beginning of a file shows: how it is laid out and its first row. It decides nothing."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from nilometer.core.errors import DataError

from .documents import Elements
from .lines import LINE_LIMIT_BYTES, Stream

Layout = Literal["lines", "array", "document", "csv", "text"]
"""JSON a line; one JSON array; one JSON value over several lines; CSV with a header; anything else, line by line."""
_LINES = 50
_BLANK = b" \t\r\n\v\f"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


class Sniff(NamedTuple):
    """`first` is the first JSON value that could be read, or the cells of the first row of a CSV by its header."""

    name: str
    layout: Layout
    first: Any
    header: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()

    def keys(self) -> frozenset[str]:
        """The names in the first row."""
        return frozenset(self.first) if isinstance(self.first, Mapping) else frozenset()


def sniff(path: Path) -> Sniff:
    """Look at the first block of the file, and at more where its first value is longer.

    Refuses `file_unreadable`, `file_piped`, `packed_broken`, `file_empty`, `file_no_text`, `line_too_long`.
    """
    block = next(Stream(path).blocks(), b"")
    if block.translate(None, _BLANK) in (b"", b"[]"):
        raise DataError("file_empty", file=str(path))
    if block.startswith(_UTF16) or b"\0" in block.partition(b"\n")[0]:
        raise DataError("file_no_text", file=str(path))
    name = path.name.lower().removesuffix(".gz").removesuffix(".zst")
    whole = block if block.endswith(b"\n") else block[: block.rfind(b"\n") + 1] or block
    lines = [line for line in whole.split(b"\n") if line.strip()][:_LINES]
    start = block.lstrip()[:1]
    if start in (b"[", b"{", b'"') and not name.endswith((".csv", ".txt")):
        found = _json(path, name, lines, start)
        if found is not None:
            return found
    return _table(name, lines)


def _json(path: Path, name: str, lines: list[bytes], start: bytes) -> Sniff | None:
    values = [value for line in lines if (value := _value(line)) is not None]
    array = start == b"[" and (not values or not _is_chat(values[0]))
    if array and (not values or isinstance(values[0], list)):
        first = _first(path, Elements().split(Stream(path).blocks()))
        return None if first is None else Sniff(name, "array", first)
    if values:
        return Sniff(name, "lines", values[0])
    first = _first(path, Elements().split(chain([b"["], Stream(path).blocks())))
    return None if first is None or start != b"{" else Sniff(name, "document", first)


def _is_chat(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict) and "role" in value[0]


def _first(path: Path, elements: Iterator[tuple[int, bytes | None]]) -> Any:
    """The first value that can be read; few are tried, as a file may hold none."""
    for line, piece in islice(elements, _LINES):
        if piece is None:
            raise DataError("line_too_long", file=str(path), line=line, detail=f"{LINE_LIMIT_BYTES >> 20} MB")
        value = _value(piece)
        if value is not None:
            return value
    return None


def _value(text: bytes) -> Any:
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return value if isinstance(value, dict | list | str) else None


def _table(name: str, lines: list[bytes]) -> Sniff:
    texts = tuple(line.decode("utf-8", "replace").rstrip("\r") for line in lines)
    try:
        rows = list(islice(csv.reader(f"{text}\n" for text in texts), 2))  # a quoted text goes over several lines
    except csv.Error:
        rows = []
    header = tuple(rows[0]) if rows else ()
    if len(header) < 2 and not name.endswith(".csv"):
        return Sniff(name, "text", None, lines=texts)
    cells = rows[1] if len(rows) > 1 else []
    return Sniff(name, "csv", dict(zip_longest(header, cells[: len(header)], fillvalue="")), header, texts)
