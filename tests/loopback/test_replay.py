"""The replay server keeps its schedule, its framing and its endings."""

from __future__ import annotations

import http.client
import socket

import pytest
from tests.loopback.replay import CASES, Ending, Framing, Replay, Reply, case

STEMS = sorted(path.name.split(".")[0] for path in (CASES / "sse").glob("*.expected.json"))


def post(replay: Replay, path: str = "/v1/chat/completions") -> tuple[int, str | None, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", replay.port, timeout=10)
    try:
        connection.request("POST", path, b"{}")
        answer = connection.getresponse()
        return answer.status, answer.getheader("content-type"), answer.read()
    finally:
        connection.close()


@pytest.mark.parametrize("stem", STEMS)
def test_every_case_is_served_whole_and_on_time(stem: str) -> None:
    reply, expected = case(stem)
    with Replay(reply) as replay:
        status, content_type, body = post(replay)
    assert (status, content_type, body) == (expected["status"], expected["content_type"], reply.body)
    (exchange,) = replay.exchanges
    late_ms = [
        (ns - exchange.read_ns) / 1e6 - ms
        for (ns, _), (ms, _) in zip(exchange.writes, expected["schedule_ms_bytes"], strict=True)
    ]
    assert min(late_ms) >= 0
    assert sorted(late_ms)[len(late_ms) // 2] < 100  # loose: the machine may be busy


@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
def test_framings_carry_the_same_body(framing: Framing) -> None:
    with Replay(Reply(b"one two", schedule=((0, 3), (5, 4)), framing=framing)) as replay:
        assert post(replay)[2] == b"one two"


def test_a_cut_body_is_seen_as_incomplete() -> None:
    with Replay(Reply(b"one two").cut_at(3)) as replay, pytest.raises(http.client.IncompleteRead) as seen:
        post(replay)
    assert seen.value.partial == b"one"


def test_a_reset_is_seen_as_a_reset() -> None:
    with Replay(Reply(b"one", ending="reset")) as replay, pytest.raises(ConnectionResetError):
        post(replay)


@pytest.mark.parametrize(("ending", "connections"), [("keep", 1), ("eof", 2)])
def test_a_connection_is_kept_or_closed(ending: Ending, connections: int) -> None:
    with Replay(Reply(b"ok", framing="length", ending=ending)) as replay:
        client = http.client.HTTPConnection("127.0.0.1", replay.port, timeout=10)
        for _ in range(2):
            client.request("POST", "/x", b"{}")
            assert client.getresponse().read() == b"ok"
        client.close()
    assert len({exchange.connection for exchange in replay.exchanges}) == connections


def test_unknown_paths_get_404_and_choosers_see_the_request() -> None:
    with Replay({"/a": Reply(b"A")}) as replay:
        assert post(replay, "/a")[2] == b"A"
        assert post(replay, "/b")[0] == 404
    with Replay(lambda exchange: Reply(exchange.method.encode() + exchange.body)) as replay:
        assert post(replay)[2] == b"POST{}"


def test_raw_bytes_go_out_as_they_are_and_a_hang_ends_with_the_test() -> None:
    reply = Reply(b"\x80\x81", framing="raw", ending="hang")
    with Replay(reply) as replay, socket.create_connection(("127.0.0.1", replay.port), timeout=10) as client:
        client.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert client.recv(10) == b"\x80\x81"
