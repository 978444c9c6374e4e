"""Any split of a body's bytes gives the same counts, and each event counts at the byte that completes it.

The oracle below reads the whole body at once, by regular expressions and `json`; it shares no code with `wire`.
"""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import dataclass, field
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.loopback.replay import Reply, case, dialect_of, stems

from nilometer.wire.dialects import DIALECTS
from nilometer.wire.ndjson import Lines
from nilometer.wire.sse import EventStream

TEXTS = st.sampled_from(
    ["a", " flood", " the", "", " ", '"', "\\", "\n", "河水", "🌊", "é", "content", "~", "\x7f", "x" * 40]
)
ENDS = st.sampled_from(["\n", "\n", "\n", "\r\n", "\r"])


def slow_events(body: bytes) -> list[tuple[str, str]]:
    """(type, data) of each event that is complete in `body`."""
    text = body.decode("utf-8", "replace").removeprefix("\ufeff")
    *lines, _ = re.split("\r\n|\r|\n", text)
    events, data, name = [], None, ""
    for line in lines:
        if line == "":
            if data is not None:
                events.append((name, data))
            data, name = None, ""
        key, value = re.fullmatch("([^:]*):? ?(.*)", line, re.DOTALL).groups()  # type: ignore[union-attr]
        if key == "data":
            data = value if data is None else data + "\n" + value
        if key == "event":
            name = value
    return events


@dataclass
class Slow:
    """What the oracle counted."""

    tokens: list[int] = field(default_factory=list)
    first_answer: int | None = None
    seen: set[int] = field(default_factory=set)
    finished: dict[int, str] = field(default_factory=dict)
    text: str = ""
    reasoning: str = ""
    text_bytes: int = 0
    faults: list[str] = field(default_factory=list)
    output: int | None = None
    done: bool = False
    stated: tuple[int, int] = (0, 0)


def slow_read(body: bytes) -> Slow:
    slow = Slow()
    for name, data in slow_events(body):
        if name == "error":
            slow.faults.append("stream_error")
        elif data.strip() == "[DONE]":
            slow.done = True
        elif data.strip():
            slow_event(slow, data)
    return slow


def slow_event(slow: Slow, data: str) -> None:
    try:
        event = json.loads(data)
    except ValueError:
        slow.faults.append("malformed")
        return
    if event.get("error"):
        slow.faults.append("stream_error")
    usage = event.get("usage")
    if usage:
        slow.output = usage["completion_tokens"]
    answered = thought = False
    for choice in event.get("choices") or []:
        index, delta = choice["index"], choice["delta"]
        slow.seen.add(index)
        if choice.get("finish_reason"):
            slow.finished[index] = choice["finish_reason"]
        said, mused = delta.get("content") or "", delta.get("reasoning_content") or delta.get("reasoning") or ""
        called = "".join(call["function"].get("arguments", "") for call in delta.get("tool_calls") or [])
        slow.text_bytes += len((said + mused + called).encode())
        answered |= bool(said or called)
        thought |= bool(mused)
        if index == 0:
            slow.text += said
            slow.reasoning += mused
    if answered or thought:
        if answered and slow.first_answer is None:
            slow.first_answer = len(slow.tokens)
        slow.tokens.append(slow_stated(slow, usage))


def slow_stated(slow: Slow, usage: dict[str, int] | None) -> int:
    if not usage:
        return -1
    frames, total = slow.stated
    own = usage["completion_tokens"] - total
    known = frames == len(slow.tokens) and own >= 0
    slow.stated = (len(slow.tokens) + 1, usage["completion_tokens"])
    return own if known else -1


@st.composite
def deltas(draw: st.DrawFn) -> dict[str, Any]:
    text = draw(TEXTS)
    return draw(
        st.sampled_from(
            [
                {"content": text},
                {"content": text},
                {"role": "assistant", "content": text},
                {"reasoning_content": text},
                {"content": None, "reasoning": text},
                {"content": text, "reasoning": text},
                {"tool_calls": [{"index": 0, "function": {"arguments": text}}]},
                {},
            ]
        )
    )


@st.composite
def frames(draw: st.DrawFn) -> str:
    """The data of one event."""
    event: dict[str, Any] = {"id": "c-1", "model": draw(st.sampled_from(["m", "m", ""]))}
    event["choices"] = [
        {
            "index": draw(st.sampled_from([0, 0, 0, 1])),
            "delta": draw(deltas()),
            "finish_reason": draw(st.sampled_from([None, None, None, None, "", "stop", "length"])),
        }
        for _ in range(draw(st.sampled_from([1, 1, 1, 1, 0, 2])))
    ]
    usage = draw(st.sampled_from(["none", "none", "none", "null", "some"]))
    if usage != "none":
        event["usage"] = None if usage == "null" else {"completion_tokens": draw(st.integers(1, 30))}
    if draw(st.integers(0, 30)) == 0:
        event["error"] = {"message": "no"}
    compact = draw(st.booleans())
    return json.dumps(event, ensure_ascii=draw(st.booleans()), separators=(",", ":") if compact else (", ", ": "))


