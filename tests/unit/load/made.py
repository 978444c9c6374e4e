"""Values of the load room that several tests need: a header, a record, a trailer, an exchange of given reads."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from nilometer.core.environment import Environment
from nilometer.core.record import Call, Frames, Record
from nilometer.core.run import Health, Phases
from nilometer.load.exchange import Exchange
from nilometer.load.journal import Header, Trailer

S = 1_000_000_000
MS = 1_000_000


def header() -> Header:
    return Header(
        run="abcdefghijkl",
        worker=0,
        workers=1,
        spec={"target": "http://127.0.0.1:1"},
        environment=Environment(),
        started_wall_ns=5,
        tool_version="0",
    )


def record(seq: int, frames: int = 3) -> Record:
    stamps = array("q", range(seq * 100 + 10, seq * 100 + 10 + frames)).tobytes()
    return Record(
        id=f"0-{seq}",
        seq=seq,
        phase="measured",
        outcome="ok",
        sent_ns=seq * 100,
        end_ns=seq * 100 + 50,
        text="水" * seq,
        frames=Frames(user=stamps),
    )


def trailer() -> Trailer:
    phases = Phases(started_wall_ns=5, start_ns=0, measured_ns=0, stop_ns=9, end_ns=9)
    return Trailer(phases=phases, health=Health(at=array("q", [1]).tobytes()))


def timespec(wall_ns: int) -> bytes:
    """A kernel stamp as the socket gives it."""
    return array("q", divmod(wall_ns, S)).tobytes()


def exchange(
    reads: Sequence[tuple[int, int | None, list[bytes]]],
    ending: str = "whole",
    status: int | None = 200,
    content_type: str = "text/event-stream",
) -> Exchange:
    """A request sent at 1 s; `reads` are (user ns, kernel wall ns or None, body pieces of this read)."""
    made = Exchange(Call(seq=3, request=b""), None, S)
    made.phase = "measured"
    made.sent_ns, made.sent_end_ns = S, S
    made.status = status
    made.headers = {"content-type": content_type}
    made.ending = ending
    made.ended_ns = S
    for user, wall, pieces in reads:
        stamp = b"\xff" * 16 if wall is None else timespec(wall)
        if made.first_user is None:
            made.first_user, made.first_kernel = user, stamp
        made.end_user, made.end_kernel = user, stamp
        made.ended_ns = user
        for piece in pieces:
            made.pieces.append(piece)
            made.user.append(user)
            made.kernel += stamp
    return made
