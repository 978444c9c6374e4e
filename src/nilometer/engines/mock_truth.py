"""The truth log of the mock server: what really happened, in ns of CLOCK_MONOTONIC.

Kept in memory and handed out on request or at the end: a server that writes its log inside its loop delays its own
reads. Must not decide anything.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator

import msgspec

from nilometer.core.record import ErrorKind, Outcome


class TruthLine(msgspec.Struct, frozen=True, kw_only=True):
    """One request as the server served it: one JSON object a line. Absent stamps are null.

    `read_ns` the request was fully read; `start_ns` it left the queue; `head_ns` response headers handed to the kernel;
    `writes` (ns just before the frame was handed to the kernel, its tokens) of each frame with generated matter;
    `end_ns` the last byte was handed over; `left_ns` the client closed before that. `meant` is "ok" or the fault's
    name; `outcome` and `error` are what a client that judges well reports, null where its own limits decide;
    `blocked` counts writes the kernel did not take at once.

    Where the machine of an engine paces the answers: `due_ns` is when each of the `writes` was due, and `replica`,
    `cached_tokens`, `preemptions` say what became of the request in it; `start_ns` is when it got its slot.
    """

    n: int
    id: str
    client_id: str | None = None
    connection: int
    path: str
    status: int | None = None
    read_ns: int
    start_ns: int | None = None
    head_ns: int | None = None
    writes: list[tuple[int, int]] = []
    end_ns: int | None = None
    left_ns: int | None = None
    meant: str = "ok"
    outcome: Outcome | None = "ok"
    error: ErrorKind | None = None
    prompt_tokens: int | None = None
    output_tokens: int = 0
    reasoning_tokens: int = 0
    blocked: int = 0
    due_ns: list[int] = []
    replica: int | None = None
    cached_tokens: int | None = None
    preemptions: int | None = None


class Entry:
    """A request while it is being served; cheap to write to."""

    __slots__ = (
        "blocked",
        "cached_tokens",
        "client_id",
        "connection",
        "due_ns",
        "end_ns",
        "error",
        "head_ns",
        "id",
        "left_ns",
        "meant",
        "n",
        "outcome",
        "path",
        "preemptions",
        "prompt_tokens",
        "read_ns",
        "reasoning_tokens",
        "replica",
        "start_ns",
        "status",
        "write_ns",
        "write_tokens",
    )

    def __init__(self, n: int, connection: int, path: str, read_ns: int, client_id: str | None) -> None:
        self.n = n
        self.id = f"mock-{n}"
        self.client_id = client_id
        self.connection = connection
        self.path = path
        self.read_ns = read_ns
        self.status: int | None = None
        self.start_ns: int | None = None
        self.head_ns: int | None = None
        self.end_ns: int | None = None
        self.left_ns: int | None = None
        self.meant = "ok"
        self.outcome: Outcome | None = "ok"
        self.error: ErrorKind | None = None
        self.prompt_tokens: int | None = None
        self.reasoning_tokens = 0
        self.blocked = 0
        self.write_ns = array("q")
        self.write_tokens = array("i")
        self.due_ns = array("q")
        self.replica: int | None = None
        self.cached_tokens: int | None = None
        self.preemptions: int | None = None

    @property
    def ended(self) -> bool:
        """Whether nothing more will be written for it."""
        return self.end_ns is not None or self.left_ns is not None

    def line(self) -> TruthLine:
        """The same as a value."""
        return TruthLine(
            n=self.n,
            id=self.id,
            client_id=self.client_id,
            connection=self.connection,
            path=self.path,
            status=self.status,
            read_ns=self.read_ns,
            start_ns=self.start_ns,
            head_ns=self.head_ns,
            writes=list(zip(self.write_ns, self.write_tokens, strict=True)),
            end_ns=self.end_ns,
            left_ns=self.left_ns,
            meant=self.meant,
            outcome=self.outcome,
            error=self.error,
            prompt_tokens=self.prompt_tokens,
            output_tokens=sum(self.write_tokens),
            reasoning_tokens=self.reasoning_tokens,
            blocked=self.blocked,
            due_ns=list(self.due_ns),
            replica=self.replica,
            cached_tokens=self.cached_tokens,
            preemptions=self.preemptions,
        )


class TruthLog:
    """All entries since the start or the last `clear`, in the order the requests were read."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []

    def add(self, entry: Entry) -> None:
        """Keep one more."""
        self._entries.append(entry)

    def clear(self) -> None:
        """Forget those that have ended."""
        self._entries = [entry for entry in self._entries if not entry.ended]

    def lines(self, unfinished: bool) -> Iterator[bytes]:
        """One JSON object a line, newline included; with `unfinished` also those still being served."""
        for entry in self._entries:
            if unfinished or entry.ended:
                yield msgspec.json.encode(entry.line()) + b"\n"


def read_truth(text: bytes) -> list[TruthLine]:
    """The lines of a truth log; raises msgspec.DecodeError where it is none."""
    return [msgspec.json.decode(line, type=TruthLine) for line in text.splitlines() if line]
