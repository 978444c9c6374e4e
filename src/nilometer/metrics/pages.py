"""A server's metrics page in memory: the series of the families that are asked for, and a count of what was left.

Takes text and gives values; knows no engine and no meaning. Lines of other families are dropped by their name alone,
before anything is parsed, so that a page of thousands of buckets costs little. It lives here and not in `wire`: the
parser it uses brings sockets and a web server with it, which the load's hot path must not load.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

PARTS = ("_bucket", "_count", "_sum")
"""What follows the name of a histogram (or summary) in those of its series."""
_TOTAL = "_total"
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_VALUE = re.compile(r"[-+]?(\d|\.\d|inf|nan)", re.IGNORECASE)
_MOST_NAMES = 10_000
_LINE_CHARS = 8_192
"""A longer line is broken: the parser's time grows with the square of it."""
_UNREADABLE = (ValueError, IndexError, KeyError, TypeError, OverflowError)
"""What the parser raises on lines that are none."""

Labels = Mapping[str, str]


class Series(NamedTuple):
    """One series: its labels, and the value of it that the page shows."""

    labels: Labels
    value: float


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """What was read. Series stand under the name of their family, histograms under it with `_bucket`, `_count`, `_sum`.

    A counter's `_total` is left off where the family is asked for without it. A series without a number (NaN) is not
    there. `names` are all families of the page, asked for or not, so far as they have a value.
    """

    series: Mapping[str, list[Series]] = {}
    names: list[str] = []
    ignored: int = 0
    """Lines with something on them that are no comment and were not read: of other families, or broken."""
    broken: int = 0
    """Those of them that are of a family asked for, or of none."""

    @property
    def is_metrics(self) -> bool:
        """Whether there is any series on it, asked for or not."""
        return bool(self.names)


class _Sieve:
    """What each line is, by its name."""

    def __init__(self, families: Collection[str]) -> None:
        self._families = families
        self._keys: dict[str, str | None] = {}
        self._declared: set[str] = set()
        self.names: dict[str, None] = {}
        self.ignored = self.broken = 0

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

    def keeps(self, line: str) -> bool:
        """Whether a line is to be parsed."""
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
        return self.key(words[2]) is not None

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
    """The lines of these families alone, TYPE lines with them: what is worth storing of a page."""
    return "\n".join(_kept(text, _Sieve(families)))


def _kept(text: str, sieve: _Sieve) -> Iterator[str]:
    for raw in text.split("\n"):
        line = raw.strip()
        if line and sieve.keeps(line):
            yield line


def read(text: str, families: Collection[str]) -> Page:
    """Read the series of these families off a page of Prometheus' text format or of OpenMetrics.

    Refuses nothing: a line that cannot be read is counted. Of a series that stands there twice the later value holds.
    """
    sieve = _Sieve(families)
    lines = list(_kept(text, sieve))
    series: dict[str, dict[tuple[tuple[str, str], ...], Series]] = {}
    samples = list(_parsed(lines, sieve))
    for sample in samples:
        key = sieve.key(sample.name)
        value = _number(sample.value)
        if key is not None and value is not None:
            series.setdefault(key, {})[tuple(sorted(sample.labels.items()))] = Series(sample.labels, value)
    return Page(
        series={key: list(rows.values()) for key, rows in series.items()},
        names=list(sieve.names),
        ignored=sieve.ignored,
        broken=sieve.broken,
    )


def _parsed(lines: list[str], sieve: _Sieve) -> Iterable[Sample]:
    """All at once; where one of them is broken, one by one."""
    try:
        return list(_samples("\n".join(lines)))
    except _UNREADABLE:
        return list(_one_by_one(lines, sieve))


def _one_by_one(lines: list[str], sieve: _Sieve) -> Iterator[Sample]:
    for line in lines:
        if line.startswith("#"):
            continue
        try:
            yield from list(_samples(line))
        except _UNREADABLE:
            sieve.ignored += 1
            sieve.broken += 1


def _samples(text: str) -> Iterator[Sample]:
    for family in text_string_to_metric_families(text):
        yield from family.samples


def _number(value: float) -> float | None:
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
