"""How an engine that takes its time reports progress: a screen word and its parameters, no sentence."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from nilometer.core.errors import Param

SOON_S = 1.0
LATE_S = 10.0
STEP = 0.1


class Tell(Protocol):
    """Receives progress; called from the thread that does the work."""

    def __call__(self, word: str, /, **params: Param) -> None: ...


def quiet(word: str, /, **params: Param) -> None:
    """Tell nobody."""


class Sparing:
    """Whether a step of a long work is worth a line.

    The first is; then each further tenth of the whole, at most once a second; and any after ten seconds of silence.
    """

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = clock_s
        self._told_s: float | None = None
        self._told_share = 0.0

    def worth(self, done: int, total: int) -> bool:
        """True when this step is to be told; it then counts as told."""
        now_s, share = self._clock_s(), done / max(total, 1)
        if self._told_s is not None:
            silent_s = now_s - self._told_s
            if silent_s < LATE_S and (silent_s < SOON_S or share < self._told_share + STEP):
                return False
        self._told_s, self._told_share = now_s, share
        return True
