"""What a server's log says of its end, in one line. Pure: it knows how llama.cpp and Python programs complain."""

from __future__ import annotations

import re

_LINES = 4
_ERRORS = 2
"""The first error and what it led to; what follows repeats them."""
_LEVEL = re.compile(r"^[\d.]+ ([A-Z]) +")
"""llama.cpp's own opening of a line: time since the start, and I, W or E."""
_COMPLAINT = re.compile(
    r"\b(error|failed|failure|fatal|invalid|cannot|unable|unsupported|not (found|supported)|out of memory)\b", re.I
)
_TRACE = "Traceback (most recent call last):"


def last_words(log: str) -> str:
    """Its first errors, which the later ones come from; where it tells of none, its last lines.

    Of a Python traceback only the last line counts, which names the exception.
    """
    lines = [line.strip() for line in _without_traces(log.splitlines()) if line.strip()]
    errors = list(dict.fromkeys(_LEVEL.sub("", line) for line in lines if _complains(line)))
    return " | ".join(line[:160] for line in errors[:_ERRORS] or lines[-_LINES:])


def _complains(line: str) -> bool:
    level = _LEVEL.match(line)
    return level[1] == "E" if level else _COMPLAINT.search(line) is not None


def _without_traces(lines: list[str]) -> list[str]:
    """The lines without the frames of tracebacks, which are set in."""
    kept, within = [], False
    for line in lines:
        within = line.strip() == _TRACE or (within and line.startswith(" "))
        if not within:
            kept.append(line)
    return kept
