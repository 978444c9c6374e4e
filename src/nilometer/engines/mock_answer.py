"""The bytes a mock server answers with and when each piece is due. Pure: times are offsets from the start of service.

A stream is a lazy sequence of steps, so that a long answer is not built in one go between two reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import msgspec

from nilometer.core.clock import NS_PER_MS

from .mock_ask import Ask, Refusal
from .mock_script import Fault, Length, Script, draw_length, paced

CREATED_S = 1_760_000_000
WORDS = ("the", "river", "rises", "and", "a", "stone", "keeps", "its", "level", "for", "those", "who", "come", "after")
MIB = 1 << 20
COMMENT_EVERY = 8

Then = Literal["next", "close", "hang"]


class Step(NamedTuple):
    """One write: due `at_ns` after the start of service, carrying `tokens` (0 = no generated matter).

    `gaps`: from one token to the next since the step before, for as long as other requests may lengthen them.
    `then`: go on with the next step, close the connection, or stay silent for ever.
    """

    at_ns: int
    payload: bytes
    tokens: int = 0
    then: Then = "next"
    gaps: int = 0


class Answer(NamedTuple):
    """What one request gets: its status line's code, its steps, and what the truth log says of it."""

    status: int
    steps: Iterator[Step]
    reasoning_tokens: int = 0


