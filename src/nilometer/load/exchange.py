"""One request on its way and what came back of it, as it came: the raw material of a Record."""

from __future__ import annotations

from nilometer.core.record import Call, Phase
from nilometer.net.connection import NO_STAMP


class Exchange:
    """One request and what came back, as it came. `user` and `kernel` (16 raw bytes each) run along `pieces`.

    `ending`: "whole", "closed" (by the peer, where only that can tell the end of the body), "cut" (closed or reset
    before the end), "cancelled", "censored", "no_socket", or the error kind that ended it.
    """

    __slots__ = (
        "answer",
        "call",
        "connect_ns",
        "connection",
        "detail",
        "due_ns",
        "end_kernel",
        "end_user",
        "ended_ns",
        "ending",
        "first_kernel",
        "first_user",
        "headers",
        "kernel",
        "late",
        "looked",
        "new_connection",
        "phase",
        "pieces",
        "previous_kernel",
        "previous_user",
        "sent_end_ns",
        "sent_ns",
        "size",
        "started_ns",
        "status",
        "tls_ns",
        "user",
    )

    def __init__(self, call: Call, due_ns: int | None, started_ns: int) -> None:
        self.call = call
        self.due_ns = due_ns
        self.started_ns = started_ns
        self.phase: Phase = "warmup"
        self.pieces: list[bytes] = []
        self.user: list[int] = []
        self.kernel = bytearray()
        self.size = 0
        self.late: set[int] = set()
        self.headers: dict[str, str] = {}
        self.status: int | None = None
        self.sent_ns: int | None = None
        self.sent_end_ns: int | None = None
        self.first_user: int | None = None
        self.first_kernel = NO_STAMP
        self.end_user: int | None = None
        self.end_kernel = NO_STAMP
        self.connect_ns: int | None = None
        self.tls_ns: int | None = None
        self.new_connection = False
        self.connection = 0
        self.previous_user: int | None = None
        self.previous_kernel = NO_STAMP
        self.ending = "cut"
        self.ended_ns: int | None = None
        self.detail: str | None = None
        self.looked = False
        self.answer: str | None = None
        """What was answered, once it was read, where a later turn repeats it."""
