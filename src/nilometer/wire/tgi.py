"""The dialect of text-generation-inference's own `/generate` and `/generate_stream`: a bare prompt, a token an event.

Every event is one token, the special one that ends the text included: it was generated, but is no text.
"""

from __future__ import annotations

import msgspec

from .ask import Ask, written
from .frame import shape
from .matter import ANSWER
from .native import NativeFrame, NativeTally
from .reader import Reader, reader_of


class Token(msgspec.Struct, gc=False):
    """A generated token."""

    text: str | None = None
    special: bool = False


class Details(msgspec.Struct, gc=False):
    """What is told with the last token, and with a whole answer."""

    finish_reason: str | None = None
    generated_tokens: int | None = None
    input_length: int | None = None


class Event(NativeFrame, gc=False):
    """One event of a stream; `generated_text` repeats the whole text in the last one."""

    token: Token | None = None
    generated_text: str | None = None
    details: Details | None = None


class Whole(NativeFrame, gc=False):
    """A whole answer."""

    generated_text: str | None = None
    details: Details | None = None


_EVENT, _WHOLE = shape(Event), shape(Whole)


class TgiTally(NativeTally[Event, Whole]):
    """Counts tokens."""

    def read(self, frame: Event) -> int:
        """Count what an event holds; the bits of its matter."""
        if frame.details is not None:
            self._end(frame.details)
        if frame.generated_text is not None:
            self.done = True
        token = frame.token
        if token is None:
            return 0
        self.mark(0, None)
        if token.text and not token.special:
            self.say(0, ANSWER, token.text)
        return ANSWER

    def stated(self, frame: Event) -> int:  # noqa: ARG002 - it is so for each
        """An event is a token."""
        return 1

    def read_whole(self, whole: Whole) -> None:
        """Count what a whole answer holds."""
        if whole.generated_text is None:
            return
        self.say(0, ANSWER, whole.generated_text)
        if whole.details is not None:
            self._end(whole.details)
        else:
            self.mark(0, None)

    def _end(self, details: Details) -> None:
        self.mark(0, details.finish_reason)
        self.counts.state(prompt=details.input_length, output=details.generated_tokens)


def body(ask: Ask) -> bytes:
    """The request's JSON body. The server refuses temperature 0 and top_p 1: both are its own way without them."""
    sampled = bool(ask.temperature)
    return written(
        ask,
        {
            "inputs": ask.text(),
            "parameters": {
                "max_new_tokens": ask.max_tokens,
                "do_sample": sampled,
                "temperature": ask.temperature if sampled else None,
                "top_p": ask.top_p if ask.top_p is not None and ask.top_p < 1 else None,
                "seed": ask.seed,
                "details": True,
            },
        },
    )


def reader(event_stream: bool, keep_text: bool) -> Reader:
    """A fresh reader of one response body."""
    return reader_of(TgiTally(_EVENT, _WHOLE, keep_text), event_stream)
