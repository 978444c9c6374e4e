"""The dialect of Gemini: `:streamGenerateContent?alt=sse` and `:generateContent`, the same shape streamed and whole.

There is no end mark: an answer is complete when every candidate has its finish reason. Counts run along; thoughts are
counted apart from the answer and belong to the output here.
"""

from __future__ import annotations

from typing import Any

import msgspec

from .ask import SYSTEM, Ask, Turn, written
from .frame import shape
from .matter import ANSWER, REASONING
from .native import NativeFrame, NativeTally
from .reader import Reader, reader_of


class FunctionCall(msgspec.Struct, gc=False):
    """A tool call, always whole."""

    name: str | None = None
    args: Any = None


class Part(msgspec.Struct, gc=False):
    """A piece of content; `thought` says that its text is a thought, `code` and `data` are generated but no text."""

    text: str | None = None
    thought: bool = False
    call: FunctionCall | None = msgspec.field(name="functionCall", default=None)
    code: object = msgspec.field(name="executableCode", default=None)
    data: object = msgspec.field(name="inlineData", default=None)


class Content(msgspec.Struct, gc=False):
    """What a frame adds to a candidate."""

    parts: list[Part] | None = None


class Candidate(msgspec.Struct, gc=False, rename="camel"):
    """One of the answers."""

    index: int = 0
    content: Content | None = None
    finish_reason: str | None = None


class UsageMetadata(msgspec.Struct, gc=False, rename="camel"):
    """`usageMetadata`: totals so far."""

    prompt_token_count: int | None = None
    cached_content_token_count: int | None = None
    candidates_token_count: int | None = None
    thoughts_token_count: int | None = None

    @property
    def output(self) -> int | None:
        """All that was generated; None where nothing is stated of it."""
        parts = [count for count in (self.candidates_token_count, self.thoughts_token_count) if count is not None]
        return sum(parts) if parts else None


class Feedback(msgspec.Struct, gc=False, rename="camel"):
    """What is said of a prompt that is not answered."""

    block_reason: str | None = None


class Response(NativeFrame, gc=False, rename="camel"):
    """One event of a stream, and a whole answer."""

    candidates: list[Candidate] | None = None
    usage_metadata: UsageMetadata | None = None
    prompt_feedback: Feedback | None = None
    model_version: object = None
    response_id: object = None


_RESPONSE = shape(Response)


class GeminiTally(NativeTally[Response, Response]):
    """Counts candidates."""

    _calls = 0

    def read(self, frame: Response) -> int:
        """Count what a frame holds; the bits of its matter."""
        self.name(frame.response_id, frame.model_version)
        if frame.usage_metadata is not None:
            counts = frame.usage_metadata
            self.counts.state(
                prompt=counts.prompt_token_count,
                output=counts.output,
                cached=counts.cached_content_token_count,
                reasoning=counts.thoughts_token_count,
            )
        if frame.prompt_feedback is not None and frame.prompt_feedback.block_reason:
            self.mark(0, "content_filter")
        matter = 0
        for candidate in frame.candidates or ():
            matter |= self._candidate(candidate)
        return matter

    def stated(self, frame: Response) -> int:
        """Tokens that the server states for a frame with matter; -1 unknown."""
        counts = frame.usage_metadata
        return -1 if counts is None else self.counts.of_frame(len(self.tokens), counts.output)

    def _candidate(self, candidate: Candidate) -> int:
        self.mark(candidate.index, candidate.finish_reason)
        matter = 0
        for part in (candidate.content.parts if candidate.content else None) or ():
            if part.text:
                matter |= self.say(candidate.index, REASONING if part.thought else ANSWER, part.text)
            if part.code or part.data:
                matter |= ANSWER
            if part.call is not None:
                arguments = msgspec.json.encode(part.call.args).decode()
                matter |= self.call(candidate.index, self._calls, part.call.name or "", arguments)
                self._calls += 1
        return matter


def _content(turn: Turn) -> dict[str, object]:
    return {"role": "model" if turn.role == "assistant" else "user", "parts": [{"text": turn.text}]}


def body(ask: Ask) -> bytes:
    """The request's JSON body; the model and whether to stream stand in the path."""
    said = [*ask.turns, Turn("user", ask.prompt)]
    system = ask.system()
    return written(
        ask,
        {
            "contents": [_content(turn) for turn in said if turn.role != SYSTEM],
            "systemInstruction": {"parts": [{"text": system}]} if system else None,
            "generationConfig": {
                "maxOutputTokens": ask.max_tokens,
                "temperature": ask.temperature,
                "topP": ask.top_p,
                "seed": ask.seed,
            },
        },
    )


def reader(event_stream: bool, keep_text: bool) -> Reader:
    """A fresh reader of one response body."""
    return reader_of(GeminiTally(_RESPONSE, _RESPONSE, keep_text), event_stream)
