"""How many tokens a text has where nobody counted: from its characters. Every figure that rests on it is marked."""

from __future__ import annotations

import re

_WIDE = re.compile(r"[\u2e80-\U0010ffff]")


def tokens(text: str) -> int:
    """About 4.2 characters a token in Latin script, three tokens for four CJK characters; at least 1."""
    wide = 0 if text.isascii() else len(_WIDE.findall(text))
    return max(1, round((len(text) - wide) / 4.2 + wide * 0.75))
