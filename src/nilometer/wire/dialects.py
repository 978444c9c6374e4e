"""The table of dialects: where a request goes, how it is asked and how the answer is read. One row each."""

from __future__ import annotations

from collections.abc import Callable
from string import ascii_letters, digits
from typing import Literal, NamedTuple

from . import anthropic, chat, completions, encoders, gemini, llamacpp, ollama, responses, tgi
from .ask import Ask
from .reader import Reader

__all__ = ["DIALECTS", "Ask", "Dialect"]

BEARER = ("Authorization", "Bearer ")
_IN_PATH = frozenset(ascii_letters + digits + "-._~/:@")
OPENAI_LENGTH_FIELDS = ("ignore_eos", "min_tokens")


class Dialect(NamedTuple):
    """One way to talk to a model server.

    `path` may hold `{model}`; it lies below the `/v1` base, or below the root of the service. `stream_path` is where a
    stream is asked for, if elsewhere. `reader` takes (streamed, keep_text). `lines`: a stream is JSON lines, not an
    event stream. `key` is the header that carries an API key and what stands before the key; `headers` go with every
    request. `length_fields` make an answer as long as asked, where the server takes them; below `least_tokens` of
    output a server may refuse to be asked.
    """

    name: str
    path: str
    body: Callable[[Ask], bytes]
    reader: Callable[[bool, bool], Reader]
    base: Literal["v1", "root"] = "v1"
    stream_path: str | None = None
    method: str = "POST"
    headers: tuple[tuple[str, str], ...] = ()
    key: tuple[str, str] = BEARER
    lines: bool = False
    streams: bool = True
    whole: bool = True
    length_fields: tuple[str, ...] = ()
    least_tokens: int = 1

    def route(self, model: str | None, *, stream: bool) -> str:
        """The path, and query, of a request below the dialect's base."""
        template = self.stream_path if stream and self.stream_path is not None else self.path
        return template.replace("{model}", in_path(model or ""))


def in_path(name: str) -> str:
    """A name as part of a path; what stands for itself there stays, a slash included."""
    return "".join(chr(byte) if chr(byte) in _IN_PATH else f"%{byte:02X}" for byte in name.encode())


DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect
    for dialect in (
        Dialect("chat", "/chat/completions", chat.body, chat.reader, length_fields=OPENAI_LENGTH_FIELDS),
        Dialect(
            "completions", "/completions", completions.body, completions.reader, length_fields=OPENAI_LENGTH_FIELDS
        ),
        Dialect("responses", "/responses", responses.body, responses.reader, least_tokens=16),
        Dialect("ollama", "/api/chat", ollama.body, ollama.reader, base="root", lines=True),
        Dialect("tgi", "/generate", tgi.body, tgi.reader, base="root", stream_path="/generate_stream"),
        Dialect("llamacpp", "/completion", llamacpp.body, llamacpp.reader, base="root", length_fields=("ignore_eos",)),
        Dialect(
            "anthropic",
            "/messages",
            anthropic.body,
            anthropic.reader,
            headers=(("anthropic-version", "2023-06-01"),),
            key=("x-api-key", ""),
        ),
        Dialect(
            "gemini",
            "/v1beta/models/{model}:generateContent",
            gemini.body,
            gemini.reader,
            base="root",
            stream_path="/v1beta/models/{model}:streamGenerateContent?alt=sse",
            key=("x-goog-api-key", ""),
        ),
        Dialect("embeddings", "/embeddings", encoders.embeddings_body, encoders.reader, streams=False),
        Dialect("rerank", "/rerank", encoders.rerank_body, encoders.reader, streams=False),
    )
}
