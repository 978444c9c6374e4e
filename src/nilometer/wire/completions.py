"""The dialect of `/v1/completions`: a bare prompt asked, pieces of text read."""

from __future__ import annotations

import msgspec

from .ask import Ask, encode
from .choices import ChoiceTally, Shapes
from .frame import Frame, HeadFrame, shape
from .matter import ANSWER, Piece
from .reader import Reader, reader_of


class Choice(msgspec.Struct, gc=False):
    """A choice, of a stream's frame and of a whole answer alike."""

    index: int = 0
    text: str | None = None
    finish_reason: object = None


_NAMED = shape(HeadFrame[Choice])
SHAPES = Shapes(_NAMED, shape(Frame[Choice]), _NAMED)


class CompletionTally(ChoiceTally[Choice]):
    """Counts completion choices."""

    def choice(self, choice: Choice) -> int:
        """Count one choice of a frame; the bits of the matter it carried."""
        if choice.index != self.last_index or choice.finish_reason:
            self.mark(choice.index, choice.finish_reason)
        return self.say(choice.index, ANSWER, choice.text) if choice.text else 0

    def piece_of(self, choice: Choice) -> Piece | None:
        """The piece of text of choice 0 where that is all the choice carries, else None."""
        alone = not choice.index and not choice.finish_reason
        return Piece(ANSWER, choice.text) if alone and choice.text else None


def body(ask: Ask) -> bytes:
    """The request's JSON body."""
    return encode(ask, {"prompt": ask.text()})


def reader(event_stream: bool, keep_text: bool) -> Reader:
    """A fresh reader of one response body."""
    return reader_of(CompletionTally(SHAPES, keep_text), event_stream)
