"""Outcome, kind and the server's words of every sort of response."""

from __future__ import annotations

import pytest

from nilometer.wire import chat
from nilometer.wire.answer import Answer
from nilometer.wire.outcome import Verdict, is_stream, judge

SSE = "text/event-stream; charset=utf-8"
JSON = "application/json"
TEXT = b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'
FINISH = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"
WHOLE = b'{"choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"}]}'
HTML = b"<!doctype html>\n<title>Sign  in</title>"


def judged(
    body: bytes,
    *,
    status: int | None = 200,
    content_type: str | None = SSE,
    whole: bool = True,
    encoding: str | None = None,
) -> Verdict:
    """As the load loop does it: a reader where the body is one of ours, then the verdict."""
    stream = is_stream(content_type, body[:400])
    answer: Answer | None = None
    if stream is not None:
        reader = chat.reader(stream, False)
        reader.feed(body)
        answer = reader.close()
    return judge(
        status=status, content_type=content_type, head=body[:400], answer=answer, whole=whole, encoding=encoding
    )


@pytest.mark.parametrize(
    ("content_type", "head", "stream"),
    [
        (SSE, b"", True),
        (SSE, b"data: x", True),
        (SSE, b"da", True),
        (SSE, b"\n: ping", True),
        (SSE, b'{"error":{}}', False),
        (SSE, b"<html>", None),
        (JSON, b"", False),
        (JSON, b"\n\n", False),
        (JSON, b" {", False),
        (JSON, b"data: x", True),
        (JSON, b"<html>", None),
        (JSON, b"Bad gateway", None),
        ("application/problem+json", b"", False),
        ("TEXT/EVENT-STREAM", b"", True),
        ("text/html", b"<html>", None),
        ("text/html", b"", None),
        ("text/html", b"data: x", True),
        ("text/plain", b'{"choices":[]}', False),
        (None, b"\xef\xbb\xbfdata: x", True),
        (None, b"[]", False),
        (None, b"event: error", True),
        (None, b"hello", None),
        (None, b"", None),
    ],
)
def test_the_body_says_what_it_is(content_type: str | None, head: bytes, stream: bool | None) -> None:
    assert is_stream(content_type, head) is stream


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (TEXT + FINISH + DONE, SSE),
        (TEXT + FINISH, SSE),
        (TEXT + DONE, SSE),
        (TEXT + FINISH, None),
        (WHOLE, JSON),
        (b"\n" * 500 + WHOLE, JSON),
        (b'{"choices":[{"message":{"content":"a"}}]}', JSON),
    ],
)
def test_ok(body: bytes, content_type: str | None) -> None:
    assert judged(body, content_type=content_type) == Verdict("ok")


def test_a_cut_after_the_finish_reason_is_ok() -> None:
    assert judged(TEXT + FINISH, whole=False) == Verdict("ok")
    assert judged(WHOLE, content_type=JSON, whole=False) == Verdict("ok")


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("body", [TEXT, TEXT + FINISH[:-1], b": ping\n\n", b'data: {"choices":[]}\n\n'])
def test_a_stream_that_ends_before_its_end_is_incomplete(body: bytes, whole: bool) -> None:
    assert judged(body, whole=whole) == Verdict("incomplete")


def test_cut_at_each_byte_a_stream_is_incomplete_until_its_finish_reason_is_there() -> None:
    body = TEXT + FINISH + DONE
    ended = len(TEXT + FINISH)
    for cut in range(len(body) + 1):
        assert judged(body[:cut], whole=False) == Verdict("incomplete" if cut < ended else "ok"), cut


def test_cut_at_each_byte_a_whole_answer_is_incomplete() -> None:
    for cut in range(len(WHOLE)):
        assert judged(WHOLE[:cut], content_type=JSON, whole=False) == Verdict("incomplete"), cut