@st.composite
def plain_runs(draw: st.DrawFn) -> list[str]:
    """Frames that differ in their text alone, as most of a real stream does."""
    key = draw(st.sampled_from(["content", "reasoning", "content"]))
    shape = '{"id":"c-1","model":"m","choices":[{"index":0,"delta":{"%s":%s},"finish_reason":null}]}'
    ascii_only = draw(st.booleans())
    return [shape % (key, json.dumps(text, ensure_ascii=ascii_only)) for text in draw(st.lists(TEXTS, min_size=3))]


ODD = st.sampled_from(["[DONE]", "{broken", "", " ", '{"id":"c-1"}', '{"choices":null}'])
DATA = st.one_of(plain_runs(), frames().map(lambda one: [one]), ODD.map(lambda one: [one]))


@st.composite
def written(draw: st.DrawFn, data: str) -> bytes:
    """One event on the wire, in one of the ways the rules allow."""
    end = draw(ENDS)
    before = draw(st.sampled_from(["", "", "", "", ": ping" + end, "id: 4" + end, ": a" + end + end, end]))
    if draw(st.integers(0, 40)) == 0:
        before += "event: error" + end
    head = draw(st.sampled_from(["data: ", "data: ", "data:"]))
    if data.startswith("{") and draw(st.integers(0, 15)) == 0:  # JSON may be cut where white space is allowed
        data = data.replace(", ", "," + end + head, 1)
    return (before + head + data + end + end).encode()


@st.composite
def bodies(draw: st.DrawFn) -> list[bytes]:
    """Whole events in the order of the wire; the last may lack its end."""
    data = [one for group in draw(st.lists(DATA, max_size=8)) for one in group]
    if draw(st.booleans()):
        events = [b"data: " + one.encode() + b"\n\n" for one in data]
    else:
        events = [draw(written(one)) for one in data]
    if events and draw(st.integers(0, 8)) == 0:
        events[0] = b"\xef\xbb\xbf" + events[0]
    if events and draw(st.integers(0, 4)) == 0:
        events[-1] = events[-1][: draw(st.integers(0, len(events[-1])))]
    return events


@st.composite
def splits(draw: st.DrawFn) -> list[bytes]:
    """The body in pieces: whole events, cut at will, or a mixture of both."""
    events = draw(bodies())
    body = b"".join(events)
    borders = [sum(len(event) for event in events[:n]) for n in range(len(events) + 1)]
    cuts = set(draw(st.lists(st.integers(0, len(body)), max_size=8)))
    cuts |= set(draw(st.sampled_from([borders, borders, borders[::2], []])))
    ordered = sorted(cuts | {0, len(body)})
    return [body[a:b] for a, b in itertools.pairwise(ordered)]


def check(pieces: list[bytes]) -> None:
    reader = DIALECTS["chat"].reader(True, True)
    body = b""
    matter = 0
    for piece in pieces:
        matter += reader.feed(piece)
        body += piece
        assert matter == len(slow_read(body).tokens), piece
    slow = slow_read(body)
    answer = reader.close()
    assert answer.complete == (slow.done or (bool(slow.seen) and slow.seen == set(slow.finished)))
    assert reader.tokens == slow.tokens
    assert (answer.first_answer, answer.matter_events) == (slow.first_answer, len(slow.tokens))
    assert (answer.text, answer.reasoning or "") == (slow.text, slow.reasoning)
    assert (answer.fault.kind if answer.fault else None) == (slow.faults[0] if slow.faults else None)
    assert answer.choices == len(slow.seen)
    assert answer.finish_reason == (slow.finished[min(slow.finished)] if slow.finished else None)
    if slow.output is not None:
        assert (answer.output_tokens, answer.token_source) == (slow.output, "usage")
    elif slow.faults or not answer.complete:
        assert (answer.output_tokens, answer.token_source) == (None, "none")
    else:
        estimate = max(len(slow.tokens), round(slow.text_bytes / 4))
        assert (answer.output_tokens, answer.token_source) == (estimate, "estimated")


PLAIN = b'data: {"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"%s"}}]}\n\n'


@settings(max_examples=300, deadline=None)
@given(splits())
@example([PLAIN % b"a", PLAIN % b"b", PLAIN % b"c", PLAIN % b"", PLAIN % b'"}}],"x":[{"y":{"z":"', PLAIN % b"\xff"])
@example([PLAIN % b"a", PLAIN % b"b", PLAIN % b"c\\n", PLAIN % "河".encode(), PLAIN % b"d\n", PLAIN % b"e"])
@example(
    [PLAIN % b"a", PLAIN % b"b", (PLAIN % b"c")[:60], (PLAIN % b"c")[60:] + (PLAIN % b"d")[:7], (PLAIN % b"d")[7:]]
)
@example([PLAIN % b"a", PLAIN % b"b", PLAIN % b"c" + PLAIN % b"d" + b"\n", b"\n", PLAIN % b"e", b"data: {}\n", b"\n"])
@example(
    [
        PLAIN % b"a",
        PLAIN % b"b",
        b'data: {"choices":\n[]}\n\n',
        b"data: {\rx}\n\n",
        b"data: {}\r\n\r",
        b"\n",
        PLAIN % b"f",
    ]
)
@example([PLAIN % b"a", PLAIN % b"b", b"event: error\n", PLAIN % b"c", b"event: error\r\n", PLAIN % b"d"])
@example([PLAIN % b"a", PLAIN % b"b", b"data: {\n", PLAIN % b"c", b"data: {\r", PLAIN % b"d", b"da", PLAIN % b"e"])
def test_any_split_agrees_with_the_oracle_after_each_piece(pieces: list[bytes]) -> None:
    check(pieces)


