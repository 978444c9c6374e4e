"""Servers of a test that speak one API each, as far as a load test needs it: they count words and answer in words.

Each is a function of what was asked to a `Reply`, for `replay.Replay`. A prompt has a token a word, and OVERHEAD more.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tests.loopback.replay import NOT_FOUND, Exchange, Reply

OVERHEAD = 4
FIRST_MS, GAP_MS = 20.0, 4.0
Speak = Callable[[str, dict[str, Any]], Reply | None]
"""(path, body) -> the answer, None where nothing is there."""


def speaker(speak: Speak) -> Callable[[Exchange], Reply]:
    """What `Replay` takes."""

    def choose(exchange: Exchange) -> Reply:
        body = json.loads(exchange.body) if exchange.body else {}
        return speak(exchange.path, body) or NOT_FOUND

    return choose


def tokens_of(text: str) -> int:
    return len(text.split()) + OVERHEAD


def whole(value: object, ms: float = 30.0) -> Reply:
    body = json.dumps(value).encode()
    return Reply(body, ((ms, len(body)),), content_type="application/json", framing="length", ending="keep")


def stream(pieces: Iterable[str], content_type: str = "text/event-stream") -> Reply:
    """The first piece after FIRST_MS, each other one GAP_MS later."""
    sent = [piece.encode() for piece in pieces]
    schedule = tuple((FIRST_MS + GAP_MS * i, len(piece)) for i, piece in enumerate(sent))
    return Reply(b"".join(sent), schedule, content_type=content_type, ending="keep")


def sse(value: object, name: str | None = None) -> str:
    return (f"event: {name}\n" if name else "") + f"data: {json.dumps(value)}\n\n"


def refused(body: dict[str, Any], *known: str) -> Reply | None:
    """A 400 where the body has a field that is not known, as the services of the vendors answer it."""
    strange = sorted(body.keys() - known)
    if not strange:
        return None
    error = {"type": "error", "error": {"message": f"{strange[0]}: Extra inputs are not permitted"}}
    data = json.dumps(error).encode()
    return Reply(data, status=400, content_type="application/json", framing="length", ending="keep")


def ollama(path: str, body: dict[str, Any]) -> Reply | None:
    if path == "/api/tags":
        return whole({"models": [{"name": "reed:latest", "model": "reed:latest"}]})
    if path != "/api/chat":
        return None
    assert body["model"] == "reed:latest"
    n = body["options"]["num_predict"]
    counts = {"prompt_eval_count": tokens_of(body["messages"][0]["content"]), "eval_count": n}
    end = {"done": True, "done_reason": "length", **counts, "eval_duration": 5_000_000}
    if not body["stream"]:
        return whole({"model": "reed", "message": {"content": "mud " * n}, **end})
    lines = [{"model": "reed", "message": {"content": "mud "}, "done": False} for _ in range(n)]
    told = [*lines, {"model": "reed", "message": {"content": ""}, **end}]
    return stream([json.dumps(line) + "\n" for line in told], "application/x-ndjson")


def tgi(path: str, body: dict[str, Any]) -> Reply | None:
    if path == "/info":
        return whole({"model_id": "org/reed", "max_total_tokens": 4096})
    if path == "/tokenize":
        tokens = [{"id": i, "text": word} for i, word in enumerate(body.get("inputs", "").split())]
        return whole(tokens) if tokens else None
    if path not in ("/generate", "/generate_stream"):
        return None
    n = body["parameters"]["max_new_tokens"]
    details = {"finish_reason": "length", "generated_tokens": n}
    if path == "/generate":
        return whole({"generated_text": "mud " * n, "details": details})
    details["input_length"] = len(body["inputs"].split())  # a whole answer does not tell it
    events: list[dict[str, Any]] = [{"index": i, "token": {"text": "mud ", "special": False}} for i in range(n)]
    events[-1] |= {"generated_text": "mud " * n, "details": details}
    return stream([sse(event).replace("data: ", "data:") for event in events])


def gemini(path: str, body: dict[str, Any]) -> Reply | None:
    if not path.startswith("/v1beta/models/reed:"):
        return None
    if strange := refused(body, "contents", "generationConfig", "systemInstruction"):
        return strange
    n = body["generationConfig"]["maxOutputTokens"]
    prompt = tokens_of(body["contents"][0]["parts"][0]["text"])

    def chunk(text: str, count: int, finish: str | None) -> dict[str, Any]:
        candidate = {"content": {"parts": [{"text": text}]}, "finishReason": finish}
        counts = {"promptTokenCount": prompt, "candidatesTokenCount": count}
        return {"candidates": [candidate], "usageMetadata": counts}

    if path.endswith(":generateContent"):
        return whole(chunk("mud " * n, n, "MAX_TOKENS"))
    assert path.endswith(":streamGenerateContent?alt=sse")
    return stream([sse(chunk("mud ", i + 1, "MAX_TOKENS" if i + 1 == n else None)) for i in range(n)])


def anthropic(path: str, body: dict[str, Any]) -> Reply | None:
    if path == "/v1/models":
        return whole({"data": [{"type": "model", "id": "reed"}], "has_more": False})
    if path != "/v1/messages":
        return None
    if strange := refused(body, "model", "messages", "max_tokens", "stream", "temperature", "top_p", "system"):
        return strange
    n, prompt = body["max_tokens"], tokens_of(body["messages"][0]["content"])
    message: dict[str, Any] = {"id": "m1", "type": "message", "model": "reed", "content": []}
    if not body["stream"]:
        usage = {"input_tokens": prompt, "output_tokens": n}
        content = [{"type": "text", "text": "mud " * n}]
        return whole({**message, "content": content, "stop_reason": "max_tokens", "usage": usage})
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "mud "}}
    start = {"type": "message_start", "message": {**message, "usage": {"input_tokens": prompt, "output_tokens": 1}}}
    end = {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": n}}
    events: list[dict[str, Any]] = [start, *[delta] * n, end, {"type": "message_stop"}]
    return stream([sse(event, str(event["type"])) for event in events])


def responses(path: str, body: dict[str, Any]) -> Reply | None:
    if path != "/v1/responses":
        return None
    known = ("model", "input", "max_output_tokens", "stream", "temperature", "top_p", "store")
    if strange := refused(body, *known):
        return strange
    n = body["max_output_tokens"]
    told: dict[str, Any] = {"id": "r1", "model": "reed", "status": "incomplete"}
    told["incomplete_details"] = {"reason": "max_output_tokens"}
    told["usage"] = {"input_tokens": tokens_of(body["input"]), "output_tokens": n}
    if not body["stream"]:
        item = {"type": "message", "content": [{"type": "output_text", "text": "mud " * n}]}
        return whole({**told, "output": [item]})
    deltas = [{"type": "response.output_text.delta", "delta": "mud ", "sequence_number": i} for i in range(n)]
    return stream([sse(event) for event in [*deltas, {"type": "response.incomplete", "response": told}]])


def encoder(path: str, body: dict[str, Any]) -> Reply | None:
    if path == "/v1/embeddings":
        usage = {"prompt_tokens": tokens_of(body["input"]), "total_tokens": tokens_of(body["input"])}
        return whole({"data": [{"embedding": [0.5] * 64}], "model": "reed", "usage": usage})
    if path == "/v1/rerank":
        usage = {"total_tokens": tokens_of(body["query"]) + tokens_of(body["documents"][0])}
        return whole({"results": [{"index": 0, "relevance_score": 0.5}], "model": "reed", "usage": usage})
    return None


def azure(path: str, body: dict[str, Any]) -> Reply | None:
    """A deployment: chat beside no `/v1`, with the version in the query."""
    if path != "/openai/deployments/reed/chat/completions?api-version=2024-10-21":
        return None
    known = ("messages", "max_tokens", "stream", "stream_options", "temperature", "top_p", "seed")
    if strange := refused(body, "model", *known):
        return strange
    filters: dict[str, Any] = {"id": "", "model": "", "choices": [], "prompt_filter_results": []}
    return _chosen(body, tokens_of(body["messages"][0]["content"]), {"delta": {"content": "mud "}}, [filters])


def chat(path: str, body: dict[str, Any]) -> Reply | None:
    if path == "/v1/models":
        return whole({"data": [{"id": "reed"}]})
    if path != "/v1/chat/completions":
        return None
    return _chosen(body, tokens_of(body["messages"][0]["content"]), {"delta": {"content": "mud "}})


def completions(path: str, body: dict[str, Any]) -> Reply | None:
    return _chosen(body, tokens_of(body["prompt"]), {"text": "mud "}) if path == "/v1/completions" else None


def _chosen(body: dict[str, Any], prompt: int, piece: dict[str, Any], ahead: Sequence[dict[str, Any]] = ()) -> Reply:
    """An answer of OpenAI's shape, `piece` of a choice in each of its frames, other frames ahead of them."""
    n = body["max_tokens"]
    usage = {"prompt_tokens": prompt, "completion_tokens": n}
    told: dict[str, Any] = {"id": "c", "model": "reed"}
    if not body["stream"]:
        said = {"text": "mud " * n} if "text" in piece else {"message": {"content": "mud " * n}}
        return whole({**told, "choices": [{"index": 0, **said, "finish_reason": "length"}], "usage": usage})
    last = {name: type(part)() for name, part in piece.items()}
    frame = {**told, "choices": [{"index": 0, **piece, "finish_reason": None}]}
    end = {**told, "choices": [{"index": 0, **last, "finish_reason": "length"}]}
    events = [*ahead, *[frame] * n, end, {**told, "choices": [], "usage": usage}]
    return stream([*(sse(event) for event in events), "data: [DONE]\n\n"])


