"""A server's metrics page in memory: the series of the families that are asked for, and a count of what was left.

Takes text and gives values; knows no engine and no meaning. It lives here and not in `wire`: the parser it uses brings
sockets and a web server with it, which the load's hot path must not load.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from .page_lines import Sieve

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


def read(text: str, families: Collection[str]) -> Page:
    """Read the series of these families off a page of Prometheus' text format or of OpenMetrics.

    Refuses nothing: a line that cannot be read is counted. Of a series that stands there twice the later value holds.
    """
    sieve = Sieve(families)
    lines = list(sieve.kept(text))
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


def _parsed(lines: list[str], sieve: Sieve) -> Iterable[Sample]:
    """All at once; where one of them is broken, one by one."""
    try:
        return list(_samples("\n".join(lines)))
    except _UNREADABLE:
        return list(_one_by_one(lines, sieve))


def _one_by_one(lines: list[str], sieve: Sieve) -> Iterator[Sample]:
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
