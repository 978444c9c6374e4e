"""The mock's bytes and their times, read back with a reader of their own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nilometer.engines.mock_answer import Step, answer
from nilometer.engines.mock_ask import decode
from nilometer.engines.mock_script import Fault, Script


def ask(script: Script, fault: Fault | None = None, chat: bool = True, **fields: Any) -> list[Step]:
    asked: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}, "max_tokens": 5}
    asked |= {"messages": [{"role": "user", "content": "one two"}]} if chat else {"prompt": "one two"}
    request = decode(json.dumps(asked | fields).encode(), chat)
    return list(answer(script, request, 1, "mock-1", fault).steps)


def body_of(steps: list[Step]) -> bytes:
    """The de-chunked body; the last chunk of length 0 must be the end unless the stream is broken."""
    raw = b"".join(step.payload for step in steps).partition(b"\r\n\r\n")[2]
    body = b""
    while raw:
        size, _, rest = raw.partition(b"\r\n")
        length = int(size, 16)
        body += rest[:length]
        assert rest[length : length + 2] == b"\r\n"
        raw = rest[length + 2 :]
        if length == 0:
            assert raw == b""
    return body


def events(steps: list[Step]) -> list[Any]:
    lines = body_of(steps).replace(b"\r\n", b"\n").split(b"\n\n")
    data = [line.removeprefix(b"data: ") for line in lines if line.startswith(b"data: ")]
    return [item.decode() if item == b"[DONE]" else json.loads(item) for item in data]


def matter(steps: list[Step]) -> list[tuple[str, str]]:
    """(field, text) of every non-empty delta."""
    found = []
    for event in events(steps):
        for choice in event["choices"] if isinstance(event, dict) and "choices" in event else []:
            found += [(key, text) for key, text in choice["delta"].items() if text and key != "role"]
    return found


def test_a_plain_stream_has_one_frame_a_token_at_the_scripted_times() -> None:
    steps = ask(Script(ttft_ms=100, gap_ms=10))
    assert [step.at_ns // 1_000_000 for step in steps] == [0, 100, 110, 120, 130, 140, 140]
    assert [step.tokens for step in steps] == [0, 1, 1, 1, 1, 1, 0]
    assert "".join(text for _, text in matter(steps)).split() == ["the", "river", "rises", "and", "a"]
    *_, finish, usage, done = events(steps)
    assert finish["choices"][0]["finish_reason"] == "length"
    assert (usage["choices"], usage["usage"]) == (
        [],
        {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12},
    )
    assert done == "[DONE]"
    assert all(event["id"] == "mock-1" for event in events(steps)[:-1])


def test_usage_styles() -> None:
    def usages(script: Script, **fields: Any) -> list[int]:
        told = [event.get("usage") for event in events(ask(script, **fields)) if isinstance(event, dict)]
        return [usage["completion_tokens"] for usage in told if usage]

    assert usages(Script(usage="own")) == [5]
    assert usages(Script(usage="own"), stream_options={"include_usage": False}) == []
    assert usages(Script(usage="finish"), stream_options=None) == [5]
    assert usages(Script(usage="running")) == [1, 2, 3, 4, 5, 5]
    assert usages(Script(usage="running", tokens_per_frame=2)) == [2, 4, 5, 5]
    assert usages(Script(usage="none")) == []


def test_frames_of_several_tokens_keep_the_time_per_token() -> None:
    steps = [step for step in ask(Script(ttft_ms=100, gap_ms=10, tokens_per_frame=4), max_tokens=10) if step.tokens]
    assert [(step.at_ns // 1_000_000, step.tokens) for step in steps] == [(100, 4), (140, 4), (180, 2)]


def test_reasoning_comes_first_in_its_field_and_never_shares_a_frame() -> None:
    script = Script(reasoning_tokens=3, tokens_per_frame=2, reasoning_field="reasoning", ttft_ms=0, gap_ms=1)
    steps = ask(script)
    assert matter(steps) == [
        ("reasoning", "the river "),
        ("reasoning", "rises "),
        ("content", "and a "),
    ]
    assert [step.at_ns // 1_000_000 for step in steps if step.tokens] == [0, 2, 3]
    assert events(steps)[-2]["usage"]["completion_tokens_details"] == {"reasoning_tokens": 3}


def test_the_role_frame_leads_by_its_own_time_and_carries_nothing() -> None:
    steps = ask(Script(ttft_ms=100, role_lead_ms=30))
    assert [step.at_ns // 1_000_000 for step in steps[:3]] == [0, 70, 100]
    assert events(steps)[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert ask(Script(ttft_ms=10, role_lead_ms=30))[1].at_ns == 0
    late = ask(Script(ttft_ms=100, role_lead_ms=30, late_headers=True))
    assert late[0].at_ns == 70_000_000
    assert b'"role"' in late[0].payload
    assert late[0].payload.startswith(b"HTTP/1.1 200")


def test_completions_have_text_and_no_role_reasoning_or_template() -> None:
    steps = ask(Script(role_lead_ms=5, reasoning_tokens=2), chat=False)
    told = events(steps)
    assert [event["choices"][0]["text"] for event in told[:5]] == ["the ", "river ", "rises ", "and ", "a "]
    assert told[0]["object"] == "text_completion"
    assert told[-2]["usage"]["prompt_tokens"] == 2


def test_crlf_and_comments_change_the_lines_and_not_the_matter() -> None:
    plain = ask(Script(), max_tokens=20)
    dressed = ask(Script(crlf=True, comments=True), max_tokens=20)
    assert events(plain) == events(dressed)
    body = body_of(dressed)
    assert body.count(b": keep-alive\r\n\r\n") == 3  # one at the start, one before frames 8 and 16
    assert b"\n" not in body.replace(b"\r\n", b"")


def test_a_whole_answer_is_due_with_its_last_token() -> None:
    (step,) = ask(Script(ttft_ms=100, gap_ms=10, reasoning_tokens=2), stream=False)
    assert (step.at_ns, step.tokens) == (140_000_000, 5)
    head, _, body = step.payload.partition(b"\r\n\r\n")
    assert f"content-length: {len(body)}".encode() in head
    told = json.loads(body)
    assert told["choices"][0]["message"]["content"] == "rises and a "
    assert told["choices"][0]["message"]["reasoning_content"] == "the river "
    assert told["usage"]["completion_tokens"] == 5
    assert "usage" not in json.loads(
        ask(Script(usage="none"), stream=False, chat=False)[0].payload.partition(b"\r\n\r\n")[2]
    )


@pytest.mark.parametrize(
    ("kind", "status", "error_type"),
    [
        ("http_400", 400, "scripted_fault"),
        ("http_429", 429, "rate_limit_exceeded"),
        ("http_500", 500, "scripted_fault"),
    ],
)
def test_refusing_faults_are_json_errors(kind: str, status: int, error_type: str) -> None:
    (step,) = ask(Script(), Fault(kind, 1, 7))
    head, _, body = step.payload.partition(b"\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status} ".encode())
    assert (b"retry-after: 7" in head) == (kind == "http_429")
    assert json.loads(body)["error"]["type"] == error_type


@pytest.mark.parametrize("kind", ["cut", "stall", "stream_error", "garbage"])
def test_faults_inside_a_stream_come_after_their_tokens(kind: str) -> None:
    steps = ask(Script(ttft_ms=100, gap_ms=10), Fault(kind, 1, 2))
    assert sum(step.tokens for step in steps) == 2
    last = steps[-1]
    assert last.at_ns == 120_000_000
    assert last.then == {"cut": "close", "stall": "hang"}.get(kind, "next")
    if kind == "stream_error":
        assert events(steps)[-2]["error"]["code"] == 500
    if kind == "garbage":
        with pytest.raises(json.JSONDecodeError):
            events(steps)


def test_a_fault_after_more_tokens_than_there_are_still_breaks_the_stream() -> None:
    assert sum(step.tokens for step in ask(Script(), Fault("cut", 1, 99))) == 4


def test_faults_before_a_stream() -> None:
    (drop,) = ask(Script(), Fault("drop", 1, 0))
    assert (drop.payload, drop.then) == (b"", "close")
    (mute,) = ask(Script(), Fault("mute", 1, 0))
    assert (mute.payload, mute.then) == (b"", "hang")
    (noise,) = ask(Script(), Fault("noise", 1, 0))
    assert not noise.payload.startswith(b"HTTP")
    (page,) = ask(Script(), Fault("html200", 1, 0))
    assert page.payload.startswith(b"HTTP/1.1 200 ")
    assert b"text/html" in page.payload


def test_a_drip_is_one_byte_at_a_time_and_a_flood_one_line_without_end() -> None:
    drip = ask(Script(), Fault("drip", 1, 3))
    assert {len(step.payload) for step in drip[1:-1]} == {1}
    assert [step.at_ns for step in drip[1:4]] == [3_000_000, 6_000_000, 9_000_000]
    flood = body_of(ask(Script(), Fault("flood", 1, 2)))
    assert len(flood) > 2 << 20
    assert b"\n" not in flood


@pytest.mark.parametrize("kind", ["cut", "stall", "stream_error", "garbage"])
def test_whole_answers_break_too(kind: str) -> None:
    (step,) = ask(Script(), Fault(kind, 1, 2), stream=False)
    head, _, body = step.payload.partition(b"\r\n\r\n")
    short = len(body) < int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
    assert short == (kind in ("cut", "stall"))
    assert step.tokens == 0 or kind not in ("stream_error", "garbage")