def llamacpp(path: str, body: dict[str, Any]) -> Reply | None:
    if path == "/props":
        return whole({"model_path": "reed.gguf"})
    if path != "/completion":
        return None
    n, prompt = body["n_predict"], tokens_of(body["prompt"])

    def told(count: int, content: str, stop: bool) -> dict[str, Any]:
        counts = {"tokens_predicted": count, "tokens_evaluated": prompt}
        return {"index": 0, "content": content, "stop": stop, "stop_type": "limit" if stop else None, **counts}

    if not body["stream"]:
        return whole(told(n, "mud " * n, True))
    return stream([sse(event) for event in [*(told(i + 1, "mud ", False) for i in range(n)), told(n, "", True)]])


def reed(path: str, body: dict[str, Any]) -> Reply | None:
    """The service with a protocol of its own that the page on other protocols describes."""
    if path != "/v2/reed/say":
        return None
    assert body["settings"]["heat"] == 0.0
    n, prompt = body["settings"]["limit"], tokens_of(body["query"])
    if not body["live"]:
        return whole({"answer": "mud " * n, "why": "limit", "used": {"in": prompt, "out": n}})
    events = [{"out": [{"piece": "mud "}], "used": {"in": prompt, "out": i + 1}} for i in range(n)]
    return stream([sse(event) for event in [*events[:-1], {**events[-1], "why": "limit"}]])
