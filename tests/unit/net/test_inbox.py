"""Responses taken in: interim answers, framings, keep-alive, and what may follow a whole answer."""

from __future__ import annotations

import httptools
import pytest

from nilometer.net.inbox import Inbox

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\n\r\n"


def taken(*reads: bytes) -> Inbox:
    inbox = Inbox()
    for read in reads:
        inbox.feed(read)
    return inbox


def test_chunks_are_the_pieces() -> None:
    inbox = taken(CHUNKED)
    assert (inbox.status, inbox.done, inbox.keep_alive) == (200, True, True)
    assert inbox.pieces == [b"abc", b"defg"]
    assert inbox.headers == {"content-type": "text/event-stream", "transfer-encoding": "chunked"}
    assert not inbox.ends_by_close


def test_a_content_length_ends_the_body() -> None:
    inbox = taken(HEAD + b"Content-Length: 3\r\n\r\nab")
    assert not inbox.done
    inbox.feed(b"c")
    assert inbox.done
    assert b"".join(inbox.pieces) == b"abc"


def test_a_body_without_a_length_ends_with_the_connection() -> None:
    inbox = taken(HEAD + b"\r\nabc", b"def")
    assert (inbox.done, inbox.ends_by_close) == (False, True)
    assert b"".join(inbox.pieces) == b"abcdef"


def test_nothing_ends_by_close_before_its_headers_are_whole() -> None:
    assert not taken().ends_by_close
    assert not taken(HEAD).ends_by_close


@pytest.mark.parametrize(
    ("head", "kept"),
    [
        (b"HTTP/1.1 200 OK\r\n", True),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\n", False),
        (b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n", True),
        (b"HTTP/1.0 200 OK\r\n", False),
        (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n", True),
    ],
)
def test_whether_the_connection_is_kept(head: bytes, kept: bool) -> None:
    inbox = taken(head + b"Content-Length: 2\r\n\r\nok")
    assert (inbox.done, inbox.keep_alive) == (True, kept)


@pytest.mark.parametrize("status", [204, 304])
def test_some_answers_have_no_body(status: int) -> None:
    inbox = taken(b"HTTP/1.1 %d X\r\n\r\n" % status)
    assert (inbox.status, inbox.done, inbox.pieces) == (status, True, [])


@pytest.mark.parametrize("interim", [b"100 Continue", b"103 Early Hints\r\nLink: </x>"])
def test_an_interim_answer_is_not_the_answer(interim: bytes) -> None:
    inbox = taken(b"HTTP/1.1 " + interim + b"\r\n\r\n")
    assert (inbox.status, inbox.headers_done, inbox.done) == (None, False, False)
    inbox.feed(HEAD + b"Content-Length: 1\r\n\r\nx")
    assert (inbox.status, inbox.done, inbox.pieces) == (200, True, [b"x"])
    assert "link" not in inbox.headers


def test_a_connection_carries_one_answer_after_the_other() -> None:
    inbox = Inbox()
    for number in range(3):
        pieces = inbox.expect()
        inbox.feed(b"HTTP/1.1 20%d X\r\nX-N: %d\r\nContent-Length: 1\r\n\r\n%d" % (number, number, number))
        assert (inbox.done, inbox.status, inbox.headers["x-n"]) == (True, 200 + number, str(number))
        assert pieces == [b"%d" % number]
    inbox.expect()
    assert (inbox.done, inbox.status, inbox.headers, inbox.pieces) == (False, None, {}, [])


@pytest.mark.parametrize("after", [b"garbage", b"\x00\x00", b"HTTP/1.1 500 X\r\nContent-Length: 5\r\n\r\nother"])
@pytest.mark.parametrize("connection", [b"", b"Connection: close\r\n"])
def test_an_answer_stands_though_bytes_follow_it(after: bytes, connection: bytes) -> None:
    inbox = Inbox()
    with pytest.raises(httptools.HttpParserError):
        inbox.feed(HEAD + connection + b"Content-Length: 2\r\n\r\nok" + after)
    assert (inbox.done, inbox.status, b"".join(inbox.pieces)) == (True, 200, b"ok")
    assert inbox.headers["content-type"] == "text/event-stream"


def test_an_empty_line_after_an_answer_is_no_harm() -> None:
    inbox = taken(HEAD + b"Content-Length: 2\r\n\r\nok\r\n")
    assert inbox.done
    inbox.expect()
    inbox.feed(HEAD + b"Content-Length: 2\r\n\r\nok")
    assert inbox.done


@pytest.mark.parametrize(
    "bad",
    [
        b"garbage\r\n\r\n",
        b"SSH-2.0-OpenSSH_9\r\n",
        b"\x15\x03\x01\x00\x02\x02\x16",
        b"HTTP/1.1 abc OK\r\n\r\n",
        HEAD + b"Content-Length: x\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nbad header\r\n\r\n",
    ],
)
def test_what_is_not_http_is_refused(bad: bytes) -> None:
    inbox = Inbox()
    with pytest.raises(httptools.HttpParserError):
        inbox.feed(bad)
    assert not inbox.done


def test_header_names_are_lower_case_and_any_byte_is_kept() -> None:
    inbox = taken(b"HTTP/1.1 200 OK\r\nX-Odd: \xe9\xff\r\nContent-Length: 0\r\n\r\n")
    assert inbox.headers["x-odd"] == "\xe9\xff"
