"""Which release of an engine a constant belongs to: versions as numbers that compare, and ranges of them."""

from __future__ import annotations

import re

import msgspec

Version = tuple[int, ...]


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """The releases from `since` to before `until`; None = open on that side."""

    since: Version | None = None
    until: Version | None = None

    def holds(self, version: Version) -> bool:
        """Whether the release is one of them."""
        return (self.since is None or version >= self.since) and (self.until is None or version < self.until)

    def words(self) -> str:
        """As people write it: ">=0.17,<0.21"."""
        sides = [(">=", self.since), ("<", self.until)]
        return ",".join(f"{sign}{'.'.join(map(str, side))}" for sign, side in sides if side is not None)


def parse_version(text: str | None) -> Version | None:
    """The numbers a version begins with ("0.19.0rc1" = 0.19.0, "b6900" = 6900); None where it has none.

    A date ("2026-08") is no version.
    """
    found = re.match(r"\s*[vb]?(\d+(?:\.\d+)*)(?!\d*-)", text or "")
    return tuple(map(int, found.group(1).split("."))) if found else None
