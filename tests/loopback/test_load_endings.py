"""A response cut at every possible byte, in every framing: ok or incomplete by what had come, never a wrong count."""

from __future__ import annotations

import socket
import struct
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.loopback.driving import DONE, calls, drive_here, event, finish, order, usage
from tests.loopback.scripted import Scripted, take_request

from nilometer.core.record import Record

FRAMES = [event("a"), event("b"), finish(), usage(7, 2), DONE]
STREAM = b"".join(FRAMES)
WHOLE = b'{"choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":2}}'  # noqa: E501


class Wire(NamedTuple):
    """A response as it goes over the wire; `body_at[i]`: body bytes among its first i bytes."""

    data: bytes
    head: int
    body_at: list[int]

    @property
    def size(self) -> int:
        return len(self.data)


def wire(kind: str, parts: list[bytes], framing: str) -> Wire:
    body = b"".join(parts)
    length = {"chunked": "Transfer-Encoding: chunked\r\n", "length": f"Content-Length: {len(body)}\r\n", "close": ""}
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{length[framing]}\r\n".encode()
    data, marks = head, [0] * (len(head) + 1)
    for part in parts:
        before = b"%x\r\n" % len(part) if framing == "chunked" else b""
        after = b"\r\n" if framing == "chunked" else b""
        data += before + part + after
        marks += [marks[-1]] * len(before)
        marks += range(marks[-1] + 1, marks[-1] + 1 + len(part))
        marks += [marks[-1]] * len(after)
    if framing == "chunked":
        data += b"0\r\n\r\n"
        marks += [marks[-1]] * 5
    assert len(marks) == len(data) + 1
    return Wire(data, len(head), marks)


def cut_everywhere(folder: Path, response: Wire, hard: bool = False, every: int = 1) -> dict[int, Record]:
    """Size of the cut -> the record of the request it was given to. `hard`: reset instead of closed."""
    sizes = range(0, response.size + 1, every)

    def handle(sock: socket.socket) -> None:
        asked = take_request(sock)
        size = sizes[int(asked.partition(b"X-Seq: ")[2].partition(b"\r")[0])]
        sock.sendall(response.data[:size])
        if hard:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with Scripted(handle) as server:
        outcome = drive_here(order(folder, server.url, lanes=4, requests=len(sizes)), calls(len(sizes)))
    assert len(outcome.records) == len(sizes)
    assert outcome.health.death is None
    return {sizes[record.seq]: record for record in outcome.records}


def frames_in(size: int) -> int:
    """Whole frames among the first bytes of the stream."""
    whole, at = 0, 0
    for frame in FRAMES:
        at += len(frame)
        whole += at <= size
    return whole


def check_stream(response: Wire, size: int, record: Record, lost: bool = False) -> None:
    """What must be so after `size` bytes; `lost`: fewer of them may have been read."""
    came = frames_in(response.body_at[size])
    if lost:
        assert len(record.frames) <= min(came, 2)
        came = min(came, len(record.frames)) if len(record.frames) < 2 else came
        if record.outcome == "incomplete":
            return
    assert record.error is None
    assert record.outcome == ("ok" if came >= 3 else "incomplete")
    assert record.status == (200 if size >= response.head else None)
    assert len(record.frames) == min(came, 2)
    assert record.finish_reason == ("stop" if came >= 3 else None)
    counted = ("usage", 2) if came >= 4 else ("estimated", 2) if came == 3 else ("none", None)
    assert (record.token_source, record.output_tokens) == counted
    assert record.prompt_tokens == (7 if came >= 4 else None)
    check_times(size, record)


def check_times(size: int, record: Record) -> None:
    moments = [
        record.sent_ns,
        *([record.first_byte_ns] if size else []),
        *([record.first_token_ns, record.last_token_ns] if len(record.frames) else []),
        record.end_ns,
    ]
    known = [moment for moment in moments if moment is not None]
    assert len(known) == len(moments)
    assert known == sorted(known)
    assert (record.first_token_ns is None) == (len(record.frames) == 0)


@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
def test_a_stream_closed_at_every_byte(framing: str, tmp_path: Path) -> None:
    response = wire("text/event-stream", FRAMES, framing)
    records = cut_everywhere(tmp_path, response)
    assert set(records) == set(range(response.size + 1))
    for size, record in records.items():
        check_stream(response, size, record)


@pytest.mark.parametrize("framing", ["chunked", "close"])
def test_a_stream_reset_at_many_bytes(framing: str, tmp_path: Path) -> None:
    """A reset may overtake what was sent before it: then less has come, and what is told is true of that."""
    response = wire("text/event-stream", FRAMES, framing)
    for size, record in cut_everywhere(tmp_path, response, hard=True, every=7).items():
        assert record.outcome in ("ok", "incomplete")
        check_stream(response, size, record, lost=True)


@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
def test_a_whole_answer_closed_at_every_byte(framing: str, tmp_path: Path) -> None:
    """Without streaming only the whole body is an answer; of a body without a length nobody said that it was whole."""
    response = wire("application/json", [WHOLE[:50], WHOLE[50:]], framing)
    for size, record in cut_everywhere(tmp_path, response).items():
        whole = response.body_at[size] == len(WHOLE)
        assert (record.outcome, record.error) == ("ok" if whole else "incomplete", None), size
        assert (record.output_tokens, record.token_source) == ((2, "usage") if whole else (None, "none"))
        assert (record.first_token_ns, len(record.frames)) == (None, 0)
        check_times(size, record)


def test_the_wire_forms_of_this_test_are_right() -> None:
    for framing in ("chunked", "length", "close"):
        response = wire("text/event-stream", FRAMES, framing)
        assert response.body_at[response.head] == 0
        assert response.body_at[-1] == len(STREAM)
    assert [frames_in(size) for size in (0, len(FRAMES[0]) - 1, len(FRAMES[0]), len(STREAM))] == [0, 0, 1, 5]


def test_a_cut_request_frees_its_slot_for_the_next(tmp_path: Path) -> None:
    response = wire("text/event-stream", FRAMES, "chunked")

    def handle(sock: socket.socket) -> None:
        while asked := take_request(sock):
            odd = int(asked.partition(b"X-Seq: ")[2].partition(b"\r")[0]) % 2
            sock.sendall(response.data[:-20] if odd else response.data)
            if odd:
                return

    with Scripted(handle) as server:
        outcome = drive_here(order(tmp_path, server.url, lanes=2, requests=20), calls(50))
        accepted = server.accepted
    assert [record.outcome for record in sorted(outcome.records, key=lambda record: record.seq)] == [
        "ok", "ok" if frames_in(response.body_at[-21]) >= 3 else "incomplete",
    ] * 10  # fmt: skip
    assert accepted == outcome.health.connections_opened
    assert 10 <= accepted <= 12