def test_closed_before_a_status_line_is_incomplete() -> None:
    assert judge(status=None, content_type=None, head=b"", answer=None, whole=False) == Verdict("incomplete")


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "http_4xx"),
        (401, "http_4xx"),
        (404, "http_4xx"),
        (429, "http_429"),
        (500, "http_5xx"),
        (503, "http_5xx"),
        (301, "not_a_model_answer"),
        (307, "not_a_model_answer"),
        (103, "not_a_model_answer"),
    ],
)
@pytest.mark.parametrize("whole", [True, False])
def test_a_status_says_the_kind(status: int, kind: str, whole: bool) -> None:
    body = b'{"error":{"message":"no reeds here"}}'
    assert judged(body, status=status, content_type=JSON, whole=whole) == ("error", kind, "no reeds here")


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b"", None),
        (b"plain words", "plain words"),
        (HTML, "<!doctype html> <title>Sign in</title>"),
        (b'{"detail":"Not Found"}', "Not Found"),
        (b'{"detail":[{"loc":["body"]}]}', '{"detail":[{"loc":["body"]}]}'),
        (b'{"object":"error","message":"no such model"}', "no such model"),
        (b'{"error":"no such model"}', "no such model"),
        (b'{"error":{"message":"cut in the mid', '{"error":{"message":"cut in the mid'),
        (b"x" * 400, "x" * 200),
    ],
)
def test_the_words_of_an_error_body(body: bytes, detail: str | None) -> None:
    assert judged(body, status=404, content_type=None) == ("error", "http_4xx", detail)


@pytest.mark.parametrize(
    ("body", "content_type", "detail"),
    [
        (HTML, "text/html", "<!doctype html> <title>Sign in</title>"),
        (HTML, SSE, "<!doctype html> <title>Sign in</title>"),
        (b"hello", "text/plain", "hello"),
        (b"hello", JSON, "hello"),
        (b"hello\n\nworld\n\n", SSE, "hello world"),
        (b"", JSON, None),
        (b"", SSE, None),
        (b"", None, None),
        (b"  \n", JSON, None),
        (b'{"status":"ok"}', JSON, '{"status":"ok"}'),
        (b'{"choices":[]}', JSON, '{"choices":[]}'),
        (b"[1,2]", JSON, "[1,2]"),
        (DONE, SSE, "data: [DONE]"),
    ],
)
def test_a_200_that_is_no_model_answer(body: bytes, content_type: str | None, detail: str | None) -> None:
    assert judged(body, content_type=content_type) == ("error", "not_a_model_answer", detail)


def test_nothing_read_and_nothing_ended_is_incomplete() -> None:
    assert judged(b"", whole=False) == Verdict("incomplete")


@pytest.mark.parametrize("whole", [True, False])
def test_an_error_object_inside_a_200(whole: bool) -> None:
    error = b'{"error":{"message":"engine stopped"}}'
    for body, content_type in ((TEXT + b"data: " + error + b"\n\n" + DONE, SSE), (error, JSON), (error, SSE)):
        assert judged(body, content_type=content_type, whole=whole) == ("error", "stream_error", "engine stopped")


@pytest.mark.parametrize(("status", "kind"), [(200, "not_a_model_answer"), (500, "http_5xx")])
def test_a_packed_body_is_told_by_its_packing(status: int, kind: str) -> None:
    for body in (b"\x1f\x8b\x08\x00", TEXT + FINISH):
        assert judged(body, status=status, encoding="gzip") == ("error", kind, "Content-Encoding: gzip")
    assert judged(TEXT + FINISH, encoding="Identity") == Verdict("ok")


def test_broken_json() -> None:
    assert judged(TEXT + b"data: {x\n\n" + FINISH + DONE) == ("error", "malformed", "{x")
    assert judged(TEXT + b"data: {x\n\n", whole=False) == ("error", "malformed", "{x")
    assert judged(b'{"choices":[}', content_type=JSON) == ("error", "malformed", '{"choices":[}')
