"""The table of dialects: where a request goes, how it is asked and how the answer is read. One row each."""

from __future__ import annotations

from typing import Any

from . import anthropic, chat, completions, custom, encoders, gemini, llamacpp, ollama, responses, tgi
from .ask import Ask
from .dialect import Dialect, Key

__all__ = ["DIALECTS", "Ask", "Dialect", "generates", "spoken"]

_BOTH, _ONE = ("ignore_eos", "min_tokens"), ("ignore_eos",)

DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect
    for dialect in (
        Dialect(
            "chat",
            "/chat/completions",
            chat.body,
            chat.reader,
            asks_usage=True,
            length_fields=_BOTH,
            known_fields=_BOTH,
        ),
        Dialect(
            "completions",
            "/completions",
            completions.body,
            completions.reader,
            asks_usage=True,
            length_fields=_BOTH,
            known_fields=_BOTH,
        ),
        Dialect("responses", "/responses", responses.body, responses.reader, length_fields=_ONE, least_tokens=16),
        Dialect("ollama", "/api/chat", ollama.body, ollama.reader, base="root", lines=True),
        Dialect("tgi", "/generate", tgi.body, tgi.reader, base="root", stream_path="/generate_stream"),
        Dialect(
            "llamacpp",
            "/completion",
            llamacpp.body,
            llamacpp.reader,
            base="root",
            length_fields=_ONE,
            known_fields=_ONE,
        ),
        Dialect(
            "anthropic",
            "/messages",
            anthropic.body,
            anthropic.reader,
            headers=(("anthropic-version", "2023-06-01"),),
            length_fields=_ONE,
            key=Key("x-api-key"),
        ),
        Dialect(
            "gemini",
            "/v1beta/models/{model}:generateContent",
            gemini.body,
            gemini.reader,
            base="root",
            stream_path="/v1beta/models/{model}:streamGenerateContent?alt=sse",
            key=Key("x-goog-api-key"),
        ),
        Dialect("embeddings", "/embeddings", encoders.embeddings_body, encoders.reader, streams=False, generates=False),
        Dialect("rerank", "/rerank", encoders.rerank_body, encoders.reader, streams=False, generates=False),
    )
}


def generates(api: str) -> bool:
    """Whether an answer of this API has output tokens; one not in the table (`auto`, a protocol's file) has."""
    return api not in DIALECTS or DIALECTS[api].generates


def spoken(api: str, protocol: dict[str, Any]) -> Dialect:
    """The dialect of this name; that of the protocol where one is given. SpecError `toml_key` for what is none."""
    return custom.dialect(custom.from_tree(protocol, api), api) if protocol else DIALECTS[api]
