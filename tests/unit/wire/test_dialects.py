"""The table of dialects."""

from __future__ import annotations

import pytest

from nilometer.wire.dialects import DIALECTS, generates


def test_rows_stand_under_their_names() -> None:
    assert all(name == row.name for name, row in DIALECTS.items())
    assert len({row.path for row in DIALECTS.values()}) == len(DIALECTS)


@pytest.mark.parametrize(
    ("name", "base", "whole", "streamed"),
    [
        ("chat", "v1", "/chat/completions", "/chat/completions"),
        ("completions", "v1", "/completions", "/completions"),
        ("responses", "v1", "/responses", "/responses"),
        ("ollama", "root", "/api/chat", "/api/chat"),
        ("tgi", "root", "/generate", "/generate_stream"),
        ("llamacpp", "root", "/completion", "/completion"),
        ("anthropic", "v1", "/messages", "/messages"),
        (
            "gemini",
            "root",
            "/v1beta/models/a%20b%3F:generateContent",
            "/v1beta/models/a%20b%3F:streamGenerateContent?alt=sse",
        ),
        ("embeddings", "v1", "/embeddings", "/embeddings"),
        ("rerank", "v1", "/rerank", "/rerank"),
    ],
)
def test_where_requests_go(name: str, base: str, whole: str, streamed: str) -> None:
    row = DIALECTS[name]
    assert (row.base, row.route("a b?", stream=False), row.route("a b?", stream=True)) == (base, whole, streamed)


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("event_stream", [True, False])
def test_a_reader_that_was_fed_nothing_has_nothing(name: str, event_stream: bool) -> None:
    reader = DIALECTS[name].reader(event_stream, False)
    assert reader.feed(b"") == 0
    assert not reader.complete
    assert (reader.tokens, reader.first_answer) == ([], None)
    answer = reader.close()
    assert (answer.complete, answer.choices, answer.fault, answer.token_source) == (False, 0, None, "none")


def test_encoders_alone_generate_nothing() -> None:
    assert {name for name in DIALECTS if not generates(name)} == {"embeddings", "rerank"}
    assert generates("auto")
    assert generates("x.toml")
