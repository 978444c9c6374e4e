"""A model server without a socket, in place of `fetch`: it counts with a toy tokenizer and refuses as it is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec
from tests.unit.workload import toy

from nilometer.core.spec import Spec
from nilometer.load.probe_courier import Courier
from nilometer.net.endpoint import parse
from nilometer.net.fetch import Response

MS = 1_000_000


class Target(msgspec.Struct, kw_only=True):
    """One server. `refuses` are keys of a body that it answers 400 to; `log` what it was asked, in order.

    Time: `prefill_ms` a prompt token, `decode_ms` an output token; nothing passes really.
    """

    models: list[dict[str, Any]] | None = msgspec.field(default_factory=lambda: [{"id": "m", "owned_by": "toy"}])
    prefix: str = "/v1"
    apis: tuple[str, ...] = ("/chat/completions", "/completions")
    headers: dict[str, str] = {}
    template: int = 9
    tokenizer: Callable[[str], int] = toy.pieces
    tokenize: str | None = "content"
    usage: bool = True
    stream_usage: bool = True
    streams: bool = True
    refuses: tuple[str, ...] = ()
    wants: tuple[str, ...] = ()
    stops_after: int | None = None
    honours: tuple[str, ...] = ("ignore_eos",)
    pages: dict[str, Response] = {}
    first: list[Response] = []
    prefill_ms: float = 0.5
    decode_ms: float = 20.0
    log: list[tuple[str, dict[str, Any] | None]] = []
    seen_headers: list[dict[str, str]] = []

    def fetch(
        self,
        url: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        timeout_s: float = 10.0,
        insecure: bool = False,
        proxy: str | None = None,
        linger_s: float = 0.0,
    ) -> Response:
        """As `net.fetch.fetch`."""
        path = urlsplit(url).path
        asked = None if body is None else msgspec.json.decode(body)
        self.log.append((path, asked))
        self.seen_headers.append(dict(headers or {}))
        if self.first:
            return self.first.pop(0)
        if path in self.pages:
            return self.pages[path]
        if path == f"{self.prefix}/models" and self.models is not None:
            return self._json(200, {"object": "list", "data": self.models})
        if path == "/tokenize" and self.tokenize:
            return self._tokenize(asked or {})
        if path.removeprefix(self.prefix) in self.apis and path.startswith(self.prefix) and asked is not None:
            return self._generate(asked, chat=path.endswith("/chat/completions"))
        return self._json(404, {"detail": "Not Found"})

    def _json(self, status: int, value: object, elapsed_ms: float = 1.0) -> Response:
        headers = {"content-type": "application/json", **self.headers}
        return Response(status, headers, msgspec.json.encode(value), round(elapsed_ms * MS))

    def refusal(self, message: str, status: int = 400) -> Response:
        """A JSON error as OpenAI-compatible servers send it."""
        return self._json(status, {"error": {"message": message, "type": "invalid_request_error"}})

    def _tokenize(self, asked: dict[str, Any]) -> Response:
        if self.tokenize not in asked:
            # llama.cpp finds no text and counts nothing; vLLM refuses what it does not know
            return (
                self._json(200, {"tokens": []}) if self.tokenize == "content" else self.refusal("field required", 422)
            )
        number = self.tokenizer(asked[self.tokenize])
        if self.tokenize == "content":
            return self._json(200, {"tokens": list(range(number))})
        return self._json(200, {"count": number + 1, "max_model_len": 4096, "tokens": list(range(number + 1))})

    def _generate(self, asked: dict[str, Any], *, chat: bool) -> Response:
        for key in self.refuses:
            if key in asked:
                return self.refusal(f"Unsupported parameter: '{key}' is not supported, use '{'/'.join(self.wants)}'")
        if asked.get("model") not in [None, *(row["id"] for row in self.models or [{"id": "m"}])]:
            return self.refusal(f"The model `{asked['model']}` does not exist.", 404)
        prompt = asked["messages"][0]["content"] if chat else asked["prompt"]
        counted = self.tokenizer(prompt) + (self.template if chat else 0)
        limit = asked.get("max_completion_tokens") or asked["max_tokens"]
        held_on = any(asked.get(key) for key in self.honours)
        tokens = limit if held_on or self.stops_after is None else min(limit, self.stops_after)
        usage = {"prompt_tokens": counted, "completion_tokens": tokens, "total_tokens": counted + tokens}
        elapsed_ms = counted * self.prefill_ms + tokens * self.decode_ms
        if asked["stream"] and self.streams:
            return self._stream(asked, tokens, usage, elapsed_ms, chat=chat)
        choice: dict[str, Any] = {"index": 0, "finish_reason": "length"}
        choice |= {"message": {"role": "assistant", "content": "x" * tokens}} if chat else {"text": "x" * tokens}
        told = {"model": "m", "choices": [choice]} | ({"usage": usage} if self.usage else {})
        return self._json(200, told, elapsed_ms)

    def _stream(
        self, asked: dict[str, Any], tokens: int, usage: dict[str, int], elapsed_ms: float, *, chat: bool
    ) -> Response:
        matter: dict[str, Any] = {"delta": {"content": "x"}} if chat else {"text": "x"}
        frames: list[dict[str, Any]] = [{"choices": [{"index": 0, **matter, "finish_reason": None}]}] * tokens
        frames.append(
            {"choices": [{"index": 0, **({"delta": {}} if chat else {"text": ""}), "finish_reason": "length"}]}
        )
        if self.stream_usage and asked.get("stream_options", {}).get("include_usage"):
            frames.append({"choices": [], "usage": usage})
        body = b"".join(b"data: " + msgspec.json.encode(frame) + b"\n\n" for frame in frames) + b"data: [DONE]\n\n"
        return Response(200, {"content-type": "text/event-stream", **self.headers}, body, round(elapsed_ms * MS))

    @property
    def paths(self) -> list[str]:
        return [path for path, _ in self.log]

    def bodies(self, tail: str) -> list[dict[str, Any]]:
        """What was posted to paths that end so."""
        return [asked for path, asked in self.log if path.endswith(tail) and asked is not None]


def courier(target: Target, spec: Spec, address: str = "http://t:1") -> tuple[Courier, list[float]]:
    """A courier to it, and the list of the pauses that it makes."""
    pauses: list[float] = []
    way = {"timeout_s": 60.0, "ready_s": 20.0}
    return Courier(parse(address), spec.http, {}, fetch=target.fetch, wait=pauses.append, **way), pauses
