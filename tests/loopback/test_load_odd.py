"""Answers that are none, or strange ones: the outcome and kind of the contract for each, and the load goes on."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
from tests.loopback.driving import (
    DONE,
    SHORT,
    Outcome,
    S,
    calls,
    drive_here,
    due_calls,
    event,
    finish,
    frame,
    free_port,
    order,
    usage,
)
from tests.loopback.replay import Replay, Reply
from tests.loopback.scripted import Certificate, Scripted, answering, certificate, ok, take_request

from nilometer.core.record import Record
from nilometer.load.order import Limits
from nilometer.net.endpoint import parse
from nilometer.net.route import resolve

GOOD = Reply(SHORT, framing="length", ending="keep")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return certificate(tmp_path_factory.mktemp("tls"))


def first_of_two(tmp_path: Path, reply: Reply, **fields: Any) -> Record:
    """The record of a request answered so; the one after it is answered well, and must be ok."""
    with Replay(lambda exchange: GOOD if exchange.headers["x-seq"] == "1" else reply) as replay:
        outcome = drive_here(order(tmp_path, replay.url, requests=2, **fields), calls(5))
    first, second = sorted(outcome.records, key=lambda record: record.seq)
    assert (second.outcome, second.output_tokens) == ("ok", 3)
    assert outcome.health.death is None
    return first


def whole(body: bytes, status: int = 200, kind: str = "application/json", *headers: tuple[str, str]) -> Reply:
    return Reply(body, status=status, content_type=kind, framing="length", ending="keep", headers=headers)


# -- statuses ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "http_4xx"),
        (401, "http_4xx"),
        (404, "http_4xx"),
        (422, "http_4xx"),
        (429, "http_429"),
        (500, "http_5xx"),
        (503, "http_5xx"),
        (302, "not_a_model_answer"),
        (304, "not_a_model_answer"),
        (204, "not_a_model_answer"),
    ],
)
def test_a_status_is_a_kind(status: int, kind: str, tmp_path: Path) -> None:
    body = b"" if status in (204, 304) else b'{"error":{"message":"no, because","type":"x","code":1}}'
    record = first_of_two(tmp_path, whole(body, status))
    assert (record.outcome, record.error, record.status) == ("error", kind, status)
    if body and status >= 400:
        assert "no, because" in (record.error_detail or "")
    assert (record.first_token_ns, record.output_tokens, record.token_source) == (None, None, "none")
    assert record.sent_ns is not None
    assert record.first_byte_ns is not None
    assert record.end_ns is not None


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("7", 7.0), ("0", 0.0), ("1.5", 1.5), ("Wed, 21 Oct 2026 07:28:00 GMT", None), ("-3", None), ("nan", None),
     ("inf", None), ("1e999", None), ("", None)],
)  # fmt: skip
def test_retry_after_is_kept_as_a_span(value: str, seconds: float | None, tmp_path: Path) -> None:
    record = first_of_two(tmp_path, whole(b"{}", 429, "application/json", ("Retry-After", value)))
    assert (record.error, record.retry_after_s) == ("http_429", seconds)


def test_the_detail_of_an_error_is_short_however_long_the_body(tmp_path: Path) -> None:
    body = b'{"error":{"message":"' + "错".encode() * 100_000 + b'"}}'
    record = first_of_two(tmp_path, whole(body, 500))
    assert record.error == "http_5xx"
    assert len((record.error_detail or "").encode()) <= 200


def test_the_detail_is_found_however_small_the_pieces(tmp_path: Path) -> None:
    body = b'{"error":{"message":"no slot is free","code":503}}'
    reply = Reply(body, status=503, content_type="application/json", ending="eof",
                  schedule=tuple((i * 0.2, 2) for i in range(25)))  # fmt: skip
    record = first_of_two(tmp_path, reply)
    assert "no slot is free" in (record.error_detail or "")


def test_a_request_id_is_kept(tmp_path: Path) -> None:
    record = first_of_two(tmp_path, whole(b"{}", 500, "application/json", ("X-Request-Id", "r-17")))
    assert record.server_request_id == "r-17"


# -- bodies -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"<!DOCTYPE html><html><body>Welcome</body></html>", "text/html"),
        (b"<html>gateway</html>", "text/event-stream"),
        (b"<html>gateway</html>", "application/json"),
        (b"hello", "text/plain"),
        (b"", "text/event-stream"),
        (b"", "application/json"),
        (b'{"object":"list","data":[]}', "application/json"),
        (b"\x00\x01\x02" * 1000, "application/octet-stream"),
        (DONE, "text/event-stream"),
    ],
)
def test_200_with_something_that_is_no_answer(body: bytes, kind: str, tmp_path: Path) -> None:
    record = first_of_two(tmp_path, whole(body, 200, kind))
    assert (record.outcome, record.error, record.status) == ("error", "not_a_model_answer", 200)
    assert record.output_tokens is None


@pytest.mark.parametrize("kind", ["text/event-stream", "text/plain", "application/octet-stream", "application/json"])
def test_a_stream_is_read_whatever_it_is_called(kind: str, tmp_path: Path) -> None:
    record = first_of_two(tmp_path, whole(SHORT, 200, kind))
    assert (record.outcome, record.output_tokens, len(record.frames)) == ("ok", 3, 3)


def test_a_stream_that_trickles_is_read_whatever_it_is_called(tmp_path: Path) -> None:
    """A few bytes at a time: what it is can only be told after some of them."""
    reply = Reply(SHORT, content_type="text/plain", ending="eof",
                  schedule=tuple((i * 0.2, 3) for i in range(-(-len(SHORT) // 3))))  # fmt: skip
    record = first_of_two(tmp_path, reply)
    assert (record.outcome, record.output_tokens, len(record.frames)) == ("ok", 3, 3)


def test_a_stream_that_trickles_is_read_though_it_was_looked_at_early(tmp_path: Path) -> None:
    """A first-token limit looks into the response when only two bytes of an unknown kind are there."""
    reply = Reply(SHORT, content_type="", ending="eof", schedule=((10, 2), (150, len(SHORT) - 2)))
    record = first_of_two(tmp_path, reply, limits=Limits(first_ns=1, idle_ns=10 * S))
    assert record.error == "timeout_first_token"
    reply = Reply(SHORT, content_type="text/plain", ending="eof", schedule=((10, 2), (600, len(SHORT) - 2)))
    second = tmp_path / "second"
    second.mkdir()
    record = first_of_two(second, reply, limits=Limits(idle_ns=S))
    assert (record.outcome, len(record.frames)) == ("ok", 3)


@pytest.mark.parametrize(
    "body",
    [
        b'data: {"error":{"message":"engine stopped","code":500}}\n\n' + DONE,
        event("a") + event("b") + b'data: {"error":{"message":"engine stopped"}}\n\n' + DONE,
        event("a") + b'event: error\ndata: {"message":"engine stopped"}\n\n',
        b'{"error":{"message":"engine stopped","type":"x"}}',
    ],
)
def test_an_error_object_inside_a_200_is_an_error(body: bytes, tmp_path: Path) -> None:
    record = first_of_two(tmp_path, whole(body, 200, "text/event-stream"))
    assert (record.outcome, record.error, record.status) == ("error", "stream_error", 200)
    assert "engine stopped" in (record.error_detail or "")
    assert len(record.frames) == body.count(b'"content"')
    assert record.output_tokens is None


@pytest.mark.parametrize(
    "body",
    [
        event("a") + finish() + usage(10**22, 10**22) + DONE,
        frame(choices=[{"index": 0, "delta": {"content": "x"}}], usage={"completion_tokens": 2**40})
        + frame(choices=[{"index": 0, "delta": {"content": "x"}, "finish_reason": "stop"}],
                usage={"completion_tokens": 2**41}) + DONE,
        event("a") + finish() + frame(choices=[], timings={"predicted_n": 10**25}) + DONE,
    ],
)  # fmt: skip
def test_numbers_beyond_what_can_be_kept_spoil_one_request_alone(body: bytes, tmp_path: Path) -> None:
    record = first_of_two(tmp_path, whole(body, 200, "text/event-stream"))
    assert (record.outcome, record.error) == ("error", "malformed")
    assert record.error_detail
    assert record.output_tokens is None
    assert record.end_ns is not None


@pytest.mark.parametrize(
    "body",
    [
        event("a") + finish() + frame(choices=[], usage={"prompt_tokens": -5, "completion_tokens": -1}) + DONE,
        event("a") + frame(choices=[{"index": 10**30, "delta": {"content": "x"}, "finish_reason": "stop"}]) + DONE,
        b'data: {"choices":[{"index":0,"delta":{"content":"\\ud83d"},"finish_reason":"stop"}]}\n\n' + DONE,
        b'data: {"choices":[{"index":0,"delta":{"content":"\xff\xfe"},"finish_reason":"stop"}]}\n\n' + DONE,
        b"\xef\xbb\xbf" + SHORT,
        SHORT.replace(b"\n", b"\r\n"),
        SHORT.replace(b"\n", b"\r"),
        b": hello\n\n" * 500 + SHORT,
    ],
)
def test_harmless_oddities_are_harmless(body: bytes, tmp_path: Path) -> None:
    record = first_of_two(tmp_path, whole(body, 200, "text/event-stream"), keep_text=True)
    assert (record.outcome, record.error) == ("ok", None)
    assert record.output_tokens is not None
    assert record.output_tokens > 0


# -- not HTTP ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "garbage",
    [
        b"garbage\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"\x15\x03\x03\x00\x02\x02\x16",
        b"\x00" * 70_000,
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/9.9 200 OK\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
    ],
)
def test_garbage_instead_of_http(garbage: bytes, tmp_path: Path) -> None:
    with Scripted(answering(garbage)) as server:
        outcome = drive_here(order(tmp_path, server.url, requests=3), calls(5))
    assert outcome.kinds() == {("error", "malformed"): 3}
    for record in outcome.records:
        assert (record.error_detail or "").startswith("not HTTP")
        assert record.sent_ns is not None
        assert record.first_byte_ns is None or record.first_byte_ns >= record.sent_ns
        assert record.end_ns is not None


def test_endless_headers_end(tmp_path: Path) -> None:
    """A header that never ends is no reason to fill the memory: a limit ends it."""

    def handle(sock: socket.socket) -> None:
        take_request(sock)
        sock.sendall(b"HTTP/1.1 200 OK\r\n")
        while not server.over.is_set():
            sock.sendall(b"X-More: " + b"x" * 50_000 + b"\r\n")

    with Scripted(handle) as server:
        told = order(tmp_path, server.url, requests=1, limits=Limits(total_ns=S // 4))
        outcome = drive_here(told, calls(5))
    assert outcome.kinds() in ({("error", "timeout_total"): 1}, {("error", "malformed"): 1})


def test_interim_answers_are_passed_over(tmp_path: Path) -> None:
    answer = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
    with Scripted(answering(answer + ok(SHORT, "Content-Type: text/event-stream"))) as server:
        outcome = drive_here(order(tmp_path, server.url, requests=3), calls(5))
    assert outcome.kinds() == {("ok", None): 3}
    assert [record.status for record in outcome.records] == [200] * 3


# -- connections ------------------------------------------------------------------------------------------------------


def test_nothing_listens(tmp_path: Path) -> None:
    outcome = drive_here(order(tmp_path, f"http://127.0.0.1:{free_port()}", lanes=2, requests=6), calls(10))
    assert outcome.kinds() == {("error", "connect"): 6}
    for record in outcome.records:
        assert (record.sent_ns, record.connect_ns, record.status) == (None, None, None)
        assert record.error_detail == "Connection refused"
        assert record.end_ns is not None
    ends = sorted(record.end_ns or 0 for record in outcome.records)
    assert ends[-1] - ends[0] >= 150_000_000  # a dead server is not stormed: 2 slots, 3 tries each, 0.1 s between


def test_nothing_listens_in_the_open_loop(tmp_path: Path) -> None:
    told = order(tmp_path, f"http://127.0.0.1:{free_port()}", lanes=None, duration_ns=5 * S)
    outcome = drive_here(told, due_calls([10, 20, 30]))
    assert outcome.kinds() == {("error", "connect"): 3}
    assert all(record.due_ns is not None for record in outcome.records)  # they have a start, though never sent


def test_a_thousand_slots_that_fail_at_once_do_not_pile_up(tmp_path: Path) -> None:
    """An address of a family that is not there fails in the call itself, for every slot before the load begins."""
    route = resolve(parse("http://127.0.0.1:1"))._replace(addresses=((9999, ("127.0.0.1", 1)),))
    outcome = drive_here(order(tmp_path, "http://127.0.0.1:1", lanes=1500, requests=1500), calls(1500), route=route)
    assert outcome.kinds() == {("error", "connect"): 1500}
    assert outcome.health.death is None


@pytest.mark.parametrize("first", [(socket.AF_INET6, "::1"), (socket.AF_INET, "127.0.0.2"), (9999, "127.0.0.1")])
def test_the_next_address_is_tried(first: tuple[int, str], tmp_path: Path) -> None:
    with Replay(GOOD) as replay:
        route = resolve(parse(replay.url))
        route = route._replace(addresses=((first[0], (first[1], replay.port)), *route.addresses))
        outcome = drive_here(order(tmp_path, replay.url, lanes=3, requests=9), calls(20), route=route)
    assert outcome.kinds() == {("ok", None): 9}


def plainly(sock: socket.socket) -> None:
    """A server that knows no TLS."""
    sock.recv(65536)
    sock.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")


@pytest.mark.parametrize("known", [True, False])
def test_tls_that_fails(known: bool, made: Certificate, tmp_path: Path) -> None:
    """A certificate nobody vouches for; and a server that speaks no TLS at all."""
    with Scripted(answering(b""), made.server()) if known else Scripted(plainly) as server:
        told = order(tmp_path, f"https://127.0.0.1:{server.port}", requests=3, insecure=not known)
        outcome = drive_here(told, calls(5))
    assert outcome.kinds() == {("error", "tls"): 3}
    words = "CERTIFICATE_VERIFY_FAILED" if known else "WRONG_VERSION"
    assert all(words in (record.error_detail or "") for record in outcome.records)
    assert all(record.sent_ns is None for record in outcome.records)


def test_a_server_that_dies_under_load(tmp_path: Path) -> None:
    """Successes before, failures to connect after; what was on its way is incomplete."""
    with Replay(GOOD) as replay:
        told = order(tmp_path, replay.url, lanes=2, duration_ns=S)
        outcome = drive_here(told, calls(100_000), meanwhile=lambda _: replay.__exit__(), after_ms=300)
    kinds = outcome.kinds()
    assert kinds["ok", None] > 10
    assert kinds["error", "connect"] >= 4
    assert set(kinds) <= {("ok", None), ("error", "connect"), ("incomplete", None), ("cancelled", None)}
    last_ok = max(record.end_ns or 0 for record in outcome.records if record.outcome == "ok")
    assert all((record.end_ns or 0) > last_ok for record in outcome.records if record.error == "connect")


def all_kinds(outcome: Outcome) -> set[str | None]:
    return {record.error for record in outcome.records}


def test_every_kind_at_once_stays_with_its_request(tmp_path: Path) -> None:
    replies = [
        GOOD,
        whole(b"{}", 429),
        whole(b"{}", 503),
        whole(b"{}", 401),
        whole(b"<html>", 200, "text/html"),
        whole(event("a") + b'data: {"error":{"message":"x"}}\n\n', 200, "text/event-stream"),
        Reply(event("a"), ending="cut"),
        Reply(b"garbage\r\n\r\n", framing="raw", ending="eof"),
        Reply(event("a"), ending="reset"),
    ]
    right = [
        ("ok", None), ("error", "http_429"), ("error", "http_5xx"), ("error", "http_4xx"),
        ("error", "not_a_model_answer"), ("error", "stream_error"), ("incomplete", None), ("error", "malformed"),
        ("incomplete", None),
    ]  # fmt: skip
    with Replay(lambda exchange: replies[int(exchange.headers["x-seq"]) % len(replies)]) as replay:
        outcome = drive_here(order(tmp_path, replay.url, lanes=8, requests=180), calls(500))
    assert len(outcome.records) == 180
    for record in outcome.records:
        assert (record.outcome, record.error) == right[record.seq % len(right)]
    assert all_kinds(outcome) == {kind for _, kind in right}
