"""How wide words stand on a screen, and where a line of them may break. Pure; counts columns, not characters.

Chinese characters take two columns and may break between any two, but no line opens with a closing mark or ends with an
opening one. Commands in backticks and a number with its unit stay whole where the width allows it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

_WIDE = "\u2e80-\u303f\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff01-\uff60\uffe0-\uffe6"
_CLOSING = "，。；：、！？）】》」』”’),.;:!?"
_OPENING = "（【《「『“‘("
_PIECE = re.compile(
    rf"(?P<space>\s+)"
    rf"|[{re.escape(_OPENING)}]*(?:`[^`]*`"
    rf"|[<>]?[+-]?\d[\d,.]*\*? (?:%|ms|s|min|h|[KMGT]i?B|B|[kM])(?![\w/])"
    rf"|[^\s{_WIDE}`]+|[{_WIDE}]|`)[{re.escape(_CLOSING)}]*"
)


def columns(text: str) -> int:
    """Columns `text` takes on a terminal; combining marks take none."""
    return sum(_columns_of(character) for character in text)


def _columns_of(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def pad(text: str, width: int, right: bool = False) -> str:
    """`text` filled with blanks to `width` columns; `right` puts them before it."""
    blanks = " " * max(width - columns(text), 0)
    return blanks + text if right else text + blanks


def wrap(text: str, width: int) -> list[str]:
    """Lines of at most `width` columns; only a single piece that is wider (a path, a command) is longer than that."""
    lines, line = [], ""
    for gap, piece in _pieces(text):
        if not line or columns(line) + columns(gap) + columns(piece) <= width:
            line += (gap if line else "") + piece
        else:
            lines.append(line)
            line = piece
    return [*lines, line] if line else lines


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """Unbreakable pieces, each with the blank before it."""
    gap = ""
    for match in _PIECE.finditer(text):
        if match.lastgroup == "space":
            gap = " "
        else:
            yield gap, match.group()
            gap = ""
