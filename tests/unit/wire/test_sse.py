"""The event-stream parser against hand-read examples of the WHATWG rules."""

from __future__ import annotations

import pytest

from nilometer.wire.sse import BARE, EventStream


def parsed(*chunks: bytes) -> list[tuple[bytes, bytes]]:
    stream = EventStream()
    return [(event.name, event.data) for chunk in chunks for event in stream.feed(chunk)]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_each_kind_of_line_end_ends_a_line(end: bytes) -> None:
    assert parsed(b"data: a" + end + end + b"data: b" + end + end) == [(b"", b"a"), (b"", b"b")]


def test_line_ends_may_be_mixed() -> None:
    assert parsed(b"data: a\r\ndata: b\n\rdata: c\r\r\n") == [(b"", b"a\nb"), (b"", b"c")]


@pytest.mark.parametrize(
    ("body", "data"),
    [
        (b"data: x\n\n", b"x"),
        (b"data:x\n\n", b"x"),
        (b"data:  x\n\n", b" x"),
        (b"data:\tx\n\n", b"\tx"),
        (b"data\n\n", b""),
        (b"data:\n\n", b""),
        (b"data: a\ndata\ndata: b\n\n", b"a\n\nb"),
        (b"data: a:b: c\n\n", b"a:b: c"),
        (b": hello\ndata: x\n: bye\n\n", b"x"),
        (b"id: 7\nretry: 10\nfoo: bar\ndata: x\n\n", b"x"),
        (b"\xef\xbb\xbfdata: x\n\n", b"x"),
        (b"\n\n\ndata: x\n\n", b"x"),
    ],
)
def test_fields_by_the_rules(body: bytes, data: bytes) -> None:
    assert parsed(body) == [(b"", data)]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\n\n",
        b": only a comment\n\n",
        b"event: named\n\n",
        b"Data: x\n\n",
        b" data: x\n\n",
        b"data: x",
        b"data: x\n",
        b"data: x\r\n",
        b"\n\xef\xbb\xbfdata: x\n\n",
    ],
)
def test_what_is_no_event(body: bytes) -> None:
    assert parsed(body) == []


def test_json_outside_all_fields_is_handed_back_as_such() -> None:
    assert parsed(b'{\n "a":\n  1}\n\ndata: x\n\n') == [(BARE, b'{\n "a":\n  1}'), (b"", b"x")]
    stream = EventStream()
    assert stream.feed(b'data: x\n\n[{\n"a": 1') == [(b"", b"x")]
    assert (stream.bare, stream.clean) == (b'[{\n"a": 1', False)


def test_a_type_belongs_to_one_event() -> None:
    assert parsed(b"event: error\ndata: x\n\ndata: y\n\n") == [(b"error", b"x"), (b"", b"y")]
    assert parsed(b"event: error\n\ndata: y\n\n") == [(b"", b"y")]


def test_a_blank_line_counts_at_its_cr_without_waiting_for_an_lf() -> None:
    stream = EventStream()
    assert stream.feed(b"data: x\r\n") == []
    assert len(stream.feed(b"\r")) == 1
    assert stream.feed(b"\n") == []
    assert len(stream.feed(b"data: y\r\r")) == 1


def test_a_cut_between_cr_and_lf_makes_no_blank_line() -> None:
    assert parsed(b"data: a\r", b"\ndata: b\r", b"\n\r", b"\n") == [(b"", b"a\nb")]


def test_an_empty_chunk_changes_nothing() -> None:
    assert parsed(b"data: a\r", b"", b"\ndata: b\n\n") == [(b"", b"a\nb")]


def test_clean_says_that_the_next_byte_begins_an_event() -> None:
    stream = EventStream()
    assert stream.feed(b"") == []
    assert not stream.clean  # a byte order mark may still come
    states = []
    for chunk in (b"data: x\n\n", b"d", b"ata: y\n", b"\n", b"event: z\n", b"\n", b"data: y\r\r", b"\n"):
        stream.feed(chunk)
        states.append(stream.clean)
    assert states == [True, False, False, True, False, True, False, True]


def test_a_byte_order_mark_may_be_cut_anywhere() -> None:
    for body in (b"\xef\xbb\xbfdata: x\n\n", b"\xef\xbb\xbf\n\ndata: x\n\n"):
        assert parsed(*(body[i : i + 1] for i in range(len(body)))) == [(b"", b"x")]


def test_a_line_of_64_mb_in_small_pieces_comes_out_whole() -> None:
    piece = b"0123456789abcdef" * 4096
    stream = EventStream()
    stream.feed(b"data: ")
    assert not any(stream.feed(piece) for _ in range(1024))
    (event,) = stream.feed(b"\n\n")
    assert len(event.data) == 64 << 20
    assert event.data == piece * 1024
