"""The learned frame is right or is none: what surrounds a piece of text is proved, never guessed."""

from __future__ import annotations

import pytest

from nilometer.wire import chat
from nilometer.wire.matter import ANSWER, REASONING
from nilometer.wire.template import PLAIN, Template, is_utf8, learn

NAMES = b'{"id":"c","model":"m","choices":[{"index":0,"delta":{}}]}'


def learned(chunk: bytes) -> Template | None:
    tally = chat.ChatTally(chat.SHAPES, False)
    tally.event(NAMES)
    return learn(chunk, tally.piece)


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n"])
@pytest.mark.parametrize("start", [b"data: ", b"data:", b": ping\ndata: ", b"id: 1\ndata:  "])
def test_head_and_tail_enclose_the_text(start: bytes, end: bytes) -> None:
    head, tail = start + b'{"choices":[{"index":0,"delta":{"content":"', b'"}}]}' + end
    assert learned(head + b"reed" + tail) == Template(ANSWER, head, tail)


def test_reasoning_is_learned_as_reasoning() -> None:
    for key in (b"reasoning", b"reasoning_content"):
        head, tail = b'data: {"choices":[{"index":0,"delta":{"content":null,"' + key + b'":"', b'"}}]}\n\n'
        assert learned(head + b"hm" + tail) == Template(REASONING, head, tail)


@pytest.mark.parametrize(
    "json",
    [
        b'{"choices":[{"index":0,"delta":{"content":""}}]}',
        b'{"choices":[{"index":1,"delta":{"content":"a"}}]}',
        b'{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}',
        b'{"choices":[{"index":0,"delta":{"content":"a","reasoning":"b"}}]}',
        b'{"choices":[{"index":0,"delta":{"content":"a","tool_calls":[{"id":"t"}]}}]}',
        b'{"choices":[{"index":0,"delta":{"content":"a"}},{"index":1,"delta":{}}]}',
        b'{"choices":[{"index":0,"delta":{"content":"a"}}],"usage":{"completion_tokens":1}}',
        b'{"choices":[{"index":0,"delta":{"content":"a"}}],"error":"x"}',
        b'{"choices":[{"index":0,"delta":{"content":"a"}}],"timings":{"n":1}}',
        b'{"choices":[{"index":0,"delta":{"content":"\\n"}}]}',
        b'{"choices":[{"index":0,"delta":{"content":"\\u0061"}}]}',
        b'{"choices":[]}',
        b"[DONE]",
    ],
)
def test_a_frame_with_more_than_plain_text_is_not_learned(json: bytes) -> None:
    assert learned(b"data: " + json + b"\n\n") is None


@pytest.mark.parametrize(
    "chunk",
    [
        b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n',
        b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\r\r',
        b'event: error\ndata: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n',
        b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\ndata',
        b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\ndata: {}\n\n',
    ],
)
def test_a_chunk_that_is_not_exactly_one_frame_is_not_learned(chunk: bytes) -> None:
    assert learned(chunk) is None


def test_the_text_is_found_among_its_doubles() -> None:
    head = b'data: {"content":"a","x":["a"],"choices":[{"index":0,"delta":{"content":"'
    assert learned(head + b'a"}}],"y":"a"}\n\n') == Template(ANSWER, head, b'"}}],"y":"a"}\n\n')


def test_a_key_is_not_taken_for_the_text() -> None:
    head = b'data: {"choices":[{"index":0,"delta":{"content":"'
    assert learned(head + b'content"}}]}\n\n') == Template(ANSWER, head, b'"}}]}\n\n')
    twice = b'data: {"choices":[{"index":0,"delta":{"content":"content~","content":"content"}}]}\n\n'
    found = learned(twice)
    assert found is None or found.head.endswith(b'"content~","content":"')


def test_an_unnamed_answer_is_not_learned_yet() -> None:
    tally = chat.ChatTally(chat.SHAPES, False)
    assert learn(b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n', tally.piece) is None


def test_plain_bytes_mean_themselves_in_json_and_in_a_stream() -> None:
    assert not set(PLAIN) & (set(range(0x20)) | set(b'"\\\x7f'))
    assert set(b" ~azAZ09{}:,'") <= set(PLAIN)
    assert is_utf8("河水🌊".encode())
    for broken in (b"\xff", "河".encode()[:2], b"\xed\xa0\x80", b"\xc0\xaf"):
        assert not is_utf8(broken)
