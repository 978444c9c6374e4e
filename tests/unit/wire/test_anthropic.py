"""Answers of the messages API: content blocks, counts, what is let pass, the body."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from nilometer.wire import anthropic
from nilometer.wire.answer import Answer
from nilometer.wire.ask import Ask


def event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: ".encode() + msgspec.json.encode({"type": kind, **fields}) + b"\n\n"


def answered(*events: bytes) -> tuple[Answer, list[int]]:
    reader = anthropic.reader(True, True)
    counts = [reader.feed(one) for one in events]
    return reader.close(), counts


def delta(kind: str, **fields: Any) -> bytes:
    return event("content_block_delta", index=0, delta={"type": kind, **fields})


def begun(**block: Any) -> bytes:
    return event("content_block_start", index=0, content_block=block)


STOP = event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 5}) + event("message_stop")


@pytest.mark.parametrize(
    ("one", "counts"),
    [
        (delta("text_delta", text="a"), 1),
        (delta("text_delta", text=""), 0),
        (delta("thinking_delta", thinking="a"), 1),
        (delta("signature_delta", signature="c2ln"), 0),
        (delta("input_json_delta", partial_json="{"), 1),
        (delta("input_json_delta", partial_json=""), 0),
        (delta("citations_delta", citation={"cited_text": "a"}), 0),
        (begun(type="text", text=""), 0),
        (begun(type="thinking", thinking=""), 0),
        (begun(type="tool_use", id="t", name="f", input={}), 1),
        (event("ping"), 0),
        (event("news", index="x", delta=4), 0),
    ],
)
def test_what_is_matter(one: bytes, counts: int) -> None:
    answer, seen = answered(one)
    assert (seen, answer.fault) == ([counts], None)


def test_an_event_of_a_known_type_must_have_its_shape() -> None:
    fault = answered(event("content_block_delta", index="x", delta=4))[0].fault
    assert fault is not None
    assert fault.kind == "malformed"


def test_the_first_count_is_a_placeholder_and_the_last_one_is_the_total() -> None:
    start = event("message_start", message={"id": "i", "model": "m", "usage": {"input_tokens": 4, "output_tokens": 1}})
    cut, _ = answered(start, delta("text_delta", text="abcd"))
    assert (cut.complete, cut.output_tokens, cut.prompt_tokens) == (False, None, 4)
    answer, _ = answered(start, delta("text_delta", text="abcd"), STOP)
    assert (answer.complete, answer.output_tokens, answer.token_source) == (True, 5, "usage")


def test_cached_tokens_are_part_of_the_prompt() -> None:
    usage = {"input_tokens": 4, "cache_read_input_tokens": 30, "cache_creation_input_tokens": 6, "output_tokens": 1}
    answer, _ = answered(event("message_start", message={"usage": usage}), STOP)
    assert (answer.prompt_tokens, answer.cached_tokens) == (40, 30)


def test_a_prompt_of_no_tokens_is_a_placeholder() -> None:
    start = event("message_start", message={"usage": {"input_tokens": 4, "output_tokens": 1}})
    last = event("message_delta", delta={"stop_reason": "end_turn"}, usage={"input_tokens": 0, "output_tokens": 5})
    assert answered(start, last)[0].prompt_tokens == 4
    assert answered(event("message_start", message={"usage": {"input_tokens": 0}}), last)[0].prompt_tokens is None


def test_thoughts_that_are_sealed_or_redacted_are_hidden() -> None:
    text = delta("text_delta", text="a")
    sealed = delta("signature_delta", signature="c2ln")
    assert not answered(text, STOP)[0].hidden_tokens
    assert not answered(delta("thinking_delta", thinking="b"), sealed, text, STOP)[0].hidden_tokens
    assert answered(sealed, text, STOP)[0].hidden_tokens
    assert answered(begun(type="redacted_thinking", data="x"), text, STOP)[0].hidden_tokens


def test_frames_that_differ_in_their_text_alone_are_decoded_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    read = anthropic.MessageTally.read
    seen: list[anthropic.Event] = []

    def counting(tally: anthropic.MessageTally, frame: anthropic.Event) -> int:
        seen.append(frame)
        return read(tally, frame)

    monkeypatch.setattr(anthropic.MessageTally, "read", counting)
    reader = anthropic.reader(True, True)
    words = [f" word{number}" for number in range(300)]
    assert sum(reader.feed(delta("text_delta", text=word)) for word in words) == 300
    assert reader.close().text == "".join(words)
    assert len(seen) < 5


def test_a_whole_answer_with_a_tool_call() -> None:
    reader = anthropic.reader(False, True)
    content = [{"type": "text", "text": "Hm."}, {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}}]
    reader.feed(msgspec.json.encode({"type": "message", "content": content, "stop_reason": "tool_use"}))
    answer = reader.close()
    assert (answer.text, answer.tool_arguments, answer.finish_reason) == ("Hm.", '{"a":1}', "tool_calls")


def test_a_whole_error() -> None:
    reader = anthropic.reader(False, False)
    reader.feed(b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}')
    answer = reader.close()
    assert answer.fault is not None
    assert (answer.fault.detail, answer.complete) == ("Overloaded", False)


def test_body() -> None:
    ask = Ask(model="m", prompt="p", max_tokens=8, temperature=0.0, seed=3)
    assert msgspec.json.decode(anthropic.body(ask)) == {
        "model": "m",
        "messages": [{"role": "user", "content": "p"}],
        "max_tokens": 8,
        "stream": True,
        "temperature": 0.0,
    }
