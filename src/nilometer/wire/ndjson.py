"""A stream of JSON lines: bytes in, whole lines out, and the reader of a dialect that streams so.

Any split of the bytes gives the same lines. Every byte is looked at once, so the cost is linear in the body, also for
one line of 64 MB that comes in small pieces.
"""

from __future__ import annotations

from .answer import Answer
from .frame import is_json
from .tally import Tally

_BOM = b"\xef\xbb\xbf"


class Lines:
    """Feed it the body's bytes as they come; it hands back the lines that they complete, blank ones left out."""

    __slots__ = ("_line", "_started")

    def __init__(self) -> None:
        self._line = bytearray()
        self._started = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines completed by `chunk`, in order, without white space around them. A line ends with LF."""
        *ended, rest = chunk.split(b"\n")
        lines: list[bytes] = []
        for part in ended:
            if self._line:
                self._line += part
                part = bytes(self._line)  # noqa: PLW2901 - the same line, whole
                self._line.clear()
            if line := self._stripped(part):
                lines.append(line)
        self._line += rest
        return lines

    @property
    def rest(self) -> bytes:
        """What stands behind the last line end."""
        return self._stripped(bytes(self._line))

    def _stripped(self, line: bytes) -> bytes:
        if not self._started:
            line = line.removeprefix(_BOM)
        line = line.strip()
        self._started = self._started or bool(line)
        return line


class LineReader:
    """Reads JSON lines of a dialect; also the whole answer that such a server gives where no stream was asked.

    That is one object: alone on the one line that both begins and ends the answer, or spread over many lines. It has
    no events. The last line may lack its end: it is counted, but has no moment of its own, so it is no event either.
    """

    __slots__ = ("_body", "_events", "_lines", "_tally", "tokens")

    def __init__(self, tally: Tally) -> None:
        self.tokens = tally.tokens
        self._tally = tally
        self._lines = Lines()
        self._events = 0
        self._body: bytearray | None = None

    @property
    def first_answer(self) -> int | None:
        return self._tally.first_answer

    @property
    def complete(self) -> bool:
        return self._tally.complete

    def feed(self, chunk: bytes) -> int:
        """The number of lines with generated matter that `chunk` completed."""
        lines = self._lines.feed(chunk)
        return sum([self._line(line) for line in lines]) if lines else 0

    def _line(self, line: bytes) -> int:
        if self._body is not None:
            self._body += b"\n" + line
            return 0
        if not self._events and not is_json(line):
            self._body = bytearray(line)
            return 0
        self._events += 1
        matter = self._tally.event(line) if line.startswith(b"{") else self._tally.end(line)
        if self._events == 1 and self._tally.complete:
            self._tally.unmark()
            return 0
        return matter

    def close(self) -> Answer:
        """What was read. A last line that is no whole JSON was cut: it counts for nothing."""
        rest = self._lines.rest
        if self._body is not None:
            whole = bytes(self._body) + b"\n" + rest
            if is_json(whole):
                self._tally.whole(whole)
        elif rest and is_json(rest):
            self._last(rest)
        return self._tally.answer()

    def _last(self, line: bytes) -> None:
        tally, events, first_answer = self._tally, len(self.tokens), self._tally.first_answer
        if self._line(line) == 1:
            del self.tokens[events:]
            tally.first_answer = first_answer
