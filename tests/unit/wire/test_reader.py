"""What a stream's reader does with faults, odd servers, long lines, and pieces of frames."""

from __future__ import annotations

import gc
from typing import Any

import msgspec
import pytest

from nilometer.wire import chat
from nilometer.wire.answer import Answer, Fault

DONE = b"data: [DONE]\n\n"


def frame(content: str, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"content": content}, "finish_reason": finish}
    return b"data: " + msgspec.json.encode({"id": "c", "model": "m", "choices": [choice]}) + b"\n\n"


def answered(*chunks: bytes) -> Answer:
    reader = chat.reader(True, True)
    for chunk in chunks:
        reader.feed(chunk)
    return reader.close()


@pytest.mark.parametrize(
    ("event", "fault"),
    [
        (b'data: {"error":{"message":"engine stopped","code":500}}\n\n', Fault("stream_error", "engine stopped")),
        (b'data: {"error":"engine stopped"}\n\n', Fault("stream_error", "engine stopped")),
        (b'data: {"object":"error","message":"engine stopped"}\n\n', Fault("stream_error", "engine stopped")),
        (b'event: error\ndata: {"message":"engine stopped"}\n\n', Fault("stream_error", "engine stopped")),
        (b'event: error\ndata: {"error":{"message":"engine stopped"}}\n\n', Fault("stream_error", "engine stopped")),
        (b"event: error\ndata: engine  stopped \n\n", Fault("stream_error", "engine stopped")),
        (b'error: {"code":500,"message":"engine stopped"}\n\n', Fault("stream_error", "engine stopped")),
        (b'{"error":{"message":"engine stopped"}}\n\n', Fault("stream_error", "engine stopped")),
        (b'[{"error":{"message":"engine stopped"}}]\n\n', Fault("stream_error", "engine stopped")),
        (b'data: {"error":{"code":7}}\n\n', Fault("stream_error", '{"error":{"code":7}}')),
        (b"data: {broken\n\n", Fault("malformed", "{broken")),
        (b"data: hello\n\n", Fault("malformed", "hello")),
        (b"data: [1]\n\n", Fault("malformed", "[1]")),
        (b"data: 5\n\n", Fault("malformed", "5")),
        (b'data: {"choices":"x"}\n\n', Fault("malformed", '{"choices":"x"}')),
        (b'data: {"choices":[{"index":[]}]}\n\n', Fault("malformed", '{"choices":[{"index":[]}]}')),
    ],
)
def test_faults_carry_the_servers_words(event: bytes, fault: Fault) -> None:
    assert answered(frame("a"), event, DONE).fault == fault


@pytest.mark.parametrize(
    "event",
    [
        b'data: {"error":null,"choices":[]}\n\n',
        b'data: {"choices":null}\n\n',
        b"data: {}\n\n",
        b'{"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n',
        b"data:\n\n",
        b"data:  \n\n",
        b'event: ping\ndata: {"type":"ping"}\n\n',
        b'data: {"choices":[{"index":0,"delta":{"content":""},"logprobs":NaN}]}\n\n',
    ],
)
def test_what_is_no_fault_and_no_matter(event: bytes) -> None:
    reader = chat.reader(True, True)
    reader.feed(frame("a"))
    assert reader.feed(event) == 0
    assert reader.close().fault is None


def test_the_first_fault_is_kept_and_later_matter_still_counts() -> None:
    answer = answered(
        frame("a"), b"data: {x\n\n", frame("b"), b'data: {"error":"later"}\n\n', frame("c"), frame("", "stop")
    )
    assert answer.fault == Fault("malformed", "{x")
    assert (answer.matter_events, answer.text, answer.complete) == (3, "abc", True)


def test_a_detail_is_cut_at_200_bytes_between_characters() -> None:
    fault = answered(b'data: {"error":{"message":"' + "河".encode() * 100 + b'"}}\n\n').fault
    assert fault is not None
    assert fault.detail == "河" * 66


