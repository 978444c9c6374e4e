"""A byte-wise event-stream parser by the WHATWG rules: any line end, any length, any split of the bytes.

It knows nothing of JSON or of models. Every byte is looked at once, so the cost is linear in the body, also for one
line of 64 MB that comes in small pieces. An event that the body's end leaves without its blank line is no event.

It knows two ways besides in which servers tell of a failure, that a browser would pass over: a field `error`
(llama.cpp until autumn 2025), and JSON outside all fields (Gemini).
"""

from __future__ import annotations

from typing import NamedTuple

BARE = b"{"
"""The type under which a block of lines that are JSON and no fields is handed back."""
_BOM = b"\xef\xbb\xbf"
_LF = 0x0A


class Event(NamedTuple):
    """One dispatched event: its type (empty for a plain message) and its data lines joined by LF."""

    name: bytes
    data: bytes


class EventStream:
    """Feed it the body's bytes as they come; it hands back the events whose blank line they complete."""

    __slots__ = ("_bare", "_data", "_line", "_name", "_skip_lf", "_started", "clean")

    def __init__(self) -> None:
        self._line = bytearray()
        self._data: list[bytes] = []
        self._bare: list[bytes] = []
        self._name = b""
        self._skip_lf = False
        self._started = False
        self.clean = False
        """Nothing is pending and a byte order mark can no longer come: the next byte begins an event."""

    def feed(self, chunk: bytes) -> list[Event]:
        """The events completed by `chunk`, in order. A CR ends its line at once: no wait for an LF that may follow."""
        if self._skip_lf and chunk:
            self._skip_lf = False
            if chunk[0] == _LF:
                chunk = chunk[1:]
        events: list[Event] = []
        lines = chunk.splitlines(keepends=True)
        rest = b"" if not lines or lines[-1].endswith((b"\n", b"\r")) else lines.pop()
        for line in lines:
            self._end_line(line, events)
        self._line += rest
        self._skip_lf = self._skip_lf or chunk.endswith(b"\r")
        self.clean = self._started and not (self._line or self._data or self._bare or self._name or self._skip_lf)
        return events

    @property
    def bare(self) -> bytes:
        """JSON outside all fields that no blank line has ended so far."""
        return b"\n".join([*self._bare, bytes(self._line)]).strip()

    def _end_line(self, line: bytes, events: list[Event]) -> None:
        if self._line:
            self._line += line
            line = bytes(self._line)
            self._line.clear()
        line = line.rstrip(b"\r\n")
        if not self._started:
            self._started = True
            line = line.removeprefix(_BOM)
        if line:
            self._take_field(line)
        else:
            self._dispatch(events)

    def _take_field(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        if field == b"data":
            self._data.append(value.removeprefix(b" "))
        elif field == b"event":
            self._name = value.removeprefix(b" ")
        elif field == b"error":
            self._name = field
            self._data.append(value.removeprefix(b" "))
        elif self._bare or line.startswith((b"{", b"[")):
            self._bare.append(line)

    def _dispatch(self, events: list[Event]) -> None:
        if self._bare:
            events.append(Event(BARE, b"\n".join(self._bare)))
            self._bare = []
        if self._data:
            events.append(Event(self._name, b"\n".join(self._data)))
            self._data = []
        self._name = b""
