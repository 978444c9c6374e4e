"""Protocols of one's own: what a file may say, how a body is filled in, where parts of an answer are found."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nilometer.core.errors import SpecError
from nilometer.wire import custom
from nilometer.wire.answer import Answer
from nilometer.wire.ask import Ask
from nilometer.wire.dialects import spoken

FILE = """
path = "/v2/{model}/generate"
key_header = "X-Reed-Key: Token {key}"

[headers]
X-Client = "nilo"

[body]
input = [{ text = "{prompt}" }]
limit = "{max_tokens}"
streaming = "{stream}"
user = "nilo {seed} of {model}"

[body.sampling]
temperature = "{temperature}"
top_p = "{top_p}"

[stream]
text = "out.*.text"
reasoning = "out.*.thought"
finish = "out.0.why"
error = "problem"
prompt_tokens = "used.in"
output_tokens = "used.out"
reasoning_tokens = "used.thoughts"
model = "name"

[whole]
text = "result"
finish = "why"
output_tokens = "used.out"
"""


def protocol(**changes: Any) -> custom.Protocol:
    stream = {"text": "t", "finish": "f", "error": "e", "output_tokens": "n", **changes}
    return custom.from_tree({"path": "/p", "body": {"q": "{prompt}"}, "stream": stream}, "x.toml")


def event(**told: Any) -> bytes:
    return b"data: " + json.dumps(told).encode() + b"\n\n"


def answered(told: custom.Protocol, *chunks: bytes, stream: bool = True) -> tuple[Answer, list[int]]:
    reader = custom.dialect(told, "x.toml").reader(stream, True)
    counts = [reader.feed(chunk) for chunk in chunks]
    return reader.close(), counts


def test_a_file_makes_a_dialect() -> None:
    told = custom.from_toml(FILE, "x.toml")
    row = custom.dialect(told, "x.toml")
    assert (row.name, row.base, row.method, row.streams, row.whole, row.lines) == (
        "x.toml", "root", "POST", True, True, False,
    )  # fmt: skip
    assert row.route("org/m", stream=True) == "/v2/org/m/generate"
    assert (row.key, row.headers) == (("X-Reed-Key", "Token "), (("X-Client", "nilo"),))


def test_plain_values_make_the_same_dialect() -> None:
    told = custom.from_toml(FILE, "x.toml")
    tree = custom.to_tree(told)
    assert custom.from_tree(tree, "run") == told
    assert msgspec.json.decode(msgspec.json.encode(tree)) == tree
    assert spoken("x.toml", tree).path == "/v2/{model}/generate"


def test_body_is_filled_in_and_leaves_out_what_is_not_asked() -> None:
    ask = Ask(model="m", prompt='a "b" {seed}', max_tokens=8, temperature=0.0, seed=3, extra={"sampling": {"k": 1}})
    assert msgspec.json.decode(custom.body(custom.from_toml(FILE, "x.toml"), ask)) == {
        "input": [{"text": 'a "b" {seed}'}],
        "limit": 8,
        "streaming": True,
        "user": "nilo 3 of m",
        "sampling": {"temperature": 0.0, "k": 1},
    }


@pytest.mark.parametrize("prompt", ['"', "\\", "\n\t\x00", "河 🌊", "{model}", "</s>", "}]}"])
def test_any_prompt_is_one_text_of_the_body(prompt: str) -> None:
    told = custom.from_tree({"path": "/p", "body": {"q": "<{prompt}>"}, "whole": {"text": "t"}}, "x")
    sent = custom.body(told, Ask(model="m", prompt=prompt, max_tokens=8))
    assert msgspec.json.decode(sent) == {"q": f"<{prompt}>"}


def test_braces_that_hold_no_name_are_text() -> None:
    regex = {"path": "/p", "body": {"q": "{prompt}", "regex": r"\d{3}", "grammar": '{"a": 1}'}, "whole": {"text": "t"}}
    assert custom.from_tree(regex, "x").body["regex"] == r"\d{3}"


def test_parts_are_found() -> None:
    answer, counts = answered(
        custom.from_toml(FILE, "x.toml"),
        event(name="m", out=[]),
        event(out=[{"thought": "hm"}]),
        event(out=[{"text": "a"}, {"text": "b"}], used={"out": 2}),
        event(out=[{"text": "", "why": "length"}], used={"in": 7, "out": 3, "thoughts": 1}),
    )
    assert (counts, answer.first_answer, answer.complete) == ([0, 1, 1, 0], 1, True)
    assert (answer.text, answer.reasoning, answer.finish_reason, answer.model) == ("ab", "hm", "length", "m")
    assert (answer.prompt_tokens, answer.output_tokens, answer.reasoning_tokens) == (7, 3, 1)
    assert not answer.hidden_tokens


def test_a_whole_answer_has_places_of_its_own() -> None:
    body = b'{"result":"ab","why":"stop","used":{"out":2}}'
    answer, counts = answered(custom.from_toml(FILE, "x.toml"), body, stream=False)
    assert (counts, answer.complete, answer.text, answer.output_tokens) == ([0], True, "ab", 2)


def test_running_counts_give_the_tokens_of_each_event() -> None:
    reader = custom.dialect(protocol(), "x").reader(True, False)
    for chunk in (event(t="a", n=1), event(t="bc", n=3), event(t="d", f="stop", n=4)):
        reader.feed(chunk)
    assert reader.tokens == [1, 2, 1]


@pytest.mark.parametrize(
    ("changes", "last"),
    [
        ({}, event(t="", f="stop")),
        ({"finish": None, "end": "over"}, event(over=True)),
        ({"finish": None, "end_mark": "END"}, b"data: END\n\n"),
        ({"finish": None, "end_mark": "END"}, b"data: [DONE]\n\n"),
        ({"finish": None, "end_mark": '{"over":1}'}, b'data: {"over":1}\n\n'),
    ],
)
def test_how_a_stream_ends(changes: dict[str, Any], last: bytes) -> None:
    told = protocol(**{key: value for key, value in {"finish": "f", **changes}.items() if value is not None})
    assert not answered(told, event(t="a", over=False))[0].complete
    answer, _ = answered(told, event(t="a", over=False), last)
    assert (answer.complete, answer.fault, answer.choices) == (True, None, 1)


def test_texts_that_repeat_what_was_said_count_what_they_add() -> None:
    answer, counts = answered(protocol(cumulative=True), event(t="a"), event(t="a b"), event(t="a b", f="stop"))
    assert (counts, answer.text) == ([1, 1, 0], "a b")


@pytest.mark.parametrize("error", ["no room", {"message": "no room"}])
def test_an_error_is_found(error: object) -> None:
    fault = answered(protocol(), event(t="a"), event(e=error))[0].fault
    assert fault is not None
    assert (fault.kind, fault.detail) == ("stream_error", "no room")
    assert answered(protocol(), event(t="a", e=None), event(t="b", f="stop", e=""))[0].fault is None


def test_lines_and_a_whole_answer_on_one_line() -> None:
    told = custom.from_tree(
        {
            "path": "/p",
            "body": {"q": "{prompt}"},
            "stream": {"framing": "ndjson", "text": "t", "finish": "f"},
            "whole": {"text": "all", "finish": "why"},
        },
        "x",
    )
    answer, counts = answered(told, b'{"t":"a"}\n', b'{"t":"b","f":"stop"}\n')
    assert (counts, answer.text, answer.complete) == ([1, 1], "ab", True)
    answer, counts = answered(told, b'{"all":"ab","why":"stop"}\n')
    assert (counts, answer.text, answer.complete, answer.matter_events) == ([0], "ab", True, 0)


def test_without_a_table_for_them_answers_of_a_kind_are_not_asked_for() -> None:
    row = custom.dialect(protocol(), "x")
    assert (row.whole, row.asks_stream(False)) == (False, True)
    tree = {"path": "/p", "body": {"q": "{prompt}"}, "whole": {"text": "t"}}
    row = custom.dialect(custom.from_tree(tree, "x"), "x")
    assert (row.streams, row.asks_stream(True)) == (False, False)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('path = "/v2', "paths = 3\npath = \"/v2", "unknown field `paths` (at line 2)"),
        ('text = "out', "text = 3\n#", "Expected `str`, got `int` - at `$.stream.text` (at line 19)"),
        ('text = "out.*.text"', 'text = "out..text"', "at `$.stream.text` (at line 19)"),
        ('limit = "{max_tokens}"', 'limit = "{max_token}"', "{max_token}, known are model, prompt"),
        ('limit = "{max_tokens}"', 'limit = "{MAX}"', "{MAX}, known are model, prompt"),
        ('limit = "{max_tokens}"', 'limit = "{{max_tokens}}"', "{{max_tokens}}, known are"),
        ('limit = "{max_tokens}"', 'limit = "{ max_tokens }"', "{ max_tokens }, known are"),
        ('limit = "{max_tokens}"', "limit = nan", "a number that JSON can hold - at `$.body.limit` (at line 10)"),
        ('"/v2/{model}/generate"', '"v2/{model}"', "Expected a path: printable characters without a space, `/`"),
        ('"/v2/{model}/generate"', '"/v2/my model"', "- at `$.path` (at line 2)"),
        ('"/v2/{model}/generate"', '"http://h/v2"', "- at `$.path` (at line 2)"),
        ('X-Client = "nilo"', 'Content-Length = "3"', "(header_reserved) - at `$.headers.Content-Length` (at line 6)"),
        ('X-Client = "nilo"', '"X Client" = "nilo"', "(header_invalid) - at `$.headers.X Client` (at line"),
        ("/v2/{model}/", "/v2/{prompt}/", "{prompt}, known are model - at `$.path` (at line 2)"),
        ("/generate", "/generate?api_key=s3cret", "Expected no key in it"),
        ("{prompt}", "prompt", "Expected {prompt} in it - at `$.body` (at line 8)"),
        ('finish = "out.0.why"', "", "Expected finish, end or end_mark - at `$.stream` (at line 18)"),
        ("X-Reed-Key: Token {key}", "X-Reed-Key", "Expected the form `Header: {key}` - at `$.key_header` (at line 3)"),
        ("[stream]", '[stream]\nframing = "xml"', "Invalid enum value 'xml' - at `$.stream.framing` (at line 19)"),
        ('path = "/v2/{model}/generate"', "", "missing required field `path`"),
    ],
)  # fmt: skip
def test_what_a_file_may_not_say_is_refused_with_its_line(old: str, new: str, said: str) -> None:
    assert old in FILE
    with pytest.raises(SpecError) as caught:
        custom.from_toml(FILE.replace(old, new, 1), "x.toml")
    assert (caught.value.slug, caught.value.params["file"]) == ("toml_key", "x.toml")
    assert said in str(caught.value.params["detail"])


def test_no_toml_is_refused() -> None:
    with pytest.raises(SpecError) as caught:
        custom.from_toml("path = \n", "x.toml")
    assert caught.value.slug == "toml_invalid"


@pytest.mark.parametrize(
    ("place", "values"),
    [
        ("a", [{"b": [1, {"c": 2}, 3]}]),
        ("a.b.0", [1]),
        ("a.b.-1", [3]),
        ("a.b.*", [1, {"c": 2}, 3]),
        ("a.b.*.c", [2]),
        ("a.*.1.c", [2]),
        ("a.b.9", []),
        ("a.b.x", []),
        ("a.b.0.x", []),
        ("x", []),
        (None, []),
    ],
)
def test_places(place: str | None, values: list[object]) -> None:
    assert list(custom.found({"a": {"b": [1, {"c": 2}, 3]}}, place)) == values


TREES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["t", "f", "e", "n"]), inner, max_size=3)
    ),
)


@given(st.lists(TREES, max_size=4), st.booleans())
def test_whatever_stands_at_the_places_raises_nothing(trees: list[object], cumulative: bool) -> None:
    told = protocol(cumulative=cumulative, text="*.t")
    for stream in (True, False):
        answered(told, *(b"data: " + json.dumps(tree).encode() + b"\n\n" for tree in trees), stream=stream)
