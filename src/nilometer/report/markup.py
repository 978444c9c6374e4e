"""HTML by hand, with one rule that the types hold: what is not yet `Html` goes through `text` or into an attribute, and
is escaped there. Nothing else makes `Html` of a string.
"""

from __future__ import annotations

import re
from html import escape
from typing import NewType

Html = NewType("Html", str)

_VOID = {"meta", "link", "br", "rect"}
_CODE = re.compile(r"`([^`]+)`")
_UNIT = re.compile(r"(?<=[\d*]) (?=(?:%|ms|s|min|h|[KMGT]?i?B)(?![\w/]))")
"""Between a figure and its unit, which stay on one line."""
_UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202a-\u202e\u2066-\u2069]")
"""Control characters, and those that turn the direction of all text behind them."""


def text(words: str) -> Html:
    """Words that show as they are, whatever is in them."""
    return Html(escape(_UNSEEN.sub("\ufffd", words)))


def prose(words: str) -> Html:
    """The same; what stands in backticks is code."""
    parts = _CODE.split(words)
    return join(*(element("code", text(part)) if i % 2 else _kept(part) for i, part in enumerate(parts)))


def _kept(words: str) -> Html:
    return text(_UNIT.sub("\u00a0", words))


def join(*parts: Html) -> Html:
    """One after the other."""
    return Html("".join(parts))


def element(name: str, /, *inside: Html, **attributes: str | bool | None) -> Html:
    """One element. `class_` is class, `data_x` is data-x; None and False leave an attribute out, True has no value."""
    shown = "".join(_attribute(key, value) for key, value in attributes.items() if value not in (None, False))
    if name in _VOID:
        return Html(f"<{name}{shown}>" if name != "rect" else f"<{name}{shown}/>")
    return Html(f"<{name}{shown}>{join(*inside)}</{name}>")


def _attribute(key: str, value: str | bool | None) -> str:
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{text(str(value))}"'
