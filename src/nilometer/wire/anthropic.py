"""The dialect of Anthropic's `/v1/messages`: one user message asked, typed events of content blocks read.

Events of an unknown type say nothing. The output count in `message_start` is a placeholder; the one in `message_delta`
is the total so far. Input counts leave cached tokens out: they are added, so that a prompt is as long as it is.
"""

from __future__ import annotations

from typing import Any

import msgspec

from .ask import SYSTEM, Ask, written
from .frame import decode, shape
from .matter import ANSWER, REASONING, Piece
from .native import NativeFrame, NativeTally
from .reader import Reader, reader_of


class Usage(msgspec.Struct, gc=False):
    """Counts, as far as they are stated."""

    input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    output_tokens: int | None = None


class Block(msgspec.Struct, gc=False):
    """A content block: its beginning in a stream, all of it in a whole answer."""

    kind: str = msgspec.field(name="type", default="")
    text: str | None = None
    thinking: str | None = None
    name: str | None = None
    input: Any = None


class Delta(msgspec.Struct, gc=False):
    """What is added to a block, or to the message."""

    kind: str = msgspec.field(name="type", default="")
    text: str | None = None
    thinking: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None


class Message(NativeFrame, gc=False):
    """A whole message; in a stream its beginning, without content."""

    id: object = None
    model: object = None
    content: list[Block] | None = None
    stop_reason: str | None = None
    usage: Usage | None = None


class Event(NativeFrame, gc=False):
    """One event of a stream."""

    kind: str = msgspec.field(name="type", default="")
    index: int = 0
    message: Message | None = None
    content_block: Block | None = None
    delta: Delta | None = None
    usage: Usage | None = None


_EVENT, _WHOLE = shape(Event), shape(Message)


class MessageTally(NativeTally[Event, Message]):
    """Counts content blocks."""

    kinds = frozenset(
        {"message_start", "message_delta", "message_stop", "content_block_start", "content_block_delta", "error"}
    )

    def read(self, frame: Event) -> int:
        """Count what an event holds; the bits of its matter."""
        if frame.kind == "content_block_delta" and frame.delta is not None:
            return self._delta(frame.index, frame.delta)
        if frame.kind == "content_block_start" and frame.content_block is not None:
            return self._block(frame.index, frame.content_block, whole=False)
        if frame.kind == "message_start" and frame.message is not None:
            self._message(frame.message)
        elif frame.kind == "message_delta":
            self.mark(0, frame.delta.stop_reason if frame.delta else None)
            if frame.usage is not None:
                self._count(frame.usage, frame.usage.output_tokens)
        elif frame.kind == "message_stop":
            self.done = True
        return 0

    def read_whole(self, whole: Message) -> None:
        """Count what a whole answer holds."""
        if whole.content is None:
            return
        self._message(whole)
        if whole.usage is not None:
            self._count(whole.usage, whole.usage.output_tokens)
        for index, block in enumerate(whole.content):
            self._block(index, block, whole=True)

    def piece(self, data: bytes) -> Piece | None:
        """The one piece of text of an event that carries nothing else to be counted or noted; None for any other."""
        event: Event | None = decode(data, _EVENT)
        if event is None or event.error or event.kind != "content_block_delta" or event.delta is None:
            return None
        delta = event.delta
        said = {"text_delta": (ANSWER, delta.text), "thinking_delta": (REASONING, delta.thinking)}
        matter, text = said.get(delta.kind, (0, None))
        return Piece(matter, text) if text else None

    def _message(self, message: Message) -> None:
        self.mark(0, message.stop_reason)
        self.name(message.id, message.model)
        if message.usage is not None:
            self._count(message.usage, None)

    def _block(self, index: int, block: Block, *, whole: bool) -> int:
        matter = 0
        if block.text:
            matter = self.say(0, ANSWER, block.text)
        if block.thinking:
            matter |= self.say(0, REASONING, block.thinking)
        if block.kind == "redacted_thinking":
            self.hidden = True
        if block.name:
            arguments = msgspec.json.encode(block.input).decode() if whole else ""
            matter |= self.call(0, index, block.name, arguments)
        return matter

    def _delta(self, index: int, delta: Delta) -> int:
        if delta.kind == "text_delta" and delta.text:
            return self.say(0, ANSWER, delta.text)
        if delta.kind == "thinking_delta" and delta.thinking:
            return self.say(0, REASONING, delta.thinking)
        if delta.kind == "input_json_delta" and delta.partial_json:
            return self.call(0, index, "", delta.partial_json)
        if delta.kind == "signature_delta" and not self.reasoned:
            self.hidden = True  # it seals thoughts that were not shown
        return 0

    def _count(self, usage: Usage, output: int | None) -> None:
        cached = usage.cache_read_input_tokens
        parts = (usage.input_tokens, cached, usage.cache_creation_input_tokens)
        prompt = None if usage.input_tokens is None else sum(part or 0 for part in parts)
        self.counts.state(prompt=prompt, output=output, cached=cached)


def body(ask: Ask) -> bytes:
    """The request's JSON body; the API knows no seed."""
    return written(
        ask,
        {
            "model": ask.model,
            "messages": [message for message in ask.messages() if message["role"] != SYSTEM],
            "system": ask.system(),
            "max_tokens": ask.max_tokens,
            "stream": ask.stream,
            "temperature": ask.temperature,
            "top_p": ask.top_p,
        },
    )


def reader(event_stream: bool, keep_text: bool) -> Reader:
    """A fresh reader of one response body."""
    return reader_of(MessageTally(_EVENT, _WHOLE, keep_text), event_stream)
