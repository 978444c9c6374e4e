"""The counting of a dialect whose every event, and whose whole answer, is one typed frame of its own."""

from __future__ import annotations

from abc import abstractmethod
from typing import Generic, TypeVar, cast

import msgspec

from .frame import Shape, complaint, decode, shape
from .tally import Tally


class NativeFrame(msgspec.Struct, gc=False):
    """What every frame may be: a complaint."""

    error: object = None


class _Kind(msgspec.Struct, gc=False):
    kind: object = msgspec.field(name="type", default=None)


_KIND = shape(_Kind)
F = TypeVar("F", bound=NativeFrame)
W = TypeVar("W", bound=NativeFrame)


class NativeTally(Tally, Generic[F, W]):
    """A dialect's subclass says in `read` what a frame of a stream holds, in `read_whole` what a whole answer does."""

    kinds: frozenset[str] = frozenset()
    """The `type`s of the events that the dialect reads; one of another type may be as it likes. Empty: no types."""

    def __init__(self, frame: Shape, whole: Shape, keep_text: bool) -> None:
        super().__init__(keep_text)
        self._frame = frame
        self._whole = whole

    def event(self, data: bytes) -> int:
        """Count one event of a stream; 1 if it carried generated matter, else 0."""
        frame = decode(data, self._frame)
        if frame is None:
            if not self._foreign(data):
                self.fail_unreadable(data)
            return 0
        if frame.error:
            self.fail("stream_error", complaint(data, marked=True))
        matter = self.read(frame)
        return self.matter(matter, self.stated(frame)) if matter else 0

    def _foreign(self, data: bytes) -> bool:
        told = decode(data, _KIND) if self.kinds else None
        return told is not None and isinstance(told.kind, str) and told.kind not in self.kinds

    def whole(self, data: bytes) -> None:
        """Count an answer that came in one piece; its end is its end mark. Other JSON counts for nothing."""
        whole = decode(data, self._whole)
        if whole is None:
            self.fail_unreadable(data, whole=True)
            return
        if whole.error:
            self.fail("stream_error", complaint(data, marked=True))
        self.read_whole(whole)
        self.close_whole()

    @abstractmethod
    def read(self, frame: F) -> int:
        """Count what a frame of a stream holds; the bits of its matter."""

    def read_whole(self, whole: W) -> None:
        """Count what a whole answer holds: what a frame would hold, unless the dialect says otherwise."""
        self.read(cast(F, whole))

    def stated(self, frame: F) -> int:  # noqa: ARG002 - most dialects state none
        """Tokens that the server states for a frame with matter; -1 unknown."""
        return -1
