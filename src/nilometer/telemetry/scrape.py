"""A server's metrics page again and again while a run goes on: asked for by a child process, kept as text.

The child is `scrape_child`: it asks at a steady pace and writes what is worth keeping to a file, with the stamps of the
run's own clock; nothing is parsed until the run is over. It ends with its parent, whatever becomes of that.
"""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from nilometer.core.telemetry import Look

EVERY_S = 1.0
_END_LIMIT_S = 10.0
HEAD = struct.Struct("<qq?I")
"""Of each look: when it was asked and when answered (ns, monotonic), whether that was a page, bytes that follow."""
MOST_TEXT_BYTES = 16 << 20


class ScrapeOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What the child is told, over a pipe: headers may hold a key."""

    url: str
    file: str
    every_s: float = EVERY_S
    timeout_s: float = 5.0
    headers: dict[str, str] = {}
    insecure: bool = False
    proxy: str | None = None
    most_bytes: int = 256 << 20
    """The file grows no further; a page of ten engines takes about 5 kB of it."""


class Scraper:
    """The child while a run goes on. Use as a context manager; `looks` are there when it has ended."""

    def __init__(
        self,
        address: str,
        file: Path,
        *,
        every_s: float = EVERY_S,
        headers: Mapping[str, str] | None = None,
        insecure: bool = False,
        proxy: str | None = None,
    ) -> None:
        self.file = file
        self._order = ScrapeOrder(
            url=address, file=str(file), every_s=every_s, headers=dict(headers or {}), insecure=insecure, proxy=proxy
        )
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: socket.socket | None = None

    def __enter__(self) -> Scraper:
        ours, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "nilometer.telemetry.scrape_child"],
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        theirs.close()
        self._pipe = ours
        try:
            ours.sendall(msgspec.json.encode(self._order) + b"\n")
        except OSError:
            self.close()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the child after the look it is at; may be called twice."""
        process, self._process = self._process, None
        if self._pipe is not None:
            self._pipe.close()  # at its end the child leaves
        if process is None:
            return
        try:
            process.wait(timeout=_END_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def looks(self) -> Iterator[Look]:
        """What was seen, in order."""
        return looks(self.file)


def packed(look: Look) -> bytes:
    """A look as it is written."""
    said = look.fault if look.text is None else look.text
    body = zlib.compress((said or "").encode(), 1)
    return HEAD.pack(look.asked_ns, look.answered_ns, look.text is not None, len(body)) + body


def looks(file: Path) -> Iterator[Look]:
    """The looks that a file holds; one that was cut off when its writer ended is left out, as is all behind a damage.

    None of a file that is not there: the child never came to write it.
    """
    try:
        opened = file.open("rb")
    except FileNotFoundError:
        return
    with opened:
        while len(head := opened.read(HEAD.size)) == HEAD.size:
            asked_ns, answered_ns, is_page, size = HEAD.unpack(head)
            body = opened.read(min(size, MOST_TEXT_BYTES))
            if len(body) < size or (said := _unpacked(body)) is None:
                return
            yield Look(asked_ns, answered_ns, said) if is_page else Look(asked_ns, answered_ns, fault=said)


def _unpacked(body: bytes) -> str | None:
    try:
        return zlib.decompressobj().decompress(body, MOST_TEXT_BYTES).decode("utf-8", "replace")
    except zlib.error:
        return None
