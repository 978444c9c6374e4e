"""Kept connections: used again, given up by the server in each way it may, and never the cause of a failed request."""

from __future__ import annotations

import socket
import struct
import time
from collections import Counter
from pathlib import Path

import pytest
from tests.loopback.driving import MS, SHORT, S, calls, drive_here, due_calls, order, request
from tests.loopback.scripted import Certificate, Handler, Scripted, certificate, ok, take_request

from nilometer.core.record import Call

ANSWER = ok(SHORT, "Content-Type: text/event-stream")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return certificate(tmp_path_factory.mktemp("tls"))


def seq_of(asked: bytes) -> int:
    return int(asked.partition(b"X-Seq: ")[2].partition(b"\r")[0])


def serving(per_connection: int, answer: bytes = ANSWER, wait_s: float = 0.0) -> tuple[Handler, Counter[int]]:
    """Answers so many requests of a connection, then closes it (after a while); counts what it was asked."""
    asked: Counter[int] = Counter()

    def handle(sock: socket.socket) -> None:
        for _ in range(per_connection):
            data = take_request(sock)
            if not data:
                return
            asked[seq_of(data)] += 1
            sock.sendall(answer)
        time.sleep(wait_s)

    return handle, asked


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("wait_s", [0.0, 0.002])
@pytest.mark.parametrize("per_connection", [1, 3])
def test_a_server_that_closes_without_a_word_costs_no_request(
    per_connection: int, wait_s: float, tls: bool, made: Certificate, tmp_path: Path
) -> None:
    """What met the closed connection goes out on a new one, is counted, and reaches the server once."""
    handle, asked = serving(per_connection, wait_s=wait_s)
    with Scripted(handle, made.server() if tls else None) as server:
        told = order(tmp_path, server.url, lanes=2, requests=24, insecure=tls)
        outcome = drive_here(told, calls(50))
        accepted = server.accepted
    assert outcome.kinds() == {("ok", None): 24}
    assert asked == Counter(range(24))
    assert outcome.health.connections_opened == accepted
    assert sum(record.new_connection for record in outcome.records) >= 24 // per_connection - 2
    assert 0 <= outcome.health.resent <= 24
    if per_connection == 1 and wait_s:
        assert outcome.health.resent >= 2  # each slot met it twice, then closed its connections itself
        assert all(record.output_tokens == 3 and record.sent_ns is not None for record in outcome.records)


@pytest.mark.parametrize("head", ["Connection: close", "connection: Close"])
def test_a_server_that_says_it_closes_is_taken_at_its_word(head: str, tmp_path: Path) -> None:
    handle, asked = serving(1, ok(SHORT, "Content-Type: text/event-stream", head))
    with Scripted(handle) as server:
        outcome = drive_here(order(tmp_path, server.url, lanes=3, requests=12), calls(50))
    assert outcome.kinds() == {("ok", None): 12}
    assert asked == Counter(range(12))
    assert outcome.health.resent == 0
    assert all(record.new_connection for record in outcome.records)
    refills = [record.refill_ns for record in outcome.records if record.refill_ns is not None]
    assert len(refills) == 9
    assert all(
        (record.refill_ns or 0) >= (record.connect_ns or 0)
        for record in outcome.records
        if record.refill_ns is not None
    )  # connecting is part of a refill, and of no latency


def test_a_server_that_dies_on_a_request_does_not_get_it_forever(tmp_path: Path) -> None:
    """On a kept connection it might have been closed before; on a new one it was the request."""

    def handle(sock: socket.socket) -> None:
        first = True
        while data := take_request(sock):
            if not first or seq_of(data) % 2:
                return
            first = False
            sock.sendall(ANSWER)

    with Scripted(handle) as server:
        outcome = drive_here(order(tmp_path, server.url, requests=10), calls(50))
    results = {record.seq: record.outcome for record in outcome.records}
    assert results == {seq: "incomplete" if seq % 2 else "ok" for seq in range(10)}
    assert all(record.sent_ns and record.end_ns for record in outcome.records)


def test_an_idle_connection_that_was_closed_is_not_used_in_the_open_loop(tmp_path: Path) -> None:
    handle, asked = serving(1)
    with Scripted(handle) as server:
        told = order(tmp_path, server.url, lanes=None, duration_ns=5 * S)
        outcome = drive_here(told, due_calls([20, 70, 120, 170]))
    assert outcome.kinds() == {("ok", None): 4}
    assert asked == Counter(range(4))
    assert (outcome.health.resent, outcome.health.connections_opened) == (0, 4)


