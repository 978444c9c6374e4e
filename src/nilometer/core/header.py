"""One header of an HTTP request, checked: the same rule for what the probe sends and for what the load sends."""

from __future__ import annotations

import re

from .errors import SpecError

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FRAMING = frozenset({"content-length", "transfer-encoding", "connection", "expect", "upgrade"})
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


def header_line(name: str, value: str) -> str:
    """`NAME: VALUE`. Refuses what HTTP cannot carry: slug `header_invalid`; the value, maybe a secret, is not told."""
    if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
        raise SpecError("header_invalid", header=name)
    return f"{name}: {value}"


def users_line(name: str, value: str) -> str:
    """The same of a header that a user gives. Refuses one that says how the body is framed: slug `header_reserved`."""
    line = header_line(name, value)
    if name.lower() in _FRAMING:
        raise SpecError("header_reserved", header=name)
    return line
