"""The server's words cut to size, the flat form of a JSON tree, and the second try at decoding."""

from __future__ import annotations

import pytest

from nilometer.wire.frame import Frame, complaint, decode, decode_leniently, excerpt, is_json, scalars, shape
from nilometer.wire.usage import Usage


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (b"", None),
        (b" \r\n ", None),
        (b"two\r\n\twords ", "two words"),
        ("two\nwords", "two words"),
        (b"a" + b" " * 300 + b"b", "a b"),
        ("é" * 150, "é" * 100),
        ("x" + "é" * 150, "x" + "é" * 99),
        (b"bad \xff byte", "bad \ufffd byte"),
    ],
)
def test_excerpt_is_at_most_200_bytes_of_words(said: bytes | str, words: str | None) -> None:
    assert excerpt(said) == words


def test_only_an_error_is_a_complaint_unless_it_is_marked_as_one() -> None:
    assert complaint(b'{"message":"hello"}') is None
    assert complaint(b'{"message":"hello"}', marked=True) == "hello"
    assert complaint(b'{"type":"error","message":"no"}') == "no"
    assert complaint(b'{"error":{"type":"x","message":"no"}}') == "no"
    assert complaint(b'{"error":{"message":""},"detail":"why"}') == "why"
    assert complaint(b'{"error":""}') is None
    assert complaint(b"not json") is None


def test_scalars_stop_at_a_depth() -> None:
    assert scalars({"a": {"b": {"c": 1}}, "d": 2}, depth=2) == {"d": 2}
    assert scalars(None) == scalars(5) == scalars([]) == {}


def test_counts_as_text_or_with_a_fraction_of_zero_are_read_at_the_second_try() -> None:
    usage = decode(b'{"usage":{"prompt_tokens":"7","completion_tokens":3.0}}', shape(Frame[object])).usage
    assert usage == Usage(prompt_tokens=7, completion_tokens=3)


def test_what_no_try_can_read_is_none() -> None:
    for broken in (b"", b"{", b"[]", b"null", b'{"usage":5}', b"[" * 100_000):
        assert decode(broken, shape(Frame[object])) is None
        assert decode_leniently(broken, Frame[object]) is None
    assert is_json(b"[1]")
    assert not is_json(b"[1")
