"""What has been counted of one answer so far: matter, tokens, finish reasons, the first fault.

One object per request; per event it keeps an int and nothing the garbage collector would have to scan. It raises
nothing: what cannot be read becomes a fault, and the events after it are still counted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, NamedTuple

import msgspec

from ..core.record import ErrorKind, TokenSource
from .answer import FAILED_FINISHES, Answer, Fault, estimate_tokens, normal_finish
from .frame import C, Frame, HeadFrame, Shape, complaint, decode, decode_leniently, excerpt, is_json, scalars
from .matter import ANSWER, Kept, Piece
from .usage import Counts


class Shapes(NamedTuple):
    """How a dialect's frames look: the first ones, the rest (names left out), and a whole answer."""

    head: Shape
    lean: Shape
    whole: Shape


class Tally(ABC, Generic[C]):
    """The counts of one answer. A dialect's subclass says in `choice` what of a choice is generated matter."""

    def __init__(self, shapes: Shapes, keep_text: bool) -> None:
        self.tokens: list[int] = []
        self.first_answer: int | None = None
        self.done = False
        """The end mark, or the end of a whole answer, was seen."""
        self.kept = Kept() if keep_text else None
        self.text_bytes = 0
        self.reasoned = False
        self.last_index = -1
        self._shapes = shapes
        self._shape = shapes.head
        self._quick = shapes.head.quick
        self._named = False
        self._seen: set[int] = set()
        self._finished: dict[int, str] = {}
        self._counts = Counts()
        self._fault: Fault | None = None
        self._id: str | None = None
        self._model: str | None = None
        self._timings: object = None

    @property
    def complete(self) -> bool:
        """Every choice seen so far has finished, or the end mark came."""
        return self.done or (bool(self._seen) and len(self._finished) == len(self._seen))

    def event(self, data: bytes) -> int:
        """Count one event of a stream; 1 if it carried generated matter, else 0."""
        try:
            frame = self._quick(data)
        except (msgspec.DecodeError, RecursionError):
            frame = decode_leniently(data, self._shape.kind)
            if frame is None:
                self._fail("malformed", excerpt(data))
                return 0
        usage = frame.usage
        if usage is not None:
            self._counts.take(usage)
        if not self._named or frame.error or frame.timings is not None or not frame.choices:
            self._take_rest(frame, data)
        matter = 0
        for choice in frame.choices or ():
            matter |= self.choice(choice)
        if not matter:
            return 0
        if matter >= ANSWER and self.first_answer is None:
            self.first_answer = len(self.tokens)
        self.tokens.append(-1 if usage is None else self._counts.of_frame(len(self.tokens), usage))
        return 1

    def error_event(self, data: bytes) -> None:
        """Count an event of the type `error`: all its data is the server's complaint."""
        self._fail("stream_error", complaint(data, marked=True))

    def whole(self, data: bytes) -> None:
        """Count an answer that came in one piece; its end is its end mark. Other JSON counts for nothing."""
        frame = decode(data, self._shapes.whole)
        if frame is None:
            if data.strip() and not is_json(data):
                self._fail("malformed", excerpt(data))
            return
        if frame.usage is not None:
            self._counts.take(frame.usage)
        self._take_rest(frame, data)
        for choice in frame.choices or ():
            self.choice(choice)
        self.done = bool(self._seen)

    def piece(self, data: bytes) -> Piece | None:
        """The one piece of text of an event that carries nothing else to be counted or noted; None for any other.

        None also while the answer's names are not known yet.
        """
        try:
            frame = self._quick(data)
        except (msgspec.DecodeError, RecursionError):
            return None
        if not self._named or frame.usage is not None or frame.error or frame.timings is not None:
            return None
        return self.piece_of(frame.choices[0]) if frame.choices and len(frame.choices) == 1 else None

    @abstractmethod
    def choice(self, choice: C) -> int:
        """Count one choice of a frame; the bits of the matter it carried."""

    @abstractmethod
    def piece_of(self, choice: C) -> Piece | None:
        """The piece of text of choice 0 where that is all the choice carries, else None."""

    def mark(self, index: int, finish_reason: object) -> None:
        """A choice was seen, perhaps its end. An empty reason is none; a later one of the same choice wins.

        Some servers wrap the reason as `{"type": reason}`.
        """
        self.last_index = index
        self._seen.add(index)
        if not finish_reason:
            return
        if isinstance(finish_reason, dict):
            finish_reason = finish_reason.get("type")
        native = finish_reason if isinstance(finish_reason, str) else "other"
        self._finished[index] = native
        if native in FAILED_FINISHES:
            self._fail("stream_error", native)

    def answer(self) -> Answer:
        """All that was counted, with what follows from it."""
        counts, kept = self._counts, self.kept
        output_tokens, source = self._output_tokens()
        native = self._finished[min(self._finished)] if self._finished else None
        return Answer(
            finish_reason=normal_finish(native),
            native_finish_reason=native,
            complete=self.complete,
            matter_events=len(self.tokens),
            first_answer=self.first_answer,
            prompt_tokens=counts.prompt,
            cached_tokens=counts.cached,
            output_tokens=output_tokens,
            reasoning_tokens=counts.reasoning,
            token_source=source,
            choices=len(self._seen),
            hidden_tokens=bool(counts.reasoning) and not self.reasoned,
            fault=self._fault,
            model=self._model,
            server=scalars(self._timings) or None,
            server_request_id=self._id,
            text=None if kept is None else kept.text,
            reasoning=None if kept is None else kept.reasoning,
            tool_arguments=None if kept is None else kept.tool_arguments,
            usage_seen=counts.seen,
        )

    def _output_tokens(self) -> tuple[int | None, TokenSource]:
        stated = self._counts.output
        if stated == 0 and self.text_bytes:
            self.tokens[:] = [-1] * len(self.tokens)  # a placeholder: text was generated, so it counted nothing
        elif stated is not None:
            return stated, "usage"
        if self._fault is not None or not self.complete:
            return None, "none"
        return estimate_tokens(len(self.tokens), self.text_bytes), "estimated"

    def _take_rest(self, frame: Frame[C], data: bytes) -> None:
        if isinstance(frame, HeadFrame):
            self._name(frame)
        if frame.timings is not None:
            self._timings = frame.timings
        if frame.error or not (frame.choices or frame.usage):
            words = complaint(data)
            if words is not None:
                self._fail("stream_error", words)

    def _name(self, frame: HeadFrame[Any]) -> None:
        self._id = self._id or _word(frame.id)
        self._model = self._model or _word(frame.model)
        if self._id and self._model:
            self._named = True
            self._shape = self._shapes.lean
            self._quick = self._shape.quick

    def _fail(self, kind: ErrorKind, detail: str | None) -> None:
        if self._fault is None:
            self._fault = Fault(kind, detail)


def _word(value: object) -> str | None:
    """A name as text; some servers send a number for it."""
    return str(value) if value and isinstance(value, str | int) else None
