"""Where numbers become words, and nowhere else: grouping, units, percent, durations.

Pure functions of one value. What was not measured (None, or not a number) is `-`, never 0. Nothing here knows a
language: units are symbols (ms, s, %, GiB) that read the same in all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import NamedTuple

NOT_MEASURED = "-"


class Scale(NamedTuple):
    """The unit a row of latencies is shown in: `symbol`, how many ms it holds, decimals of every figure of the row."""

    symbol: str
    ms: float
    decimals: int

    def show(self, value_ms: float | None) -> str:
        """The figure without its unit, which stands in the row's head."""
        return fixed(None if value_ms is None else value_ms / self.ms, self.decimals)


def latency_scale(values_ms: Iterable[float | None]) -> Scale:
    """One scale for a row: s from a median figure of 1,000 ms on, else ms; more decimals where all is below 1 ms."""
    known = sorted(value for value in values_ms if value is not None and math.isfinite(value))
    middle = known[len(known) // 2] if known else 0.0
    if middle >= 1_000:
        return Scale("s", 1_000.0, 1 if middle >= 100_000 else 2)
    return Scale("ms", 1.0, 2 if known and known[-1] < 1 else 1)


def fixed(value: float | None, decimals: int) -> str:
    """Grouped by thousands with a fixed number of decimals: `2,610`, `23.1`."""
    if value is None or not math.isfinite(value):
        return NOT_MEASURED
    text = f"{value:,.{decimals}f}"
    return text.lstrip("-") if not text.strip("-0.,") else text


def count(value: float | None) -> str:
    """A whole number, grouped: `2,610`."""
    return fixed(value, 0)


def rate(value: float | None) -> str:
    """A rate to three digits or whole: `2,610`, `43.3`, `4.81`, `0`."""
    return fixed(value, 0 if not value or abs(value) >= 99.95 else 1 if abs(value) >= 9.995 else 2)


def brief(value: float | None) -> str:
    """A rate for a sentence, two digits or whole: `650`, `43`, `4.8`, `0.52`, `0`."""
    return fixed(value, 0 if not value or abs(value) >= 9.95 else 1 if abs(value) >= 0.995 else 2)


def percent(share: float | None) -> str:
    """A share of 1 as percent: `0.5 %`, `1 %`, `11 %`. No rest and no lack is rounded away: `<0.1 %`, `99.9 %`."""
    if share is None or not math.isfinite(share):
        return NOT_MEASURED
    part = share * 100
    if 0 < abs(part) < 0.05:
        return "<0.1 %" if part > 0 else ">-0.1 %"
    if 99.5 <= part < 100:
        return f"{min(part, 99.9):.1f} %"
    whole = abs(part) >= 9.95 or abs(part - round(part)) < 1e-9
    return f"{fixed(part, 0 if whole else 1)} %"


def change(share: float | None) -> str:
    """A relative difference with its sign: `+0.4 %`, `-12 %`, `0 %`."""
    text = percent(share)
    return f"+{text}" if share is not None and share > 0 and text[0].isdigit() else text


def latency(value_ms: float | None) -> str:
    """A latency with its unit for a sentence: `0.42 ms`, `23.1 ms`, `480 ms`, `3.15 s`."""
    if value_ms is None or not math.isfinite(value_ms):
        return NOT_MEASURED
    if abs(value_ms) >= 999.5:
        return f"{fixed(value_ms / 1_000, 1 if abs(value_ms) >= 99_950 else 2)} s"
    decimals = 0 if abs(value_ms) >= 99.95 else 1 if abs(value_ms) >= 9.995 else 2
    return f"{fixed(value_ms, decimals)} ms"


def seconds(value_s: float | None) -> str:
    """Seconds as asked for, without idle decimals: `60 s`, `2.5 s`."""
    return NOT_MEASURED if value_s is None or not math.isfinite(value_s) else f"{plain(round(value_s, 2))} s"


def mean(value: float | None) -> str:
    """A mean length in tokens: whole where it is whole, else one decimal; `514`, `127.6`, `2,610`."""
    whole = value is None or not math.isfinite(value) or abs(value - round(value)) < 0.05 or abs(value) >= 999.5
    return fixed(value, 0 if whole else 1)


def moment(wall_ns: int) -> str:
    """A moment of the wall clock in UTC: `2026-08-14 09:26:53 UTC`."""
    return datetime.fromtimestamp(wall_ns // 1_000_000_000, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def clock(value_s: float | None) -> str:
    """Time that passes, as a clock shows it: `01:12`, `1:02:33`. Whole seconds, rounded down."""
    if value_s is None or not math.isfinite(value_s):
        return NOT_MEASURED
    sign, whole = ("-", int(-value_s)) if value_s <= -1 else ("", int(max(value_s, 0)))
    hours, rest = divmod(whole, 3_600)
    minutes, left = divmod(rest, 60)
    return f"{sign}{hours}:{minutes:02}:{left:02}" if hours else f"{sign}{minutes:02}:{left:02}"


def size(value_bytes: float | None) -> str:
    """Bytes in binary units, three digits: `512 B`, `640 MiB`, `1.91 GiB`."""
    if value_bytes is None or not math.isfinite(value_bytes):
        return NOT_MEASURED
    value, units = float(value_bytes), ["B", "KiB", "MiB", "GiB", "TiB"]
    while abs(value) >= 1_023.5 and len(units) > 1:
        value, units = value / 1_024, units[1:]
    return f"{fixed(value, 0)} B" if units[0] == "B" else f"{rate(value)} {units[0]}"


def about(value: float | None) -> str:
    """A foretold amount, rounded on purpose: `420`, `13 k`, `0.8 M`, `12 M`."""
    if value is None or not math.isfinite(value):
        return NOT_MEASURED
    if value >= 499_500:
        return f"{fixed(value / 1e6, 1 if value < 9_950_000 else 0)} M"
    return f"{fixed(value / 1e3, 1 if value < 9_950 else 0)} k" if value >= 999.5 else count(value)


def money(value: float | None) -> str:
    """An amount of money to two decimals, a smaller one to two digits: `1,250.00`, `0.31`, `0.0042`, `0`."""
    if value is None or not math.isfinite(value):
        return NOT_MEASURED
    if not 0 < abs(value) < 0.095:
        return fixed(value, 2 if value else 0)
    return fixed(value, min(1 - math.floor(math.log10(abs(value))), 12))


def plain(value: object) -> str:
    """A parameter as it is: text unchanged, whole numbers ungrouped (a port is no amount), others to four digits."""
    if value is None:
        return NOT_MEASURED
    if isinstance(value, float):
        if not math.isfinite(value):
            return NOT_MEASURED
        text = f"{value:.0f}" if abs(value) >= 1_000 else f"{value:.4g}"
        return "0" if text == "-0" else text
    return str(value)


def measured(value: float | str | None, unit: str | None) -> str:
    """A figure of evidence in the unit it is stated in: `ms`, `share` (as percent), `bytes`, or any other as it is."""
    if isinstance(value, str) or value is None:
        return plain(value)
    if unit in _OF_UNIT:
        return _OF_UNIT[unit](value)
    figure = rate(value) if isinstance(value, float) else plain(value)
    return f"{figure} {unit}" if unit else figure


_OF_UNIT: dict[str | None, Callable[[float | None], str]] = {
    "ms": latency,
    "s": seconds,
    "share": percent,
    "ratio": percent,
    "bytes": size,
}

FORMATS: dict[str, Callable[[float | None], str]] = {
    "count": count,
    "rate": rate,
    "brief": brief,
    "mean": mean,
    "percent": percent,
    "change": change,
    "latency": latency,
    "seconds": seconds,
    "clock": clock,
    "size": size,
    "about": about,
    "money": money,
}
"""What a sentence may ask for behind a parameter's name: `{share:percent}`, `{lag_ms:latency}`."""


def worded(value: object, how: str) -> str:
    """`value` in one of FORMATS; `of|request|requests` counts in words of English. Text passes through unchanged."""
    if isinstance(value, str) or not how:
        return plain(value)
    if not (value is None or isinstance(value, int | float)):
        raise TypeError(f"{value!r} is neither a number nor text")
    if how.startswith("of|"):
        _, one, many = how.split("|")
        return f"{count(value)} {one if value == 1 else many}"
    return FORMATS[how](value)
