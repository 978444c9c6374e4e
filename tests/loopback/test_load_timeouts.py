"""Each limit on a request, where it starts, what it leaves of the request, and what is no breach of it."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.loopback.driving import (
    DONE,
    MS,
    SHORT,
    Outcome,
    S,
    calls,
    drive_here,
    event,
    finish,
    left,
    order,
    usage,
    wait_until,
)
from tests.loopback.replay import Replay, Reply
from tests.loopback.scripted import Scripted, take_request

from nilometer.load.counters import State
from nilometer.load.crew import Crew
from nilometer.load.order import Limits

LIMIT_MS = 250
SLACK_MS = 400
"""Limits are looked at every 100 ms, and the machine may be busy."""
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def limited(tmp_path: Path, url: str, n: int = 1, **limits_ms: int) -> Outcome:
    """`n` requests on one slot under these limits."""
    limits = Limits(**{f"{name}_ns": ms * MS for name, ms in limits_ms.items()})
    return drive_here(order(tmp_path, url, requests=n, limits=limits), calls(10))


@contextmanager
def deaf() -> Iterator[str]:
    """A port whose backlog is full: a connection to it is neither accepted nor refused."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        held = []
        for _ in range(3):
            sock = socket.socket()
            sock.setblocking(False)
            sock.connect_ex(listener.getsockname())
            held.append(sock)
        time.sleep(0.02)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            for sock in held:
                sock.close()


def test_connecting(tmp_path: Path) -> None:
    with deaf() as url:
        outcome = limited(tmp_path, url, connect=LIMIT_MS)
    record = outcome.one()
    assert (record.outcome, record.error, record.status) == ("error", "timeout_connect", None)
    assert (record.sent_ns, record.first_byte_ns, record.connect_ns) == (None, None, None)
    assert record.end_ns is not None


def test_a_connection_opened_ahead_has_the_limit_too(tmp_path: Path) -> None:
    """Else the worker would not get ready for as long as the system tries to connect: two minutes."""
    with deaf() as url:
        told = order(tmp_path, url, lanes=3, requests=3, limits=Limits(connect_ns=LIMIT_MS * MS))
        with Crew([told], calls(5)) as crew:
            wait_until(lambda: crew.states() == [State.READY], 10)
            crew.go()
            wait_until(lambda: not crew.running)
    assert left(told.journal).kinds() == {("error", "timeout_connect"): 3}


@pytest.mark.parametrize("api", ["http", "https"])
def test_the_total_counts_while_connecting_where_connecting_has_no_limit(api: str, tmp_path: Path) -> None:
    with deaf() as url:
        outcome = limited(tmp_path, url.replace("http", api), total=LIMIT_MS)
    assert outcome.kinds() == {("error", "timeout_total"): 1}


def test_the_first_token_when_nothing_comes_at_all(tmp_path: Path) -> None:
    with Replay(Reply(SHORT, schedule=((60_000, len(SHORT)),))) as replay:
        record = limited(tmp_path, replay.url, first=LIMIT_MS).one()
    assert (record.outcome, record.error, record.status) == ("error", "timeout_first_token", None)
    assert record.sent_ns is not None
    assert record.end_ns is not None
    assert LIMIT_MS <= (record.end_ns - record.sent_ns) / MS < LIMIT_MS + SLACK_MS


@pytest.mark.parametrize("body", [b"", b": keep-alive\n\n", event(""), event("a")[:-1], b"x" * 500])
def test_the_first_token_when_something_comes_that_is_none(body: bytes, tmp_path: Path) -> None:
    """Headers, a comment, an empty role frame, a frame without its blank line, endless junk in the first frame."""

    def handle(sock: socket.socket) -> None:
        take_request(sock)
        sock.sendall(HEAD + (chunk(body) if body else b""))
        server.over.wait(10)

    with Scripted(handle) as server:
        record = limited(tmp_path, server.url, first=LIMIT_MS).one()
    assert (record.error, record.status, record.first_token_ns) == ("timeout_first_token", 200, None)
    assert record.first_byte_ns is not None


def test_the_first_token_in_time_is_no_breach_however_long_the_rest_takes(tmp_path: Path) -> None:
    first = len(event("a"))
    reply = Reply(SHORT, schedule=((20, first), (LIMIT_MS + 350, len(SHORT) - first)))
    with Replay(reply) as replay:
        record = limited(tmp_path, replay.url, first=LIMIT_MS).one()
    assert (record.outcome, record.output_tokens, len(record.frames)) == ("ok", 3, 3)
    assert record.first_token_ns is not None
    assert record.last_token_ns is not None
    assert record.last_token_ns - record.first_token_ns > 300 * MS  # looked at once in between, counted right


def test_reasoning_is_a_first_token(tmp_path: Path) -> None:
    thought = b'data: {"choices":[{"index":0,"delta":{"reasoning_content":"hm"}}]}\n\n'
    body = thought + SHORT
    reply = Reply(body, schedule=((20, len(thought)), (LIMIT_MS + 300, len(SHORT))))
    with Replay(reply) as replay:
        record = limited(tmp_path, replay.url, first=LIMIT_MS).one()
    assert (record.outcome, len(record.frames)) == ("ok", 4)


