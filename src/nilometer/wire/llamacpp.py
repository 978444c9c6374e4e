"""The dialect of llama.cpp's own `/completion`: a bare prompt asked, pieces of text with running counts read."""

from __future__ import annotations

from .ask import Ask, written
from .frame import shape
from .matter import ANSWER
from .native import NativeFrame, NativeTally
from .reader import Reader, reader_of


class Event(NativeFrame, gc=False):
    """One event of a stream; a whole answer is as the last one, with all of the text. Counts run along."""

    index: int = 0
    content: str | None = None
    stop: bool = False
    stop_type: str | None = None
    model: object = None
    tokens_predicted: int | None = None
    tokens_evaluated: int | None = None
    timings: object = None


_EVENT = shape(Event)


class LlamaCppTally(NativeTally[Event, Event]):
    """Counts pieces of text."""

    def read(self, frame: Event) -> int:
        """Count what an event holds; the bits of its matter."""
        if frame.content is None:
            return 0
        self.mark(frame.index, (frame.stop_type or "stop") if frame.stop else None)
        if frame.tokens_predicted is not None or frame.tokens_evaluated is not None:
            self.counts.state(prompt=frame.tokens_evaluated, output=frame.tokens_predicted)
        if frame.stop:
            self.name(None, frame.model)
            self.timings = frame.timings
            cached = frame.timings.get("cache_n") if isinstance(frame.timings, dict) else None
            if isinstance(cached, int):
                self.counts.state(cached=cached)
        return self.say(frame.index, ANSWER, frame.content) if frame.content else 0

    def stated(self, frame: Event) -> int:
        """Tokens that the server states for a frame with matter; -1 unknown."""
        return self.counts.of_frame(len(self.tokens), frame.tokens_predicted)


def body(ask: Ask) -> bytes:
    """The request's JSON body."""
    return written(
        ask,
        {
            "prompt": ask.text(),
            "n_predict": ask.max_tokens,
            "stream": ask.stream,
            "temperature": ask.temperature,
            "top_p": ask.top_p,
            "seed": ask.seed,
        },
    )


def reader(event_stream: bool, keep_text: bool) -> Reader:
    """A fresh reader of one response body."""
    return reader_of(LlamaCppTally(_EVENT, _EVENT, keep_text), event_stream)