_REASONS = {200: "OK", 204: "No Content", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found"}
_REASONS |= {405: "Method Not Allowed", 413: "Content Too Large", 429: "Too Many Requests"}
_REASONS |= {500: "Internal Server Error", 503: "Service Unavailable", 504: "Gateway Timeout"}


def head(
    status: int,
    content_type: str,
    request_id: str | None = None,
    length: int | None = None,
    more: Sequence[str] = (),
    chunked: bool = True,
) -> bytes:
    """Response headers; where no `length` is given the body comes in chunks, or up to the end of the connection."""
    lines = [
        f"HTTP/1.1 {status} {_REASONS.get(status, 'Unknown')}",
        "server: nilo-mock",
        f"content-type: {content_type}",
    ]
    if request_id:
        lines.append(f"x-request-id: {request_id}")
    lines.extend(more)
    if length is not None:
        lines.append(f"content-length: {length}")
    elif chunked:
        lines.append("transfer-encoding: chunked")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def whole(
    status: int, content_type: str, body: bytes, request_id: str | None = None, more: Sequence[str] = ()
) -> bytes:
    """A whole response with its length."""
    return head(status, content_type, request_id, len(body), more) + body


def refusal(fault: Refusal, request_id: str | None = None) -> bytes:
    """The JSON error of a refused request."""
    return error(fault.status, fault.message, fault.kind, request_id)


def error(status: int, message: str, kind: str, request_id: str | None = None, more: Sequence[str] = ()) -> bytes:
    """A JSON error object as OpenAI-compatible servers send it."""
    body = msgspec.json.encode({"error": {"message": message, "type": kind, "param": None, "code": status}})
    return whole(status, "application/json", body, request_id, more)


def chunk(data: bytes) -> bytes:
    """One piece of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


END = b"0\r\n\r\n"


def prompt_tokens(script: Script, ask: Ask) -> int:
    """Input tokens of a request: its words, and for chat what the template adds."""
    return ask.words + (script.template_tokens if ask.chat else 0)


def answer(script: Script, ask: Ask, number: int, request_id: str, fault: Fault | None) -> Answer:
    """The steps of request `number`; offsets from the start of service."""
    if fault is not None and fault.kind in _AT_ONCE:
        return _at_once(script, ask, request_id, fault)
    writer = Writer(paced(script, number), ask, number, request_id)
    if not ask.stream:
        return Answer(200, _whole_steps(writer, fault), writer.reasoning_tokens)
    steps = writer.steps() if fault is None else _broken(writer, fault)
    return Answer(200, steps, writer.reasoning_tokens)


# --- faults without a stream -------------------------------------------------------------------------------------

_AT_ONCE = {
    "http_400": 400,
    "http_429": 429,
    "http_500": 500,
    "http_503": 503,
    "html200": 200,
    "noise": 0,
    "drop": 0,
    "mute": 0,
}


def _at_once(script: Script, ask: Ask, request_id: str, fault: Fault) -> Answer:
    status = _AT_ONCE[fault.kind]
    at_ns = 0 if status in (400, 429) else script.first_token_ns(prompt_tokens(script, ask))
    return Answer(status, iter([_single(at_ns, status, request_id, fault)]))


def _single(at_ns: int, status: int, request_id: str, fault: Fault) -> Step:
    if fault.kind == "drop":
        return Step(at_ns, b"", then="close")
    if fault.kind == "mute":
        return Step(0, b"", then="hang")
    if fault.kind == "noise":
        return Step(at_ns, bytes(range(128, 256)) + b"\n", then="close")
    if fault.kind == "html200":
        page = b"<!DOCTYPE html><html><head><title>Gateway</title></head><body>Please log in.</body></html>"
        return Step(at_ns, whole(200, "text/html; charset=utf-8", page, request_id))
    more = [f"retry-after: {fault.after}"] if fault.kind == "http_429" else []
    kind = "rate_limit_exceeded" if fault.kind == "http_429" else "scripted_fault"
    return Step(at_ns, error(status, f"scripted {fault.kind}", kind, request_id, more))


# --- streams -----------------------------------------------------------------------------------------------------


class Writer:
    """Builds the pieces of one answer. Fixed parts of a frame are made once."""

    def __init__(self, script: Script, ask: Ask, number: int, request_id: str) -> None:
        self.script = script
        self.ask = ask
        self.request_id = request_id
        self.prompt_tokens = prompt_tokens(script, ask)
        self.length: Length = draw_length(script, number, ask.limit, ask.ignore_eos, ask.min_tokens)
        self.reasoning_tokens = min(script.reasoning_tokens, self.length.tokens) if ask.chat else 0
        self.cached_tokens: int | None = None
        """Prompt tokens taken from a cache; None where there is none, or it is not known yet."""
        self.first_ns = script.first_token_ns(self.prompt_tokens)
        model = msgspec.json.encode(ask.model or script.models[0]).decode()
        kind = "chat.completion.chunk" if ask.chat else "text_completion"
        self._opening = f'{{"id":"{request_id}","object":"{kind}","created":{CREATED_S},"model":{model},"choices":['
        self._newline = "\r\n" if script.crlf else "\n"

    def head(self, more: Sequence[str] = ()) -> bytes:
        """The response headers of a stream."""
        told = ["cache-control: no-cache", *more, *([] if self.ask.chunked else ["connection: close"])]
        return head(200, "text/event-stream; charset=utf-8", self.request_id, more=told, chunked=self.ask.chunked)

    def piece(self, data: bytes) -> bytes:
        """Of the body, as the client can read it."""
        return chunk(data) if self.ask.chunked else data

    def event(self, data: str) -> bytes:
        """One event, as a piece of the body."""
        return self.piece(f"data: {data}{self._newline}{self._newline}".encode())

    def comment(self) -> bytes:
        """A line that says nothing."""
        return self.piece(f": keep-alive{self._newline}{self._newline}".encode())

    def role(self) -> bytes:
        """The empty frame in front of the first token of a chat."""
        delta = '{"role":"assistant","content":""}'
        return self.event(f'{self._opening}{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":null}}]}}')

    def frame(self, first: int, count: int) -> bytes:
        """The frame with tokens `first` .. `first + count - 1`."""
        text = "".join(WORDS[i % len(WORDS)] + " " for i in range(first, first + count))
        usage = f',"usage":{self.usage(first + count)}' if self.script.usage == "running" else ""
        return self.event(f"{self._opening}{self._choice(first, text)}]{usage}}}")

    def _choice(self, first: int, text: str) -> str:
        if not self.ask.chat:
            return f'{{"index":0,"text":"{text}","logprobs":null,"finish_reason":null}}'
        field = self.script.reasoning_field if first < self.reasoning_tokens else "content"
        return f'{{"index":0,"delta":{{"{field}":"{text}"}},"logprobs":null,"finish_reason":null}}'

    def usage(self, tokens: int) -> str:
        """Usage object after `tokens` output tokens."""
        counts = f'"prompt_tokens":{self.prompt_tokens},"completion_tokens":{tokens}'
        total = f'"total_tokens":{self.prompt_tokens + tokens}'
        if self.cached_tokens is not None:
            total += f',"prompt_tokens_details":{{"cached_tokens":{self.cached_tokens}}}'
        if not self.reasoning_tokens:
            return f"{{{counts},{total}}}"
        thought = min(tokens, self.reasoning_tokens)
        return f'{{{counts},{total},"completion_tokens_details":{{"reasoning_tokens":{thought}}}}}'

    def tail(self) -> bytes:
        """Finish frame, usage as scripted, end mark, end of the body."""
        matter = '"delta":{}' if self.ask.chat else '"text":""'
        told = f',"usage":{self.usage(self.length.tokens)}' if self.script.usage in ("finish", "running") else ""
        reason = f'"logprobs":null,"finish_reason":"{self.length.finish_reason}"'
        finish = f'{self._opening}{{"index":0,{matter},{reason}}}]{told}}}'
        parts = [self.event(finish)]
        if self.script.usage == "own" and self.ask.include_usage:
            parts.append(self.event(f'{self._opening}],"usage":{self.usage(self.length.tokens)}}}'))
        return b"".join([*parts, self.event("[DONE]"), END if self.ask.chunked else b""])

    def whole(self) -> bytes:
        """The body of a whole answer."""
        thought, total = self.reasoning_tokens, self.length.tokens
        choice: dict[str, object] = {"index": 0, "logprobs": None, "finish_reason": self.length.finish_reason}
        if self.ask.chat:
            message: dict[str, object] = {"role": "assistant", "content": _text(thought, total)}
            if thought:
                message[self.script.reasoning_field] = _text(0, thought)
            choice["message"] = message
        else:
            choice["text"] = _text(0, total)
        told: dict[str, object] = {
            "id": self.request_id,
            "object": "chat.completion" if self.ask.chat else "text_completion",
            "created": CREATED_S,
            "model": self.ask.model or self.script.models[0],
            "choices": [choice],
        }
        if self.script.usage != "none":
            told["usage"] = msgspec.Raw(self.usage(total).encode())
        return msgspec.json.encode(told)

    def opening_steps(self) -> Iterator[Step]:
        """Headers, comments and the role frame."""
        script = self.script
        role_at_ns = self.first_ns
        if script.role_lead_ms is not None:
            role_at_ns = max(0, self.first_ns - round(script.role_lead_ms * NS_PER_MS))
        opening = self.head() + (self.comment() if script.comments else b"")
        if script.late_headers:
            yield Step(role_at_ns, opening + (self.role() if self._has_role else b""))
            return
        yield Step(0, opening)
        if self._has_role:
            yield Step(role_at_ns, self.role())

    @property
    def _has_role(self) -> bool:
        return self.ask.chat and self.script.role_lead_ms is not None

    def matter(self, first: int, count: int) -> bytes:
        """Tokens that come together, in one frame, or two at the border of reasoning and answer."""
        inside = self.reasoning_tokens - first
        if 0 < inside < count:
            return self.frame(first, inside) + self.frame(first + inside, count - inside)
        return self.frame(first, count)

    def frame_spans(self, stop_at: int) -> Iterator[tuple[int, int]]:
        """(first token, tokens) of each frame with matter; a frame holds reasoning or answer, never both."""
        first = 0
        while first < stop_at:
            border = self.reasoning_tokens if first < self.reasoning_tokens else stop_at
            count = min(self.script.tokens_per_frame, border - first, stop_at - first)
            yield first, count
            first += count

    def frame_steps(self, stop_at: int) -> Iterator[Step]:
        """Frames with matter until `stop_at` tokens are out, each due when its first token is."""
        written = 0
        for number, (first, count) in enumerate(self.frame_spans(stop_at)):
            commented = self.script.comments and number and number % COMMENT_EVERY == 0
            payload = (self.comment() if commented else b"") + self.frame(first, count)
            yield Step(self.first_ns + first * self.script.gap_ns, payload, count, gaps=written)
            written = count

    def last_ns(self, tokens: int) -> int:
        """When the last frame of `tokens` tokens is due; the first token's time for none."""
        first = max((first for first, _ in self.frame_spans(tokens)), default=0)
        return self.first_ns + first * self.script.gap_ns

    def steps(self) -> Iterator[Step]:
        """A sound stream."""
        yield from self.opening_steps()
        yield from self.frame_steps(self.length.tokens)
        yield Step(self.last_ns(self.length.tokens), self.tail())


def _broken(writer: Writer, fault: Fault) -> Iterator[Step]:
    """A stream that goes wrong after some tokens, as the fault says."""
    if fault.kind == "drip":
        yield from _drip(writer, fault.after * NS_PER_MS)
        return
    yield from writer.opening_steps()
    if fault.kind == "flood":
        yield from _flood(writer, fault.after)
        return
    stop_at = min(fault.after, max(0, writer.length.tokens - 1))
    yield from writer.frame_steps(stop_at)
    at_ns = writer.last_ns(stop_at) + (writer.script.gap_ns if stop_at else 0)
    if fault.kind == "cut":
        yield Step(at_ns, b"", then="close")
    elif fault.kind == "stall":
        yield Step(at_ns, b"", then="hang")
    elif fault.kind == "stream_error":
        told = '{"error":{"message":"scripted stream_error","type":"InternalServerError","code":500}}'
        yield Step(at_ns, writer.event(told) + writer.event("[DONE]") + END)
    else:
        yield Step(at_ns, writer.event('{"id":"mock, "choices":[{"delta":{{{') + END)


def _drip(writer: Writer, every_ns: int) -> Iterator[Step]:
    yield Step(0, writer.head())
    at_ns = 0
    for step in writer.frame_steps(writer.length.tokens):
        for byte in step.payload:
            at_ns += every_ns
            yield Step(at_ns, bytes((byte,)))
    yield Step(at_ns, writer.tail())


def _flood(writer: Writer, mib: int) -> Iterator[Step]:
    yield Step(writer.first_ns, chunk(b'data: {"id":"'))
    piece = chunk(b"x" * MIB)
    for _ in range(mib):
        yield Step(writer.first_ns, piece)
    yield Step(writer.first_ns, END)


# --- whole answers -----------------------------------------------------------------------------------------------


def _whole_steps(writer: Writer, fault: Fault | None) -> Iterator[Step]:
    """One write when the last token would be due. Faults inside a stream become their nearest whole form."""
    at_ns = writer.first_ns + (writer.length.tokens - 1) * writer.script.gap_ns
    body = writer.whole()
    full = whole(200, "application/json", body, writer.request_id)
    if fault is None:
        yield from _decoding(writer)
        yield Step(at_ns, full, writer.length.tokens)
    elif fault.kind == "cut":
        yield Step(at_ns, full[: -(len(body) // 2)], then="close")
    elif fault.kind == "stream_error":
        told = b'{"error":{"message":"scripted stream_error","type":"InternalServerError","code":500}}'
        yield Step(at_ns, whole(200, "application/json", told, writer.request_id))
    elif fault.kind == "garbage":
        yield Step(at_ns, whole(200, "application/json", b'{"id":"mock, "choices":[{{', writer.request_id))
    else:
        yield Step(at_ns, full[: -(len(body) // 2)], then="hang")


def _decoding(writer: Writer) -> Iterator[Step]:
    """Where others slow the decoding down, each token is waited for: they come and go meanwhile."""
    if writer.script.gap_ms_per_stream:
        for token in range(writer.length.tokens):
            yield Step(writer.first_ns + token * writer.script.gap_ns, b"", gaps=min(token, 1))


def _text(first: int, stop: int) -> str:
    return "".join(WORDS[i % len(WORDS)] + " " for i in range(first, stop))
