"""Bytes of a file as lines with their numbers, whatever it is packed in; nothing is held longer than it is needed."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import BinaryIO

from nilometer.core.errors import DataError

try:
    from compression import zstd  # type: ignore[import-not-found,unused-ignore]
except ImportError:
    from backports import zstd

BLOCK_BYTES = 1 << 20
LINE_LIMIT_BYTES = 64 << 20
_GZIP, _ZSTD, _BOM = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xef\xbb\xbf"
_BROKEN = (EOFError, zlib.error, gzip.BadGzipFile, zstd.ZstdError)


class Stream:
    """One file, read once from its beginning. `quirks` tells what was odd about its bytes, when it is at its end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.quirks: dict[str, None] = {}
        self._raw: BinaryIO | None = None
        self._size = 0

    @property
    def share(self) -> float | None:
        """How much of the file as it lies on the disk has been read, 0..1; None where that is not known."""
        if self._raw is None or self._raw.closed or not self._size:
            return None
        return self._raw.tell() / self._size

    def blocks(self) -> Iterator[bytes]:
        """The unpacked bytes without a byte order mark. Refuses `file_unreadable`, `file_piped`, `packed_broken`."""
        with self._faults(), self._opened() as raw:
            self._raw = raw
            self._size = raw.seek(0, 2)
            raw.seek(0)
            file = _unpacked(raw)
            block = file.read(BLOCK_BYTES)
            if block.startswith(_BOM):
                self.quirks["byte_order_mark"] = None
                block = block[3:] or file.read(BLOCK_BYTES)
            while block:
                yield block
                block = file.read(BLOCK_BYTES)

    def _opened(self) -> BinaryIO:
        mode = self.path.stat().st_mode
        if not S_ISREG(mode) and not S_ISDIR(mode):  # opening a pipe may wait for ever, and it could be read but once
            raise DataError("file_piped", file=str(self.path))
        return self.path.open("rb")

    def chunks(self) -> Iterator[bytes]:
        """Whole lines together, each ended by a line feed, the last one too. A line over the bound is cut short there:
        its chunk is `b""`, and the rest of it is passed over."""
        rest = b""
        last = b"\n"
        passing = False
        for block in self.blocks():
            last = block
            end = block.rfind(b"\n") + 1
            if passing:
                start = block.find(b"\n") + 1
                if not start:
                    continue
                passing = False
                block, end = block[start:], end - start  # noqa: PLW2901 - what is left of it
            if end:
                yield rest + block[:end]
                rest = block[end:]
            else:
                rest += block
            if len(rest) > LINE_LIMIT_BYTES:
                yield b""
                rest, passing = b"", True
        if rest:
            yield rest + b"\n"
        if not last.endswith(b"\n"):
            self.quirks["no_final_line_end"] = None

    def lines(self, *, blank: bool = False) -> Iterator[tuple[int, bytes | None]]:
        """(number from 1, line without its end); None for one over the bound. Blank lines are left out, unless they
        are part of what is read: `blank`."""
        number = 0
        for chunk in self.chunks():
            if not chunk:
                number += 1
                yield number, None
                continue
            if b"\r\n" in chunk:
                self.quirks["crlf"] = None
            for line in chunk[:-1].split(b"\n"):
                number += 1
                if line and not line.isspace():
                    yield number, line.rstrip(b"\r")
                    continue
                self.quirks["blank_lines"] = None
                if blank:
                    yield number, line.rstrip(b"\r")

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except _BROKEN as fault:
            raise DataError("packed_broken", file=str(self.path), detail=str(fault)[:200]) from None
        except OSError as fault:
            raise DataError("file_unreadable", file=str(self.path), detail=fault.strerror or str(fault)) from None


def _unpacked(raw: BinaryIO) -> BinaryIO:
    magic = raw.read(4)
    raw.seek(0)
    if magic.startswith(_GZIP):
        return gzip.GzipFile(fileobj=raw)  # type: ignore[return-value]
    if magic == _ZSTD:
        return zstd.ZstdFile(raw)  # type: ignore[return-value,no-any-return,unused-ignore]
    return raw
