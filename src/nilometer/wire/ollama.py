"""The dialect of Ollama's own `/api/chat`: one user message asked, a JSON line for each piece of the answer read.

Its counts and durations leave a zero out, so what is absent is unknown; a cached prompt loses its count so.
"""

from __future__ import annotations

from typing import Any

import msgspec

from .ask import Ask, written
from .frame import shape
from .matter import ANSWER, REASONING
from .native import NativeFrame, NativeTally
from .ndjson import LineReader
from .reader import Reader


class Function(msgspec.Struct, gc=False):
    """The function of a tool call; its arguments come as an object."""

    name: str | None = None
    arguments: Any = None


class ToolCall(msgspec.Struct, gc=False):
    """A tool call, always whole."""

    function: Function | None = None


class Message(msgspec.Struct, gc=False):
    """What a line adds."""

    content: str | None = None
    thinking: str | None = None
    tool_calls: list[ToolCall] | None = None


class Line(NativeFrame, gc=False):
    """One line of a stream; a whole answer has the same fields. Durations are ns."""

    model: object = None
    message: Message | None = None
    done: bool = False
    done_reason: str | None = None
    total_duration: int | None = None
    load_duration: int | None = None
    prompt_eval_count: int | None = None
    prompt_eval_duration: int | None = None
    eval_count: int | None = None
    eval_duration: int | None = None


_LINE = shape(Line)
_TIMINGS = ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")


class OllamaTally(NativeTally[Line, Line]):
    """Counts lines."""

    _calls = 0

    def read(self, frame: Line) -> int:
        """Count what a line holds; the bits of its matter."""
        message = frame.message
        if message is None and not frame.done:
            return 0
        self.mark(0, (frame.done_reason or "stop") if frame.done else None)
        self.name(None, frame.model)
        if frame.done:
            self._end(frame)
        return self._message(message) if message is not None else 0

    def _message(self, message: Message) -> int:
        matter = 0
        if message.content:
            matter = self.say(0, ANSWER, message.content)
        if message.thinking:
            matter |= self.say(0, REASONING, message.thinking)
        for call in message.tool_calls or ():
            function = call.function or Function()
            matter |= self.call(0, self._calls, function.name or "", msgspec.json.encode(function.arguments).decode())
            self._calls += 1
        return matter

    def _end(self, line: Line) -> None:
        if line.prompt_eval_count is not None or line.eval_count is not None:
            self.counts.state(prompt=line.prompt_eval_count, output=line.eval_count)
        self.timings = {name: value for name in _TIMINGS if (value := getattr(line, name)) is not None}


def body(ask: Ask) -> bytes:
    """The request's JSON body."""
    return written(
        ask,
        {
            "model": ask.model,
            "messages": ask.messages(),
            "stream": ask.stream,
            "options": {
                "num_predict": ask.max_tokens,
                "temperature": ask.temperature,
                "top_p": ask.top_p,
                "seed": ask.seed,
            },
        },
    )


def reader(event_stream: bool, keep_text: bool) -> Reader:  # noqa: ARG001 - a whole answer is a line like any other
    """A fresh reader of one response body."""
    return LineReader(OllamaTally(_LINE, _LINE, keep_text))
