"""The lines of a metrics page that are worth keeping: those of the families that are asked for.

By their names alone, before anything is parsed: a page of half a megabyte is mostly buckets that nobody reads. A
sampler keeps these lines while a run goes on; they are parsed after it, by `pages`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

PARTS = ("_bucket", "_count", "_sum")
"""What follows the name of a histogram (or summary) in those of its series."""
_TOTAL = "_total"
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_VALUE = re.compile(r"[-+]?(\d|\.\d|inf|nan)", re.IGNORECASE)
_MOST_NAMES = 10_000
_LINE_CHARS = 8_192
"""A longer line is broken: the parser's time grows with the square of it."""


class Sieve:
    """Tells lines apart by the family they are of, and counts what it holds back. Used for one page."""

    def __init__(self, families: Collection[str]) -> None:
        self._families = families
        self._keys: dict[str, str | None] = {}
        self._declared: set[str] = set()
        self.names: dict[str, None] = {}
        """The families of the page, asked for or not, that have a value."""
        self.ignored = self.broken = 0

    def kept(self, text: str) -> Iterator[str]:
        """The lines of the families asked for, TYPE lines with them, without blanks around them."""
        keys = self._keys
        for raw in text.split("\n"):
            if keys.get(raw.partition("{")[0], raw) is None:  # the many of families that nobody asked for
                self.ignored += 1
                continue
            line = raw.strip()
            if line and self._keeps(line):
                yield line

    def key(self, name: str) -> str | None:
        """Under which name its series are kept; None of a family that nobody asked for."""
        if name not in self._keys:
            self._keys[name] = self._found(name)
        return self._keys[name]

    def _found(self, name: str) -> str | None:
        if name in self._families:
            return name
        part = next((part for part in PARTS if name.endswith(part)), "")
        stem = name.removesuffix(part)
        if stem in self._families:
            return name
        stem = stem.removesuffix(_TOTAL)
        return stem + part if stem in self._families else None

    def _keeps(self, line: str) -> bool:
        if line.startswith("#"):
            return self._declares(line)
        found = _NAME.match(line)
        if found is None or len(line) > _LINE_CHARS or not _carries_a_value(line, found.end()):
            self.ignored += 1
            self.broken += 1
            return False
        name = found[0]
        if len(self.names) < _MOST_NAMES:
            self.names[self._family(name)] = None
        if self.key(name) is None:
            self.ignored += 1
            return False
        return True

    def _declares(self, line: str) -> bool:
        words = line.split(None, 3)
        if len(words) < 4 or words[1] != "TYPE":
            return False
        if len(self._declared) < _MOST_NAMES:
            self._declared.add(words[2])
        return self._found(words[2]) is not None

    def _family(self, name: str) -> str:
        """A name without what the text format puts behind it; `_count` may be a part of the name itself."""
        part = next((part for part in PARTS if name.endswith(part)), "")
        if part and name not in self._declared:
            return name.removesuffix(part)
        return name.removesuffix(_TOTAL) or name


def _carries_a_value(line: str, end: int) -> bool:
    """Whether a number stands behind the name and its labels, near enough to tell a page from prose."""
    if line[end : end + 1] == "{":
        end = line.rfind("}", end) + 1
        return end > 0 and line[end : end + 1] != ""
    return line[end : end + 1] in {" ", "\t"} and _VALUE.match(line[end:].lstrip()) is not None


def kept(text: str, families: Collection[str]) -> str:
    """The lines of these families alone: what is worth storing of a page."""
    return "\n".join(Sieve(families).kept(text))
