"""How an engine that takes its time reports progress: a screen word and its parameters, no sentence."""

from __future__ import annotations

from typing import Protocol

from nilometer.core.errors import Param


class Tell(Protocol):
    """Receives progress; called from the thread that does the work, up to a few times a second."""

    def __call__(self, word: str, /, **params: Param) -> None: ...


def quiet(word: str, /, **params: Param) -> None:
    """Tell nobody."""
