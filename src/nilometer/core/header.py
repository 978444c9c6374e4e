"""One header of an HTTP request, checked: the same rule for what the probe sends and for what the load sends."""

from __future__ import annotations

import re

from .errors import SpecError

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


def header_line(name: str, value: str) -> str:
    """`NAME: VALUE`. Refuses what HTTP cannot carry: slug `header_invalid`; the value, maybe a secret, is not told."""
    if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
        raise SpecError("header_invalid", header=name)
    return f"{name}: {value}"
