"""The way of the tokens back to the client: how many make a frame, and what a proxy holds back."""

from __future__ import annotations

from array import array

from .event import Answer
from .faults import Faults


class Outlet:
    """Of one answer. Gives the frames, as tokens of each, that leave at that moment."""

    __slots__ = ("_buffer_frames", "_frame_tokens", "_frames", "_pending", "_sent", "begun")

    def __init__(self, faults: Faults) -> None:
        self._frame_tokens, self._buffer_frames = faults.frame_tokens, faults.buffer_frames
        self._pending = 0
        self._frames: list[int] = []
        self._sent = False
        self.begun = False
        """Whether a frame has left."""

    def put(self, tokens: int) -> list[int]:
        """The model wrote so many. The first are a frame at once, later ones wait until there are enough for one."""
        self._pending += tokens
        if self._sent and self._pending < self._frame_tokens:
            return []
        self._sent = True
        self._frames.append(self._pending)
        self._pending = 0
        return self._release() if len(self._frames) >= self._buffer_frames else []

    def close(self) -> list[int]:
        """The answer is whole."""
        if self._pending:
            self._frames.append(self._pending)
            self._pending = 0
        return self._release()

    def _release(self) -> list[int]:
        frames, self._frames = self._frames, []
        self.begun = self.begun or bool(frames)
        return frames


def changes(faults: Faults) -> bool:
    """Whether frames come otherwise than tokens are written."""
    return faults.frame_tokens > 1 or faults.buffer_frames > 0


def passed_on(answer: Answer, faults: Faults) -> Answer:
    """The answer as the client sees it: a stamp and the tokens of each frame."""
    outlet = Outlet(faults)
    stamps, counts = array("d"), []
    for i, at_s in enumerate(answer.stamps):
        frames = outlet.put(1 if answer.counts is None else answer.counts[i])
        if i == len(answer.stamps) - 1:
            frames += outlet.close()
        stamps.extend([at_s] * len(frames))
        counts.extend(frames)
    return answer._replace(stamps=stamps, counts=counts, written=answer.engine_stamps)
