"""Readers of one response body: bytes in, matter events counted, an `Answer` at the end.

A reader is fed each read's bytes as they come and never raises. It takes no time and opens nothing: whoever feeds it
stamps the reads. It may be fed at once or late, in one piece or byte by byte: the counts are the same.
"""

from __future__ import annotations

from typing import Protocol

from .answer import Answer
from .sse import BARE, EventStream
from .tally import Tally
from .template import PLAIN, is_utf8, learn, one_line_frame

_CR = 0x0D
_BLANK = b"\n\n"
_HOLD_BYTES = 4096
"""The start of a frame is held back up to here, to be read in one go; what is longer goes to the parser at once."""
_LEARN_EVERY = 16
"""Matter events between two tries to learn a frame: a server whose frames never repeat pays little for them."""


class Reader(Protocol):
    """What the load loop holds for a response."""

    tokens: list[int]
    """Per matter event the tokens that the server states for it, -1 unknown. Final only after `close`."""

    @property
    def first_answer(self) -> int | None:
        """Number of the first matter event that is more than reasoning; None so far."""

    @property
    def complete(self) -> bool:
        """The finish reason of every choice, or the end mark, was seen."""

    def feed(self, chunk: bytes) -> int:
        """The number of events with generated matter that `chunk` completed."""

    def close(self) -> Answer:
        """Call once, after the last chunk."""


class StreamReader:
    """Reads an event stream of a dialect.

    There are three ways through `feed`, each for what the one before does not cover, all with the same result: the
    learned frame, the frame of one line, the parser. Since any split gives that result, a chunk of several frames is
    cut into them first.
    """

    __slots__ = (
        "_clean",
        "_event",
        "_head",
        "_held",
        "_learn_at",
        "_matter",
        "_piece_end",
        "_piece_start",
        "_stream",
        "_tail",
        "_tally",
        "tokens",
    )

    def __init__(self, tally: Tally) -> None:
        self.tokens = tally.tokens
        self._tally = tally
        self._event = tally.event
        self._stream = EventStream()
        self._clean = False
        self._held = b""
        self._head: bytes | None = None
        self._tail = b""
        self._piece_start = self._piece_end = 0
        self._matter = 0
        self._learn_at = 1

    @property
    def first_answer(self) -> int | None:
        return self._tally.first_answer

    @property
    def complete(self) -> bool:
        return self._tally.complete

    def feed(self, chunk: bytes) -> int:
        """The number of events with generated matter that `chunk` completed."""
        if not self._clean:
            return self._feed_parts(chunk)
        head = self._head
        if head is not None and chunk.startswith(head) and chunk.endswith(self._tail):
            piece = chunk[self._piece_start : self._piece_end]
            if piece and not piece.strip(PLAIN) and (piece.isascii() or is_utf8(piece)):
                tally = self._tally
                tally.text_bytes += len(piece)
                if tally.kept is not None:
                    tally.kept.add(self._matter, piece.decode())
                self.tokens.append(-1)
                return 1
        data = one_line_frame(chunk)
        matter = self._feed_parts(chunk) if data is None else self._event(data)
        if matter == 1 and self._clean and len(self.tokens) > self._learn_at:
            self._learn(chunk)
        return matter

    def _learn(self, chunk: bytes) -> None:
        self._learn_at = len(self.tokens) + _LEARN_EVERY
        template = learn(chunk, self._tally.piece)
        if template is not None:
            self._matter, self._head, self._tail = template
            self._piece_start, self._piece_end = len(template.head), -len(template.tail)

    def _feed_parts(self, chunk: bytes) -> int:
        """Put a frame together that came in pieces, or take several apart, so that they may go the short ways."""
        if self._held:
            chunk, self._held = self._held + chunk, b""
            self._clean = True
            return self.feed(chunk)
        *parts, rest = chunk.split(_BLANK)
        if len(parts) > 1 or (parts and rest):
            matter = sum([self.feed(part + _BLANK) for part in parts])
            return matter + self.feed(rest) if rest else matter
        if self._clean and not parts and 0 < len(rest) <= _HOLD_BYTES and _CR not in rest:
            self._held = rest
            self._clean = False
            return 0
        return self._feed_parser(chunk)

    def _feed_parser(self, chunk: bytes) -> int:
        matter = 0
        for name, data in self._stream.feed(chunk):
            if name == b"error":
                self._tally.error_event(data)
            elif name == BARE:
                self._tally.complain(data)
            elif data.startswith(b"{"):
                matter += self._event(data)
            else:
                matter += self._tally.end(data.strip())
        self._clean = self._stream.clean
        return matter

    def close(self) -> Answer:
        """What was read. An event without its blank line is none; a complaint outside all fields needs none."""
        self._stream.feed(self._held)
        if bare := self._stream.bare:
            self._tally.complain(bare)
        return self._tally.answer()


def reader_of(tally: Tally, event_stream: bool) -> Reader:
    """The reader of an event stream, or of a whole answer, into this tally."""
    return StreamReader(tally) if event_stream else WholeReader(tally)


class WholeReader:
    """Reads an answer that comes as one JSON object: no matter events, so no TTFT and no TPOT."""

    __slots__ = ("_body", "_tally", "tokens")

    def __init__(self, tally: Tally) -> None:
        self.tokens = tally.tokens
        self._tally = tally
        self._body = bytearray()

    @property
    def first_answer(self) -> int | None:
        return None

    @property
    def complete(self) -> bool:
        return self._tally.complete

    def feed(self, chunk: bytes) -> int:
        """Always 0: a whole answer has no events."""
        self._body += chunk
        return 0

    def close(self) -> Answer:
        """What was read; a body that is no JSON object is a fault `malformed`."""
        self._tally.whole(bytes(self._body))
        return self._tally.answer()