@pytest.mark.parametrize("pieces", [1, 40])
def test_an_answer_that_does_not_stream_has_no_first_token_to_wait_for(pieces: int, tmp_path: Path) -> None:
    """Headers at once, the JSON long after the limit, be it in one piece or in many: ok, and no TTFT."""
    body = b'{"choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}'  # noqa: E501
    size = -(-len(body) // pieces)
    schedule = tuple((LIMIT_MS + 300.0 + i, size) for i in range(pieces))
    reply = Reply(body, content_type="application/json", framing="length", head_ms=10, schedule=schedule)
    with Replay(reply) as replay:
        record = limited(tmp_path, replay.url, first=LIMIT_MS).one()
    assert (record.outcome, record.error, record.output_tokens) == ("ok", None, 2)
    assert (record.first_token_ns, len(record.frames)) == (None, 0)


def test_idle_in_the_middle_of_a_stream(tmp_path: Path) -> None:
    size = len(event("a") + event("b"))
    with Replay(Reply(SHORT[:size], ending="hang")) as replay:
        record = limited(tmp_path, replay.url, idle=LIMIT_MS).one()
    assert (record.outcome, record.error, record.status) == ("error", "timeout_idle", 200)
    assert len(record.frames) == 2
    assert record.last_token_ns is not None
    assert record.end_ns is not None
    assert LIMIT_MS <= (record.end_ns - record.last_token_ns) / MS < LIMIT_MS + SLACK_MS
    assert record.output_tokens is None


def test_idle_runs_from_the_first_byte_on(tmp_path: Path) -> None:
    """A long wait for the first byte is no idling, and gaps below the limit add up to none."""
    size = len(event("a"))
    steps = [LIMIT_MS + 350.0 + i * 100 for i in range(6)]
    reply = Reply(SHORT, schedule=tuple((at, size) for at in steps))
    with Replay(reply) as replay:
        record = limited(tmp_path, replay.url, idle=LIMIT_MS).one()
    assert (record.outcome, record.output_tokens) == ("ok", 3)


@pytest.mark.parametrize("end", [finish() + usage(7, 3) + DONE, finish() + usage(7, 3), finish("length"), DONE])
def test_a_stream_that_said_it_is_over_but_never_closes_is_ok(end: bytes, tmp_path: Path) -> None:
    body = event("a") + event("b") + event("c") + end
    with Replay(Reply(body, ending="hang")) as replay:
        record = limited(tmp_path, replay.url, idle=LIMIT_MS).one()
        sent_last = replay.exchanges[0].end_ns
    assert (record.outcome, record.error) == ("ok", None)
    assert record.token_source == ("usage" if b"usage" in end else "estimated")
    assert record.end_ns is not None
    assert sent_last is not None
    assert (record.end_ns - sent_last) / MS < 50  # its end is its last byte, not the moment it was given up


def test_the_slot_goes_on_after_a_breach_on_a_new_connection(tmp_path: Path) -> None:
    with Replay(Reply(event("a"), ending="hang")) as replay:
        outcome = limited(tmp_path, replay.url, n=3, idle=100)
        assert len({exchange.connection for exchange in replay.exchanges}) == 3
    assert outcome.kinds() == {("error", "timeout_idle"): 3}
    assert all(record.new_connection for record in outcome.records)


def test_the_total_ends_a_stream_that_goes_on_and_on(tmp_path: Path) -> None:
    body = event("a") * 200
    reply = Reply(body, schedule=tuple((i * 20.0, len(event("a"))) for i in range(200)))
    with Replay(reply) as replay:
        record = limited(tmp_path, replay.url, total=LIMIT_MS, idle=LIMIT_MS, first=LIMIT_MS).one()
    assert (record.outcome, record.error) == ("error", "timeout_total")
    assert LIMIT_MS / 20 - 3 <= len(record.frames) <= (LIMIT_MS + SLACK_MS) / 20
    assert record.sent_ns is not None
    assert record.end_ns is not None
    assert LIMIT_MS <= (record.end_ns - record.sent_ns) / MS < LIMIT_MS + SLACK_MS


def test_a_byte_now_and_then_is_held_to_the_first_token_and_the_total(tmp_path: Path) -> None:
    """A byte a minute, in short: never idle for long, and never anything that counts."""

    def handle(sock: socket.socket) -> None:
        take_request(sock)
        for byte in HEAD + chunk(event("a")):
            sock.sendall(bytes([byte]))
            if server.over.wait(0.03):
                return

    with Scripted(handle) as server:
        outcome = limited(tmp_path, server.url, first=LIMIT_MS, idle=LIMIT_MS)
        assert outcome.kinds() == {("error", "timeout_first_token"): 1}
        second = tmp_path / "second"
        second.mkdir()
        outcome = limited(second, server.url, total=2 * LIMIT_MS, idle=LIMIT_MS)
        assert outcome.kinds() == {("error", "timeout_total"): 1}


def test_without_limits_nothing_ends_a_silent_request_but_the_drain(tmp_path: Path) -> None:
    with Replay(Reply(b"", ending="hang", head_ms=60_000)) as replay:
        outcome = drive_here(order(tmp_path, replay.url, duration_ns=300 * MS, drain_ns=100 * MS), calls(5))
    assert outcome.kinds() == {("cancelled", None): 1}
    assert outcome.phases.cut_at_drain_limit


def test_limits_of_one_slot_do_not_touch_another(tmp_path: Path) -> None:
    """One of three requests hangs; the others go on and are ok."""

    def handle(sock: socket.socket) -> None:
        while asked := take_request(sock):
            if b"X-Seq: 1\r" in asked:
                server.over.wait(10)
                return
            sock.sendall(HEAD + chunk(SHORT) + b"0\r\n\r\n")

    with Scripted(handle) as server:
        told = order(tmp_path, server.url, lanes=3, duration_ns=S // 2, limits=Limits(first_ns=LIMIT_MS * MS))
        outcome = drive_here(told, calls(100_000))
    kinds = outcome.kinds()
    late = [record.seq for record in outcome.records if record.error == "timeout_first_token"]
    assert 1 in late
    assert len(late) <= 3, "a machine that stands still for a while may make one or two more"
    assert kinds["ok", None] > 10
    assert set(kinds) <= {("ok", None), ("error", "timeout_first_token"), ("cancelled", None)}
