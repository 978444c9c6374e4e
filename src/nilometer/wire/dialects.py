"""The table of dialects: where a request goes, how it is asked and how the answer is read. One row each."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from . import chat, completions
from .ask import Ask
from .reader import Reader

__all__ = ["DIALECTS", "Ask", "Dialect"]


class Dialect(NamedTuple):
    """One way to talk to a model server. `path` is below the `/v1` base; `reader` takes (event_stream, keep_text)."""

    name: str
    path: str
    body: Callable[[Ask], bytes]
    reader: Callable[[bool, bool], Reader]


DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect
    for dialect in (
        Dialect("chat", "/chat/completions", chat.body, chat.reader),
        Dialect("completions", "/completions", completions.body, completions.reader),
    )
}
