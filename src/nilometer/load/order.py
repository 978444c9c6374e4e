"""What a worker is told before the load: a value that crosses the seam to it, whole, once."""

from __future__ import annotations

import socket
import struct
from typing import Any, Literal

import msgspec

from nilometer.core.record import Call

StopReason = Literal["interrupted", "budget", "target_lost", "oversaturated"]

_LENGTH = struct.Struct("<I")


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Timeouts in ns; None = none."""

    connect_ns: int | None = None
    first_ns: int | None = None
    idle_ns: int | None = None
    total_ns: int | None = None

    @property
    def asked_ns(self) -> list[int]:
        """Those that are limits."""
        return [ns for ns in (self.connect_ns, self.first_ns, self.idle_ns, self.total_ns) if ns is not None]


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """One worker's share of a load test. `lanes` is its part of the concurrency, None in an open loop."""

    target: str
    dialect: str
    protocol: dict[str, Any] = {}
    journal: str
    counters: str
    worker: int = 0
    lanes: int | None = None
    ramp_ns: int = 0
    warmup_ns: int = 0
    duration_ns: int | None = None
    requests: int | None = None
    drain_ns: int = 0
    limits: Limits = Limits()
    insecure: bool = False
    proxy: str | None = None
    keep_alive: bool = True
    """Whether a connection serves more than one request."""
    keep_text: bool = False
    secrets: tuple[str, ...] = ()
    """What must not be kept of an answer: the target was sent it and may send it back."""

    @property
    def as_long_as_calls(self) -> bool:
        """Whether only the end of its calls ends it: an open loop without a duration or a count of this worker's."""
        return self.lanes is None and self.duration_ns is None and self.requests is None


class Go(msgspec.Struct, frozen=True, tag=True):
    """Start at this monotonic moment; the wall clock names it."""

    start_ns: int
    started_wall_ns: int


class Drain(msgspec.Struct, frozen=True, tag=True):
    """Start nothing more; end what is in flight up to the drain limit."""

    why: StopReason


class Cancel(msgspec.Struct, frozen=True, tag=True):
    """End everything now."""


Control = Go | Drain | Cancel

_encoder = msgspec.msgpack.Encoder()
_calls = msgspec.msgpack.Decoder(list[Call])
_control = msgspec.msgpack.Decoder(Control)
_order = msgspec.msgpack.Decoder(Order)


def pack(value: Order | Control | list[Call]) -> bytes:
    """Length-prefixed msgpack: the one framing of both pipes."""
    body = _encoder.encode(value)
    return _LENGTH.pack(len(body)) + body


def received(pipe: socket.socket, most: int) -> bytes | None:
    """What a non-blocking pipe has now, at most so much; b"" where it has ended or broken, None where nothing came."""
    try:
        return pipe.recv(most)
    except BlockingIOError:
        return None
    except OSError:
        return b""


class Unpacker:
    """Cuts a byte stream into the bodies that `pack` made."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        self._data += data
        bodies = []
        while len(self._data) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._data)
            end = _LENGTH.size + length
            if len(self._data) < end:
                break
            bodies.append(bytes(self._data[_LENGTH.size : end]))
            del self._data[:end]
        return bodies


def as_order(body: bytes) -> Order:
    return _order.decode(body)


def as_control(body: bytes) -> Control:
    return _control.decode(body)


def as_calls(body: bytes) -> list[Call]:
    return _calls.decode(body)
