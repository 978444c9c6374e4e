"""The dialect of `/v1/chat/completions`: one user message asked, deltas of content, reasoning and tool calls read.

Reasoning is read under both its names, `reasoning_content` and `reasoning`; a server that sends both says it twice.
Mistral's content is a list of parts where it holds thoughts.
"""

from __future__ import annotations

from typing import Any

import msgspec

from .ask import Ask, encode
from .choices import ChoiceTally, Shapes
from .frame import Frame, HeadFrame, shape
from .matter import ANSWER, REASONING, Piece
from .reader import Reader, reader_of


class Function(msgspec.Struct, gc=False):
    """The function part of a tool call, or of a piece of one."""

    name: str | None = None
    arguments: Any = None


class ToolCall(msgspec.Struct, gc=False):
    """A tool call, or a piece of one."""

    index: int | None = None
    id: str | None = None
    function: Function | None = None


class Part(msgspec.Struct, gc=False):
    """A part of content that is a list: text, or thoughts that are parts themselves."""

    text: str | None = None
    thinking: list[Part] | str | None = None


class Delta(msgspec.Struct, gc=False):
    """What a frame adds to a choice; a whole message has the same fields."""

    content: str | list[Part] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[ToolCall] | None = None
    function_call: Function | None = None
    refusal: str | None = None


class Choice(msgspec.Struct, gc=False):
    """A choice of a stream's frame."""

    index: int = 0
    delta: Delta | None = None
    finish_reason: object = None


class WholeChoice(Choice, gc=False):
    """A choice of a whole answer: the same under another key."""

    delta: Delta | None = msgspec.field(name="message", default=None)


SHAPES = Shapes(shape(HeadFrame[Choice]), shape(Frame[Choice]), shape(HeadFrame[WholeChoice]))


class ChatTally(ChoiceTally[Choice]):
    """Counts chat choices."""

    def choice(self, choice: Choice) -> int:
        """Count one choice of a frame; the bits of the matter it carried."""
        if choice.index != self.last_index or choice.finish_reason:
            self.mark(choice.index, choice.finish_reason)
        delta = choice.delta
        if delta is None:
            return 0
        matter = 0
        content = delta.content or delta.refusal
        if content:
            matter = self._content(choice.index, content)
        reasoning = delta.reasoning_content or delta.reasoning
        if reasoning:
            matter |= self.say(choice.index, REASONING, reasoning)
        if delta.tool_calls:
            matter |= self._call(choice.index, delta.tool_calls)
        if delta.function_call is not None:
            matter |= self._call(choice.index, [ToolCall(function=delta.function_call)])
        return matter

    def piece_of(self, choice: Choice) -> Piece | None:
        """The piece of text of choice 0 where that is all the choice carries, else None."""
        delta = choice.delta
        if choice.index or choice.finish_reason or delta is None:
            return None
        said, mused = delta.content, delta.reasoning_content or delta.reasoning
        if delta.refusal or delta.tool_calls or delta.function_call or isinstance(said, list):
            return None
        if said:
            return None if mused else Piece(ANSWER, said)
        twice = delta.reasoning_content and delta.reasoning
        return Piece(REASONING, mused) if mused and not twice else None

    def _content(self, index: int, content: str | list[Part], channel: int = ANSWER) -> int:
        if isinstance(content, str):
            return self.say(index, channel, content)
        matter = 0
        for part in content:
            if part.text:
                matter |= self.say(index, channel, part.text)
            if part.thinking:
                matter |= self._content(index, part.thinking, REASONING)
        return matter

    def _call(self, index: int, calls: list[ToolCall]) -> int:
        matter = 0
        for position, call in enumerate(calls):
            function = call.function or Function()
            name, arguments = function.name or "", _written(function.arguments)
            if call.id or name or arguments:
                matter = self.call(index, position if call.index is None else call.index, name, arguments)
        return matter


def _written(arguments: Any) -> str:
    """Arguments as they are kept; some servers send the object itself, not its JSON."""
    if arguments is None or isinstance(arguments, str):
        return arguments or ""
    return msgspec.json.encode(arguments).decode()


def body(ask: Ask) -> bytes:
    """The request's JSON body."""
    return encode(ask, {"messages": ask.messages()})


def reader(event_stream: bool, keep_text: bool) -> Reader:
    """A fresh reader of one response body."""
    return reader_of(ChatTally(SHAPES, keep_text), event_stream)
