"""Chat answers: what counts as matter, tokens by frame, several choices, tools, whole answers."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from nilometer.wire import chat
from nilometer.wire.answer import Answer
from nilometer.wire.ask import Ask
from nilometer.wire.reader import Reader

DONE = b"data: [DONE]\n\n"


def data(event: object) -> bytes:
    return b"data: " + msgspec.json.encode(event) + b"\n\n"


def frame(delta: dict[str, Any] | None = None, finish: Any = None, index: int = 0, **more: Any) -> bytes:
    return data(
        {"id": "c", "model": "m", "choices": [{"index": index, "delta": delta, "finish_reason": finish}], **more}
    )


def usage(output: int | None, prompt: int = 7, **more: Any) -> dict[str, Any]:
    return {"prompt_tokens": prompt, "completion_tokens": output, **more}


def fed(*chunks: bytes, keep_text: bool = True) -> tuple[Reader, list[int]]:
    reader = chat.reader(True, keep_text)
    return reader, [reader.feed(chunk) for chunk in chunks]


def answered(*chunks: bytes) -> Answer:
    return fed(*chunks)[0].close()


@pytest.mark.parametrize(
    ("delta", "counts"),
    [
        ({"role": "assistant", "content": ""}, 0),
        ({"role": "assistant", "content": None}, 0),
        ({}, 0),
        (None, 0),
        ({"content": "a"}, 1),
        ({"content": " "}, 1),
        ({"role": "assistant", "content": "a"}, 1),
        ({"reasoning_content": "a"}, 1),
        ({"reasoning": "a"}, 1),
        ({"reasoning": "", "reasoning_content": None}, 0),
        ({"refusal": "no"}, 1),
        ({"tool_calls": []}, 0),
        ({"tool_calls": [{"index": 0}]}, 0),
        ({"tool_calls": [{"index": 0, "function": {"name": "", "arguments": ""}}]}, 0),
        ({"tool_calls": [{"index": 0, "id": "t"}]}, 1),
        ({"tool_calls": [{"index": 0, "function": {"name": "f"}}]}, 1),
        ({"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]}, 1),
        ({"tool_calls": [{"index": 0, "function": {"arguments": {"a": 1}}}]}, 1),
        ({"function_call": None}, 0),
        ({"function_call": {"name": "f", "arguments": ""}}, 1),
        ({"function_call": {"arguments": "{"}}, 1),
        ({"content": []}, 0),
        ({"content": [{"type": "text", "text": ""}]}, 0),
        ({"content": [{"type": "text", "text": "a"}]}, 1),
        ({"content": [{"type": "thinking", "thinking": []}]}, 0),
        ({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "a"}]}]}, 1),
    ],
)
def test_what_is_matter(delta: dict[str, Any] | None, counts: int) -> None:
    assert fed(frame(delta))[1] == [counts]


def test_the_first_answer_is_the_first_matter_that_is_no_reasoning() -> None:
    reader, _ = fed(frame({"content": ""}), frame({"reasoning": "a"}), frame({"reasoning": "b"}))
    assert reader.first_answer is None
    reader.feed(frame({"reasoning": "c", "content": "d"}))
    assert reader.first_answer == 2
    reader.feed(frame({"content": "e"}))
    assert reader.first_answer == 2


def test_a_tool_call_is_an_answer() -> None:
    assert fed(frame({"tool_calls": [{"index": 0, "id": "t"}]}))[0].first_answer == 0


def test_texts_are_kept_by_channel_and_only_when_asked() -> None:
    frames = (frame({"reasoning": "a "}), frame({"reasoning": "b"}), frame({"content": "c"}), frame({"content": "\n"}))
    answer = answered(*frames, DONE)
    assert (answer.text, answer.reasoning, answer.tool_arguments) == ("c\n", "a b", None)
    bare = fed(*frames, DONE, keep_text=False)[0].close()
    assert (bare.text, bare.reasoning, bare.tool_arguments) == (None, None, None)


def test_a_server_that_names_its_reasoning_twice_says_it_once() -> None:
    answer = answered(frame({"reasoning": "abcdefgh", "reasoning_content": "abcdefgh"}, "stop"))
    assert (answer.reasoning, answer.output_tokens) == ("abcdefgh", 2)  # 8 bytes at 4 a token


def test_arguments_of_several_calls_stay_apart() -> None:
    def piece(index: int, arguments: str) -> bytes:
        return frame({"tool_calls": [{"index": index, "function": {"arguments": arguments}}]})

    answer = answered(piece(0, '{"a"'), piece(1, "{}"), piece(0, ":1}"), DONE)
    assert answer.tool_arguments == '{"a":1}\n{}'


def test_running_usage_gives_differences_and_its_last_value_is_the_count() -> None:
    reader, _ = fed(
        frame({"content": ""}, usage=usage(0)),
        frame({"content": "a"}, usage=usage(1)),
        frame({"content": "bc"}, usage=usage(4)),
        frame({"content": ""}, usage=usage(5)),
        frame({"content": "d"}, usage=usage(6)),
        frame({}, "stop", usage=usage(7)),
        DONE,
    )
    assert reader.tokens == [1, 3, 2]  # the fifth token had no text of its own: its frame is the next with text
    answer = reader.close()
    assert (answer.output_tokens, answer.token_source, answer.usage_seen) == (7, "usage", True)


def test_a_difference_over_frames_without_usage_belongs_to_none_of_them() -> None:
    reader, _ = fed(
        frame({"content": "a"}, usage=usage(1)),
        frame({"content": "b"}, usage=None),
        frame({"content": "c"}, usage=usage(5)),
        frame({"content": "d"}, usage=usage(7)),
    )
    assert reader.tokens == [1, -1, -1, 2]


def test_usage_that_falls_is_unknown_for_its_frame() -> None:
    reader, _ = fed(frame({"content": "a"}, usage=usage(9)), frame({"content": "b"}, usage=usage(1)))
    assert reader.tokens == [9, -1]


def test_usage_in_the_finish_frame_and_in_a_frame_of_its_own() -> None:
    text = frame({"content": "a"})
    own = data({"choices": [], "usage": usage(3)})
    assert answered(text, frame({}, "stop", usage=usage(3)), DONE).output_tokens == 3
    assert answered(text, frame({}, "stop"), own, DONE).output_tokens == 3
    assert answered(text, frame({}, "stop", usage=usage(3)), own, DONE).output_tokens == 3


def test_details_of_usage() -> None:
    answer = answered(
        frame({"reasoning": "a"}, "stop"),
        data(
            {
                "choices": [],
                "usage": usage(
                    9,
                    prompt_tokens_details={"cached_tokens": 4},
                    completion_tokens_details={"reasoning_tokens": 6},
                ),
            }
        ),
    )
    assert (answer.prompt_tokens, answer.cached_tokens, answer.reasoning_tokens) == (7, 4, 6)
    assert answer.output_tokens == 9
    assert not answer.hidden_tokens


def test_a_count_once_stated_is_not_unsaid_by_a_later_usage_without_it() -> None:
    whole = usage(2, prompt_tokens_details={"cached_tokens": 4})
    answer = answered(frame({"content": "a"}, "stop", usage=whole), data({"choices": [], "usage": usage(None)}))
    assert (answer.output_tokens, answer.cached_tokens) == (2, 4)


def test_thoughts_that_are_counted_but_not_streamed_are_hidden() -> None:
    thought = usage(9, completion_tokens_details={"reasoning_tokens": 6})
    assert answered(frame({"content": "a"}, "stop", usage=thought)).hidden_tokens
    none = usage(9, completion_tokens_details={"reasoning_tokens": 0})
    assert not answered(frame({"content": "a"}, "stop", usage=none)).hidden_tokens


def test_a_usage_of_zero_beside_text_counts_nothing() -> None:
    reader, _ = fed(frame({"content": "abcdefgh"}, usage=usage(0)), frame({}, "stop", usage=usage(0)), DONE)
    answer = reader.close()
    assert (answer.output_tokens, answer.token_source, reader.tokens) == (2, "estimated", [-1])


def test_an_answer_of_no_tokens_is_zero_tokens() -> None:
    answer = answered(frame({"content": ""}), frame({}, "stop", usage=usage(0)), DONE)
    assert (answer.output_tokens, answer.token_source) == (0, "usage")


def test_an_estimate_is_four_bytes_a_token_but_at_least_one_a_frame() -> None:
    assert answered(frame({"content": "河水上涨"}, "stop")).output_tokens == 3  # 12 bytes
    assert answered(*[frame({"content": "a"})] * 5, DONE).output_tokens == 5
    arguments = {"tool_calls": [{"index": 0, "id": "t", "function": {"name": "gauge", "arguments": '{"level":3}'}}]}
    answer = answered(frame(arguments, "tool_calls"))
    assert (answer.output_tokens, answer.token_source) == (4, "estimated")  # 5 + 11 bytes


def test_nothing_is_estimated_for_an_answer_that_did_not_end_well() -> None:
    cut = answered(frame({"content": "abcdefgh"}))
    assert (cut.complete, cut.output_tokens, cut.token_source) == (False, None, "none")
    failed = answered(frame({"content": "abcdefgh"}, "stop"), data({"error": {"message": "no"}}))
    assert (failed.output_tokens, failed.token_source) == (None, "none")
    counted = answered(frame({"content": "abcdefgh"}, usage=usage(3)))
    assert (counted.complete, counted.output_tokens, counted.token_source) == (False, 3, "usage")


def test_several_choices_are_complete_when_each_has_finished() -> None:
    reader, _ = fed(frame({"content": "a"}), frame({"content": "b"}, index=1), frame({}, "length", index=1))
    assert not reader.complete
    reader.feed(frame({}, "stop"))
    assert reader.complete
    answer = reader.close()
    assert (answer.choices, answer.finish_reason, answer.text) == (2, "stop", "a")


def test_one_frame_may_hold_several_choices() -> None:
    choices = [{"index": i, "delta": {"content": "x"}, "finish_reason": "stop"} for i in range(3)]
    reader, counts = fed(data({"choices": choices}))
    assert (counts, reader.complete, reader.close().choices) == ([1], True, 3)


def test_the_end_mark_completes() -> None:
    for mark in (DONE, b"data:[DONE]\r\n\r\n", b"data: [DONE] \n\n"):
        assert fed(frame({"content": "a"}), mark)[0].complete
    assert not fed(frame({"content": "a"}), b"data: [DONE]\n")[0].complete


@pytest.mark.parametrize(
    ("native", "normal"),
    [
        ("stop", "stop"),
        ("eos_token", "stop"),
        ("length", "length"),
        ("max_tokens", "length"),
        ("tool_calls", "tool_calls"),
        ("function_call", "tool_calls"),
        ("content_filter", "content_filter"),
        ("river_dry", "other"),
    ],
)
def test_finish_reasons_are_normalised_beside_the_native_one(native: str, normal: str) -> None:
    answer = answered(frame({"content": "a"}, native))
    assert (answer.native_finish_reason, answer.finish_reason, answer.fault) == (native, normal, None)


def test_a_finish_reason_may_be_wrapped_and_an_empty_one_is_none() -> None:
    assert answered(frame({"content": "a"}, {"type": "length", "length": 5})).finish_reason == "length"
    assert not fed(frame({"content": "a"}, ""))[0].complete


@pytest.mark.parametrize("native", ["abort", "error"])
def test_a_server_that_gives_up_is_a_fault(native: str) -> None:
    fault = answered(frame({"content": "a"}, native), DONE).fault
    assert fault is not None
    assert (fault.kind, fault.detail) == ("stream_error", native)


def test_names_of_the_answer_are_the_first_that_are_not_empty() -> None:
    answer = answered(
        data({"id": "", "model": "", "choices": []}),
        data({"id": "c-1", "model": "", "choices": []}),
        data({"id": "c-2", "model": "m", "choices": []}),
        data({"id": "c-3", "model": "n", "choices": []}),
    )
    assert (answer.server_request_id, answer.model) == ("c-1", "m")


def test_body_holds_what_was_asked_and_nothing_else() -> None:
    ask = Ask(model=None, prompt="Hé", max_tokens=None, include_usage=False)
    assert msgspec.json.decode(chat.body(ask)) == {"messages": [{"role": "user", "content": "Hé"}], "stream": True}


def test_body_with_everything() -> None:
    ask = Ask(
        model="m", prompt="p", max_tokens=8, temperature=0.0, top_p=0.5, seed=3, extra={"seed": 4, "min_tokens": 8}
    )
    assert msgspec.json.decode(chat.body(ask)) == {
        "model": "m",
        "messages": [{"role": "user", "content": "p"}],
        "max_tokens": 8,
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.0,
        "top_p": 0.5,
        "seed": 4,
        "min_tokens": 8,
    }


def test_usage_is_not_asked_of_a_whole_answer() -> None:
    body = msgspec.json.decode(chat.body(Ask(model="m", prompt="p", max_tokens=8, stream=False)))
    assert body["stream"] is False
    assert "stream_options" not in body


def whole(answer: object, keep_text: bool = True) -> Answer:
    reader = chat.reader(False, keep_text)
    raw = msgspec.json.encode(answer)
    assert [reader.feed(raw[:9]), reader.feed(raw[9:])] == [0, 0]
    return reader.close()


def test_a_whole_answer_has_counts_but_no_events() -> None:
    message = {"role": "assistant", "content": "Dry.", "reasoning_content": "Hm."}
    answer = whole(
        {
            "id": "c",
            "model": "m",
            "choices": [{"index": 0, "message": message, "finish_reason": "length"}],
            "usage": usage(5, completion_tokens_details={"reasoning_tokens": 2}),
        }
    )
    assert (answer.matter_events, answer.first_answer, answer.complete) == (0, None, True)
    assert (answer.output_tokens, answer.token_source, answer.prompt_tokens) == (5, "usage", 7)
    assert (answer.text, answer.reasoning, answer.finish_reason) == ("Dry.", "Hm.", "length")
    assert not answer.hidden_tokens


def test_a_whole_answer_with_tools_and_without_usage_is_estimated() -> None:
    calls = [{"id": "t", "type": "function", "function": {"name": "gauge", "arguments": '{"level":3}'}}]
    answer = whole({"choices": [{"message": {"content": None, "tool_calls": calls}, "finish_reason": "tool_calls"}]})
    assert (answer.output_tokens, answer.token_source, answer.tool_arguments) == (4, "estimated", '{"level":3}')


def test_a_whole_error_object_is_a_stream_error() -> None:
    for error in ({"error": {"message": "no room"}}, {"object": "error", "message": "no room"}, {"error": "no room"}):
        fault = whole(error).fault
        assert fault is not None
        assert (fault.kind, fault.detail) == ("stream_error", "no room")


def test_a_whole_answer_without_choices_is_not_complete() -> None:
    others: list[Any] = [{}, [], "text", None, {"choices": []}, {"choices": "none"}]
    for other in others:
        answer = whole(other)
        assert (answer.complete, answer.choices, answer.fault) == (False, 0, None)


def test_a_whole_answer_that_is_cut_is_malformed() -> None:
    reader = chat.reader(False, False)
    reader.feed(b'{"choices":[{"index":0,"mess')
    fault = reader.close().fault
    assert fault is not None
    assert (fault.kind, fault.detail) == ("malformed", '{"choices":[{"index":0,"mess')


def test_content_in_parts_is_thoughts_and_text() -> None:
    hm = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    reader, counts = fed(
        frame({"content": [hm]}),
        frame({"content": [hm, {"type": "text", "text": "a"}]}),
        frame({"content": "b"}),
        frame({"content": "c"}, "stop"),
    )
    assert (counts, reader.first_answer) == ([1, 1, 1, 1], 1)
    answer = reader.close()
    assert (answer.text, answer.reasoning, answer.fault) == ("abc", "hmhm", None)


@pytest.mark.parametrize("arguments", [{"a": 1}, '{"a":1}'])
def test_a_call_is_kept_as_json_in_each_of_its_forms(arguments: object) -> None:
    call = {"name": "f", "arguments": arguments}
    for delta in ({"tool_calls": [{"function": call}]}, {"function_call": call}):
        assert answered(frame(delta), frame(finish="tool_calls")).tool_arguments == '{"a":1}'
