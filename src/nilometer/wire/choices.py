"""The counting of OpenAI-like frames: a list of choices, a `usage`, perhaps `timings`, perhaps an `error`."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Generic, NamedTuple

import msgspec

from .frame import C, Frame, HeadFrame, Shape, complaint, decode, decode_leniently
from .matter import Piece
from .tally import Tally


class Shapes(NamedTuple):
    """How a dialect's frames look: the first ones, the rest (names left out), and a whole answer."""

    head: Shape
    lean: Shape
    whole: Shape


class ChoiceTally(Tally, Generic[C]):
    """A dialect's subclass says in `choice` what of a choice is generated matter."""

    def __init__(self, shapes: Shapes, keep_text: bool) -> None:
        super().__init__(keep_text)
        self._shapes = shapes
        self._shape = shapes.head
        self._quick = shapes.head.quick
        self._named = False

    def event(self, data: bytes) -> int:
        """Count one event of a stream; 1 if it carried generated matter, else 0."""
        try:
            frame = self._quick(data)
        except (msgspec.DecodeError, RecursionError):
            frame = decode_leniently(data, self._shape.kind)
            if frame is None:
                self.fail_unreadable(data)
                return 0
        usage = frame.usage
        if usage is not None:
            self.counts.take(usage)
        if not self._named or frame.error or frame.timings is not None or not frame.choices:
            self._take_rest(frame, data)
        matter = 0
        for choice in frame.choices or ():
            matter |= self.choice(choice)
        if not matter:
            return 0
        if usage is None:
            return self.matter(matter)
        return self.matter(matter, self.counts.of_frame(len(self.tokens), usage.completion_tokens))

    def whole(self, data: bytes) -> None:
        """Count an answer that came in one piece; its end is its end mark. Other JSON counts for nothing."""
        frame = decode(data, self._shapes.whole)
        if frame is None:
            self.fail_unreadable(data, whole=True)
            return
        if frame.usage is not None:
            self.counts.take(frame.usage)
        self._take_rest(frame, data)
        for choice in frame.choices or ():
            self.choice(choice)
        self.close_whole()

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

    def _take_rest(self, frame: Frame[C], data: bytes) -> None:
        if isinstance(frame, HeadFrame):
            self._name(frame)
        if frame.timings is not None:
            self.timings = frame.timings
        if frame.error or not (frame.choices or frame.usage):
            words = complaint(data)
            if words is not None:
                self.fail("stream_error", words)

    def _name(self, frame: HeadFrame[Any]) -> None:
        if self.name(frame.id, frame.model):
            self._named = True
            self._shape = self._shapes.lean
            self._quick = self._shape.quick
