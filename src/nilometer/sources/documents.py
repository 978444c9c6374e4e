"""The elements of one large JSON array, one by one, without holding the array; the only scanner of JSON here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from .lines import LINE_LIMIT_BYTES

_MARK = re.compile(rb'"(?:[^"\\]++|\\.)*+"|["\[\]{}]', re.DOTALL)
_INSIDE = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_BLANK = b" \t\r\n"
_FILL = _BLANK + b","


class Elements:
    """Splits `[...]` that comes in blocks. `whole` is False until its closing bracket was met; `more`: something
    stands behind it, on `line`."""

    def __init__(self) -> None:
        self.whole = self.more = False
        self.line = 1
        self._at = self._depth = 0
        self._inside = False

    def split(self, blocks: Iterable[bytes]) -> Iterator[tuple[int, bytes | None]]:
        """(line on which it starts, bytes of an element); None for one over the bound, after which nothing follows.

        An element is what stands between brackets or braces one level down, with whatever stands before it. What is
        no JSON comes out as it stands, for the decoder to refuse.
        """
        held = b""
        opened = False
        for block in blocks:
            if self.whole:
                if self._passed(block):
                    return
                continue
            held += block
            if not opened:
                body = held.lstrip()
                self.line += held[: len(held) - len(body)].count(b"\n")
                opened, held = bool(body), body[1:]
            taken, found = self._scan(held)
            yield from found
            held = held[taken:]
            if self.whole:
                if self._passed(held):
                    return
                held = b""
                continue
            if len(held) > LINE_LIMIT_BYTES:
                yield self.line, None
                return
        if held.strip(_FILL):
            yield self.line, held.strip(_FILL)

    def _passed(self, behind: bytes) -> bool:
        """Whether what stands behind the array is more than blanks."""
        body = behind.lstrip(_BLANK)
        self.line += behind[: len(behind) - len(body)].count(b"\n")
        self.more = bool(body)
        return self.more

    def _scan(self, held: bytes) -> tuple[int, list[tuple[int, bytes]]]:
        """How many bytes are done with, and the elements among them."""
        found: list[tuple[int, bytes]] = []
        done, at = 0, self._at
        if self._inside:
            at = self._string_end(held, at)
            if self._inside:
                self._at = at
                return 0, []
        for mark in _MARK.finditer(held, at):
            at = mark.end()
            sign = held[mark.start()]
            if sign == 0x22:
                if at - mark.start() == 1:  # a string whose end has not come
                    at = self._string_end(held, at)
                    break
                continue
            self._depth += 1 if sign in b"[{" else -1
            if self._depth <= 0:
                found += self._taken(held[done : at if self._depth == 0 else at - 1])
                done = at
                if self._depth < 0:
                    self.whole = True
                    break
        self._at = at - done
        return done, found

    def _string_end(self, held: bytes, at: int) -> int:
        """From within a string to behind its end, or as far as it goes: no byte of it is looked at again."""
        found = _INSIDE.match(held, at)
        at = at if found is None else found.end()
        self._inside = held[at : at + 1] != b'"'
        return at if self._inside else at + 1

    def _taken(self, piece: bytes) -> Iterator[tuple[int, bytes]]:
        body = piece.lstrip(_FILL)
        line = self.line + piece[: len(piece) - len(body)].count(b"\n")
        self.line += piece.count(b"\n")
        body = body.rstrip(_FILL)
        if body:
            yield line, body