def test_an_idle_connection_that_is_kept_is_used_in_the_open_loop(tmp_path: Path) -> None:
    handle, _ = serving(100)
    with Scripted(handle) as server:
        told = order(tmp_path, server.url, lanes=None, duration_ns=5 * S)
        outcome = drive_here(told, due_calls([20, 70, 120, 170]))
    assert outcome.kinds() == {("ok", None): 4}
    assert outcome.health.connections_opened == 1
    assert [record.new_connection for record in outcome.records] == [True, False, False, False]


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("more", [b"garbage", ANSWER])
def test_bytes_nobody_asked_for_spoil_the_connection_and_no_request(more: bytes, late: bool, tmp_path: Path) -> None:
    """Behind the answer in the same read, or a moment later: the answer stands, the next goes elsewhere."""

    def handle(sock: socket.socket) -> None:
        data = take_request(sock)
        while data:
            if late:
                sock.sendall(ANSWER)
                time.sleep(0.01)
                sock.sendall(more)
            else:
                sock.sendall(ANSWER + more)
            data = take_request(sock)

    with Scripted(handle) as server:
        told = order(tmp_path, server.url, lanes=None, duration_ns=5 * S)
        outcome = drive_here(told, due_calls([20, 270, 520] if late else [20, 70, 120]))
    assert outcome.kinds() == {("ok", None): 3}
    assert [record.output_tokens for record in outcome.records] == [3, 3, 3]
    assert outcome.health.connections_opened == 3


def test_http_1_0_closes_after_each(tmp_path: Path) -> None:
    handle, asked = serving(1, b"HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + SHORT)
    with Scripted(handle) as server:
        outcome = drive_here(order(tmp_path, server.url, lanes=2, requests=6), calls(10))
    assert outcome.kinds() == {("ok", None): 6}
    assert asked == Counter(range(6))


def test_an_answer_before_the_request_was_out_leaves_nothing_in_the_next_ones_way(tmp_path: Path) -> None:
    """A server that refuses a large body by its header alone, reads it all the same, and keeps the connection."""
    refusal = b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n"
    size = 8 << 20
    asked: list[tuple[int, bytes]] = []

    def handle(sock: socket.socket) -> None:
        number = server.accepted
        head = sock.recv(65536)
        if b"X-Large" in head:
            sock.sendall(refusal)
            time.sleep(0.1)  # the client has long gone on by the time the rest is read
            came = len(head.partition(b"\r\n\r\n")[2])
            while came < size:
                more = sock.recv(1 << 20)
                if not more:
                    return
                came += len(more)
        else:
            asked.append((number, head))
            sock.sendall(ANSWER)
        while data := take_request(sock):
            asked.append((number, data))
            sock.sendall(ANSWER)

    supply = [
        Call(0, request("h", body=bytes(size), head="X-Large: 1\r\n")),
        *(Call(seq, request("h", head=f"X-Seq: {seq}\r\n")) for seq in range(1, 4)),
    ]
    with Scripted(handle) as server:
        outcome = drive_here(order(tmp_path, server.url, requests=4), supply)
    assert outcome.kinds() == {("error", "http_4xx"): 1, ("ok", None): 3}
    assert [(number, seq_of(data)) for number, data in asked] == [(2, 1), (2, 2), (2, 3)]
    assert (outcome.health.connections_opened, outcome.health.resent) == (2, 0)
    refused = next(record for record in outcome.records if record.status == 413)
    assert refused.sent_ns is not None
    assert refused.sent_end_ns is None


def test_tls_is_shown_apart_and_stays_out_of_the_latency(made: Certificate, tmp_path: Path) -> None:
    def slow_to_greet(sock: socket.socket) -> None:
        while take_request(sock):
            sock.sendall(ANSWER)

    with Scripted(slow_to_greet, made.server()) as server:
        outcome = drive_here(order(tmp_path, server.url, lanes=2, requests=6, insecure=True), calls(10))
    assert outcome.kinds() == {("ok", None): 6}
    first = [record for record in outcome.records if record.new_connection]
    assert len(first) == 2
    assert all((record.connect_ns or 0) > 0 and (record.tls_ns or 0) > 0 for record in first)
    assert all(record.tls_ns is None for record in outcome.records if not record.new_connection)
    assert {record.stamp_source for record in outcome.records} <= {"kernel", "user"}
    for record in outcome.records:
        assert record.sent_ns is not None
        assert record.first_token_ns is not None
        assert 0 < record.first_token_ns - record.sent_ns < 500 * MS


@pytest.mark.parametrize("reset", [False, True])
def test_a_request_that_was_held_and_then_dropped_has_failed(reset: bool, tmp_path: Path) -> None:
    """Every second request of a connection is taken whole, held, and never answered: it must not go out again."""
    asked: Counter[int] = Counter()

    def handle(sock: socket.socket) -> None:
        for answered in (True, False):
            data = take_request(sock)
            if not data:
                return
            asked[seq_of(data)] += 1
            if answered:
                sock.sendall(ANSWER)
        time.sleep(0.1)
        if reset:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.close()

    with Scripted(handle) as server:
        outcome = drive_here(order(tmp_path, server.url, lanes=1, requests=6), calls(50))
    assert outcome.kinds() == {("ok", None): 3, ("incomplete", None): 3}
    assert asked == Counter(range(6))
    assert outcome.health.resent == 0
