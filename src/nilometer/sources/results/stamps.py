"""Moments of the wall clock as tools write them. Where the zone is not told it is taken for UTC, and noted."""

from __future__ import annotations

import re
from calendar import timegm

from ..row import Broken, iso_ns
from .fields import Fields
from .told import Notes

_COMPACT = re.compile(r"(\d{4})(\d\d)(\d\d)[-_T](\d\d)(\d\d)(\d\d)")
_LAST_S = timegm((2262, 1, 1, 0, 0, 0))
_ZONED = re.compile(r"(Z|UTC|[+-]\d\d:?\d\d)$")


def local_ns(fields: Fields, name: str, notes: Notes) -> int | None:
    """`20260105-080000` or ISO 8601 as ns since 1970; None where there is none or it cannot be read."""
    text = fields.text(name)
    if text is None:
        return None
    compact = _COMPACT.fullmatch(text)
    try:
        moment = iso_ns("{}-{}-{} {}:{}:{}".format(*compact.groups()) if compact else text)
    except Broken:
        notes.odd("import_impossible", name)
        return None
    if not _ZONED.search(text):
        notes.add("import_date_without_zone")
    return moment


def seconds_ns(value: float | None) -> int | None:
    """Seconds since 1970 as ns; None where that is no time of ours."""
    return None if value is None else whole_ns(round(value * 1e9) if value < _LAST_S else -1)


def whole_ns(value: int) -> int | None:
    """The same of ns."""
    return value if 0 < value < _LAST_S * 1_000_000_000 else None
