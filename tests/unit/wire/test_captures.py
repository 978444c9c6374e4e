"""Bodies in the shapes of real servers, read to the figures that stand in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from nilometer.wire.answer import Answer
from nilometer.wire.dialects import DIALECTS
from nilometer.wire.outcome import is_stream, judge
from nilometer.wire.reader import Reader

LLAMACPP = Path(__file__).parents[2] / "captures" / "llamacpp-b10434"


def read(name: str, dialect: str) -> tuple[Answer, Reader]:
    body = (LLAMACPP / name).read_bytes()
    stream = is_stream(None, body[:400])
    assert stream is not None
    reader = DIALECTS[dialect].reader(stream, True)
    reader.feed(body)
    answer = reader.close()
    assert judge(status=200, content_type=None, head=body[:400], answer=answer, whole=True).outcome == "ok"
    return answer, reader


def test_chat_with_usage() -> None:
    answer, reader = read("chat_stream_usage.txt", "chat")
    assert (answer.text, reader.tokens) == ("The flood came", [-1, -1, -1])
    assert (answer.prompt_tokens, answer.cached_tokens, answer.output_tokens) == (30, 12, 3)
    assert (answer.finish_reason, answer.model, answer.server_request_id) == (
        "length",
        "reed.gguf",
        "chatcmpl-nile0001",
    )
    assert answer.server is not None
    assert (answer.server["prompt_ms"], answer.server["predicted_n"], len(answer.server)) == (1500.25, 3, 9)


def test_chat_without_usage_is_estimated_and_still_has_timings() -> None:
    answer, _ = read("chat_stream.txt", "chat")
    assert (answer.text, answer.output_tokens, answer.token_source) == ("The flood", 2, "estimated")
    assert answer.server is not None
    assert (answer.server["cache_n"], answer.server["prompt_n"]) == (29, 1)


def test_completions_have_usage_in_the_finish_frame() -> None:
    answer, reader = read("completions_stream.txt", "completions")
    assert (answer.text, answer.output_tokens, answer.token_source) == (" a gauge", 2, "usage")
    assert (answer.prompt_tokens, answer.cached_tokens, answer.matter_events) == (4, 0, 2)
    assert reader.tokens == [-1, -1]


def test_a_whole_completion() -> None:
    answer, _ = read("completions_whole.json", "completions")
    assert (answer.text, answer.output_tokens, answer.cached_tokens, answer.matter_events) == (" a gauge", 2, 3, 0)
    assert answer.server is not None
    assert answer.server["cache_n"] == 3


def test_progress_frames_of_the_prefill_are_no_tokens() -> None:
    answer, _ = read("completions_timings_per_token.txt", "completions")
    assert (answer.matter_events, answer.text, answer.output_tokens) == (2, " a gauge", 2)
    assert answer.server is not None
    assert (answer.server["predicted_n"], answer.server["predicted_ms"]) == (2, 170.5)


@pytest.mark.parametrize(
    ("name", "status", "kind", "words"),
    [
        ("context_overflow.json", 400, "http_4xx", "exceeds the available context size"),
        ("bad_request_json.json", 500, "http_5xx", "parse error at line 1"),
        ("unknown_path.json", 404, "http_4xx", "File Not Found"),
    ],
)
def test_error_objects(name: str, status: int, kind: str, words: str) -> None:
    body = (LLAMACPP / name).read_bytes()
    verdict = judge(status=status, content_type="application/json", head=body[:400], answer=None, whole=True)
    assert (verdict.outcome, verdict.error) == ("error", kind)
    assert words in (verdict.detail or "")
    assert not (verdict.detail or "").startswith("{")