@settings(max_examples=60, deadline=None)
@given(bodies())
def test_one_byte_at_a_time_agrees_with_one_read(events: list[bytes]) -> None:
    body = b"".join(events)
    slow, fast = DIALECTS["chat"].reader(True, True), DIALECTS["chat"].reader(True, True)
    assert sum(slow.feed(body[at : at + 1]) for at in range(len(body))) == fast.feed(body)
    assert slow.tokens == fast.tokens
    assert slow.close() == fast.close()


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [b"data: a", b"data:", b"data", b":c", b"event: e", b"x", b"\n", b"\r", b"\r\n", b"\xef\xbb\xbf", b" "]
        )
    ),
    st.data(),
)
def test_the_parser_agrees_with_the_oracle(tokens: list[bytes], data: st.DataObject) -> None:
    body = b"".join(tokens)
    cuts = sorted({0, len(body), *data.draw(st.lists(st.integers(0, len(body))))})
    stream = EventStream()
    events = [event for a, b in itertools.pairwise(cuts) for event in stream.feed(body[a:b])]
    assert [(event.name.decode(), event.data.decode()) for event in events] == slow_events(body)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.binary(max_size=60), max_size=10), st.sampled_from(sorted(DIALECTS)), st.booleans())
def test_garbage_raises_nothing(chunks: list[bytes], dialect: str, event_stream: bool) -> None:
    reader = DIALECTS[dialect].reader(event_stream, True)
    for chunk in chunks:
        reader.feed(b"data: " + chunk + b"\n\n" if chunk.startswith(b"0") else chunk)
    answer = reader.close()
    assert answer.fault is None or answer.fault.detail is None or len(answer.fault.detail.encode()) <= 200


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([b'{"a":1}', b"{", b"x", b"\n", b"\n", b"\r\n", b"\xef\xbb\xbf", b" "])), st.data())
def test_lines_are_the_same_however_they_are_split(parts: list[bytes], data: st.DataObject) -> None:
    body = b"".join(parts)
    cuts = sorted({0, len(body), *data.draw(st.lists(st.integers(0, len(body))))})
    whole, split = Lines(), Lines()
    assert [line for a, b in itertools.pairwise(cuts) for line in split.feed(body[a:b])] == whole.feed(body)
    assert split.rest == whole.rest
    *ended, _ = body.split(b"\n")
    assert len(Lines().feed(body)) <= len(ended)


LINE = st.sampled_from(
    [
        b'{"message":{"content":"a"},"done":false}',
        b'{"message":{"content":"\xe6\xb2\xb3","thinking":"b"},"done":false}',
        b'{"message":{"content":""},"done":true,"eval_count":2}',
        b'{"error":"no"}',
        b'{\n"done":true}',
        b"{broken",
        b"",
    ]
)


@settings(max_examples=200, deadline=None)
@given(st.lists(LINE), st.booleans(), st.data())
def test_any_split_of_lines_reads_the_same(lines: list[bytes], ended: bool, data: st.DataObject) -> None:
    body = b"\n".join(lines) + (b"\n" if ended else b"")
    cuts = sorted({0, len(body), *data.draw(st.lists(st.integers(0, len(body))))})
    whole, split = (DIALECTS["ollama"].reader(True, True) for _ in range(2))
    assert sum(split.feed(body[a:b]) for a, b in itertools.pairwise(cuts)) == whole.feed(body)
    assert (split.close(), split.tokens) == (whole.close(), whole.tokens)


CAPTURES = [case(stem) for stem in stems()]
SPOTS = st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=3)), max_size=3)


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(CAPTURES), st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=3)), max_size=3), st.booleans()
)
def test_a_spoilt_capture_raises_nothing_and_keeps_its_counts_together(
    told: tuple[Reply, dict[str, Any]], spots: list[tuple[float, bytes]], event_stream: bool
) -> None:
    reply, expected = told
    body = bytearray(reply.body)
    for share, put in spots:
        at = int(share * len(body))
        body[at : at + 2] = put
    reader = DIALECTS[dialect_of(expected)].reader(event_stream, True)
    events = sum(reader.feed(bytes(body[at : at + 97])) for at in range(0, len(body), 97))
    answer = reader.close()
    assert events == len(reader.tokens) == answer.matter_events
    assert (answer.first_answer is None) or answer.first_answer < events
