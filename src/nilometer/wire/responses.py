"""The dialect of OpenAI's `/v1/responses`: an input asked, typed events read.

Only `delta` events and the beginning of a tool call are generated matter: the `done` events repeat it. A summary of
thoughts is shown matter, but the thoughts that are counted stay hidden behind it. Events of unknown types say nothing.
"""

from __future__ import annotations

import msgspec

from .ask import Ask, written
from .frame import shape, words_of
from .matter import ANSWER, REASONING
from .native import NativeFrame, NativeTally
from .reader import Reader, reader_of
from .usage import OutputDetails, PromptDetails


class Usage(msgspec.Struct, gc=False):
    """Counts."""

    input_tokens: int | None = None
    input_tokens_details: PromptDetails | None = None
    output_tokens: int | None = None
    output_tokens_details: OutputDetails | None = None


class Incomplete(msgspec.Struct, gc=False):
    """Why a response is not complete."""

    reason: str | None = None


class Part(msgspec.Struct, gc=False):
    """A part of an item: text, a refusal, a thought or a summary of thoughts."""

    kind: str = msgspec.field(name="type", default="")
    text: str | None = None
    refusal: str | None = None


class Item(msgspec.Struct, gc=False):
    """A message, a tool call or thoughts; in a stream its beginning."""

    kind: str = msgspec.field(name="type", default="")
    name: str | None = None
    arguments: object = None
    input: object = None
    content: list[Part] | None = None
    summary: list[Part] | None = None


class State(NativeFrame, gc=False):
    """A response as far as it is, its output left out: the events repeat it."""

    id: object = None
    model: object = None
    status: str | None = None
    incomplete_details: Incomplete | None = None
    usage: Usage | None = None


class Whole(State, gc=False):
    """A whole answer."""

    output: list[Item] | None = None


class Event(NativeFrame, gc=False):
    """One event of a stream."""

    kind: str = msgspec.field(name="type", default="")
    delta: object = None
    output_index: int = 0
    item: Item | None = None
    response: State | None = None
    message: object = None
    timings: object = None


_EVENT, _WHOLE = shape(Event), shape(Whole)
_DELTAS = {
    "response.output_text.delta": ANSWER,
    "response.refusal.delta": ANSWER,
    "response.reasoning_text.delta": REASONING,
    "response.reasoning_summary_text.delta": REASONING,
}
_STATES = frozenset(
    f"response.{state}" for state in ("created", "in_progress", "completed", "incomplete", "failed", "cancelled")
)
_ARGUMENTS = frozenset(
    f"response.{part}.delta"
    for part in (
        *("function_call_arguments", "custom_tool_call_input", "mcp_call_arguments"),
        "code_interpreter_call_code",
    )
)
_GIVEN_UP = frozenset({"failed", "cancelled"})
_BEGUN = frozenset({"queued", "in_progress"})


class ResponseTally(NativeTally[Event, Whole]):
    """Counts events of a response."""

    kinds = frozenset({*_DELTAS, *_ARGUMENTS, *_STATES, "response.output_item.added", "error"})

    def read(self, frame: Event) -> int:
        """Count what an event holds; the bits of its matter."""
        if frame.kind == "error":
            self.fail("stream_error", words_of(frame.message))
        if isinstance(frame.delta, str) and frame.delta:
            return self._delta(frame.kind, frame.output_index, frame.delta)
        if frame.kind == "response.output_item.added" and frame.item is not None and frame.item.name:
            return self.call(0, frame.output_index, frame.item.name, "")
        if frame.timings is not None:
            self.timings = frame.timings
        if frame.kind in _STATES and frame.response is not None:
            self._state(frame.response)
        return 0

    def read_whole(self, whole: Whole) -> None:
        """Count what a whole answer holds."""
        if whole.output is None or whole.status in _BEGUN:
            return
        self._state(whole)
        for index, item in enumerate(whole.output):
            if item.name:
                given = item.arguments or item.input
                self.call(0, index, item.name, given if isinstance(given, str) else "")
            for part in (*(item.content or ()), *(item.summary or ())):
                self._part(part)

    def _delta(self, kind: str, index: int, text: str) -> int:
        if kind in _ARGUMENTS:
            return self.call(0, index, "", text)
        matter = _DELTAS.get(kind, 0)
        return self._said(matter, text, summary="summary" in kind) if matter else 0

    def _part(self, part: Part) -> None:
        text = part.text or part.refusal
        if text:
            thought = part.kind in ("reasoning_text", "summary_text")
            self._said(REASONING if thought else ANSWER, text, summary=part.kind == "summary_text")

    def _said(self, matter: int, text: str, *, summary: bool) -> int:
        reasoned = self.reasoned
        self.say(0, matter, text)
        if summary:
            self.reasoned = reasoned
        return matter

    def _state(self, state: State) -> None:
        self.name(state.id, state.model)
        self.mark(0, None)
        if state.usage is not None:
            self._count(state.usage)
        if state.status == "incomplete":
            self.mark(0, (state.incomplete_details and state.incomplete_details.reason) or "incomplete")
        elif state.status == "completed" or state.status in _GIVEN_UP:
            self.mark(0, state.status)
        if state.status in _GIVEN_UP or state.error:
            self.fail("stream_error", words_of(state.error) or state.status)

    def _count(self, usage: Usage) -> None:
        read, made = usage.input_tokens_details, usage.output_tokens_details
        self.counts.state(
            prompt=usage.input_tokens,
            output=usage.output_tokens,
            cached=None if read is None else read.cached_tokens,
            reasoning=None if made is None else made.reasoning_tokens,
        )


def body(ask: Ask) -> bytes:
    """The request's JSON body; the API knows no seed. The server is asked to keep nothing."""
    return written(
        ask,
        {
            "model": ask.model,
            "input": ask.messages() if ask.turns else ask.prompt,
            "max_output_tokens": ask.max_tokens,
            "stream": ask.stream,
            "temperature": ask.temperature,
            "top_p": ask.top_p,
            "store": False,
        },
    )


def reader(event_stream: bool, keep_text: bool) -> Reader:
    """A fresh reader of one response body."""
    return reader_of(ResponseTally(_EVENT, _WHOLE, keep_text), event_stream)
