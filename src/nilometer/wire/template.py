"""The learned frame: most frames of a stream differ in nothing but one short piece of text, so they need no parser.

From one frame that was read the long way, everything around its text is kept as `head` and `tail`. A later chunk that
is head + piece + tail, the piece made of bytes that mean themselves in JSON and in an event stream, can hold nothing
but that piece. It is a shortcut, never a guess: what does not match byte for byte goes the long way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from .matter import Piece
from .sse import EventStream

PLAIN = bytes(byte for byte in range(0x20, 0x100) if byte not in b'"\\\x7f')
"""Bytes that mean themselves inside a JSON string; those above ASCII only where they are whole UTF-8."""

_CANDIDATES = 4
_LF, _CR, _BRACE = b"\n\r}"


class Template(NamedTuple):
    """The bytes of a chunk before and after its piece."""

    matter: int
    head: bytes
    tail: bytes


def is_utf8(piece: bytes) -> bool:
    """Whether the bytes are whole, valid UTF-8."""
    try:
        piece.decode()
    except UnicodeDecodeError:
        return False
    return True


def learn(chunk: bytes, read: Callable[[bytes], Piece | None]) -> Template | None:
    """The template of a chunk that is one frame with one piece of text in it; None where it is anything else.

    `read` gives the piece of an event's data. That head and tail enclose it is proved by exchanging it: two other
    texts put in its place must be read as just these.
    """
    piece = _read_chunk(chunk, read)
    if piece is None:
        return None
    text = piece.text.encode()
    at = -1
    for _ in range(_CANDIDATES):
        at = chunk.find(b'"' + text + b'"', at + 1)
        if at < 0:
            return None
        head, tail = chunk[: at + 1], chunk[at + 1 + len(text) :]
        others = (piece.text + "~", "~" + piece.text)
        if all(_read_chunk(head + other.encode() + tail, read) == (piece.matter, other) for other in others):
            return Template(piece.matter, head, tail)
    return None


def _read_chunk(chunk: bytes, read: Callable[[bytes], Piece | None]) -> Piece | None:
    data = one_line_frame(chunk) or _one_event(chunk)
    return None if data is None else read(data)


def one_line_frame(chunk: bytes) -> bytes | None:
    """The data of a chunk that is one frame of one line, ended by LF, at the start of an event; None for any other."""
    if chunk[:5] == b"data:" and chunk[-1] == _LF and chunk[-2] == _LF and chunk[-3] == _BRACE:
        data = chunk[5:-2]
        if _LF not in data and _CR not in data:
            return data
    return None


def _one_event(chunk: bytes) -> bytes | None:
    stream = EventStream()
    stream.feed(b"\n")  # past the place of a byte order mark
    events = stream.feed(chunk)
    if len(events) != 1 or events[0].name == b"error" or not stream.clean:
        return None
    return events[0].data