def test_bytes_that_are_no_utf8_become_a_replacement_character() -> None:
    event = b'data: {"choices":[{"index":0,"delta":{"content":"a\xffb"},"finish_reason":"stop"}]}\n\n'
    answer = answered(event)
    assert (answer.text, answer.fault) == ("a�b", None)


def test_a_lone_surrogate_becomes_a_replacement_character() -> None:
    event = b'data: {"choices":[{"index":0,"delta":{"content":"a\\ud83d"},"finish_reason":"stop"}]}\n\n'
    answer = answered(event)
    assert (answer.text, answer.fault) == ("a�", None)


@pytest.mark.parametrize("event_stream", [True, False])
def test_json_of_any_depth_raises_nothing(event_stream: bool) -> None:
    reader = chat.reader(event_stream, True)
    deep = b"[" * 100_000 + b"]" * 100_000
    body = b'{"choices":[{"finish_reason":' + deep + b'}],"timings":' + deep + b"}"
    assert reader.feed(b"data: " + body + b"\n\n" if event_stream else body) == 0
    fault = reader.close().fault
    assert fault is not None
    assert fault.kind == "malformed"


def test_timings_are_kept_flat_as_sent_and_the_last_win() -> None:
    def timed(timings: Any) -> bytes:
        choice = {"index": 0, "delta": {"content": "a"}}
        return b"data: " + msgspec.json.encode({"choices": [choice], "timings": timings}) + b"\n\n"

    answer = answered(timed({"prompt_n": 1}), timed({"prompt_ms": 1.5, "draft": {"n": 3, "by": [1, None]}, "ok": True}))
    assert answer.server == {"prompt_ms": 1.5, "draft.n": 3, "draft.by.0": 1, "draft.by.1": None, "ok": True}
    assert answered(frame("a")).server is None
    assert answered(timed({})).server is None


def test_a_line_of_64_mb_is_read_whole() -> None:
    reader = chat.reader(True, True)
    raw = frame("x" * (64 << 20))
    assert sum(reader.feed(raw[at : at + (64 << 10)]) for at in range(0, len(raw), 64 << 10)) == 1
    answer = reader.close()
    assert answer.text is not None
    assert len(answer.text) == 64 << 20


def test_a_long_line_byte_by_byte_is_read_once() -> None:
    reader = chat.reader(True, False)
    raw = frame("x" * (256 << 10))
    assert sum([reader.feed(raw[at : at + 1]) for at in range(len(raw))]) == 1


def test_a_fresh_reader_fed_the_bytes_so_far_tells_whether_a_token_came() -> None:
    body = frame("") + frame("a")
    for cut, came in ((0, 0), (len(frame("")), 0), (len(body) - 1, 0), (len(body), 1)):
        assert chat.reader(True, False).feed(body[:cut]) == came


def test_an_event_without_its_blank_line_is_none() -> None:
    answer = answered(frame("a"), frame("b", "stop").rstrip(b"\n") + b"\n")
    assert (answer.matter_events, answer.complete) == (1, False)


def test_frames_that_differ_in_their_text_alone_are_decoded_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    count = chat.ChatTally.choice
    decoded: list[chat.Choice] = []

    def counting(tally: chat.ChatTally, choice: chat.Choice) -> int:
        decoded.append(choice)
        return count(tally, choice)

    monkeypatch.setattr(chat.ChatTally, "choice", counting)
    reader = chat.reader(True, True)
    words = [f" word{number}" for number in range(300)]
    assert sum(reader.feed(frame(word)) for word in words) == 300
    assert reader.close().text == "".join(words)
    assert len(decoded) < 5


def test_a_plain_event_leaves_nothing_for_the_garbage_collector() -> None:
    reader = chat.reader(True, False)
    chunks = [frame(f" word{number}") for number in range(200)]
    for chunk in chunks[:100]:
        reader.feed(chunk)
    gc.collect()
    before = len(gc.get_objects())
    for chunk in chunks[100:]:
        reader.feed(chunk)
    assert len(gc.get_objects()) - before < 5
    assert len(reader.tokens) == 200
