"""The one table of a run: a row for each latency that says something of its own, n and percentiles across."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from nilometer.core.summary import Distribution, Summary
from nilometer.metrics.catalogue import METRICS
from nilometer.text import units
from nilometer.text.i18n import Catalogue

from .document import Cell, Column, Table

_ALWAYS = ("ttft", "tpot", "e2e")
_NEVER = ("connect", "ttft_from_sent", "e2e_from_sent")
"""In the machine form only: no part of what a user of the service feels, or the same from another start."""
PERCENTILES = ("p50", "p95", "p99")
MARK = "*"
"""Hangs behind a percentile with too few samples above it."""
ESTIMATE = "~"
"""Stands before every figure that rests on estimated token counts."""


def of(summary: Summary, words: Catalogue) -> Table:
    """TTFT, TPOT and E2E always, `-` where not measured; TTFA, ITL or frame gap, start lag, refill where they add."""
    names = rows_of(summary)
    legend = legend_few([summary.latency_ms], [(name, stat) for name in names for stat in PERCENTILES], words)
    legend += [f"{ESTIMATE} {words.say('screen.legend_estimated')}"] if estimated(summary) else []
    return Table(
        columns=[
            Column("", "left"),
            Column("", "left"),
            Column("n", "right"),
            *(Column(percentile, "decimal") for percentile in PERCENTILES),
        ],
        rows=[_row(name, summary.latency_ms, words) for name in names],
        legend=legend,
    )


def estimated(summary: Summary) -> bool:
    """Whether any token count of the window is an estimate."""
    return summary.lengths.token_source.get("estimated", 0) > 0


def rows_of(summary: Summary) -> list[str]:
    """The names of the latencies to show, in the order of the catalogue, which is that of every screen."""
    names = [metric.name for metric in METRICS if metric.scope == "latency_ms"]
    return [name for name in names if name in _ALWAYS or (name not in _NEVER and _adds(name, summary.latency_ms))]


def _adds(name: str, latency: dict[str, Distribution]) -> bool:
    """Whether a row would say what no other row says."""
    if name == "ttfa":
        return _differs(latency.get("ttfa"), latency.get("ttft"))
    if name == "frame_gap" and _measured(latency.get("itl")):
        return False
    return _measured(latency.get(name))


def value(latency_ms: Mapping[str, Distribution], name: str, stat: str) -> float | None:
    """One percentile of one latency in ms; None where it was not measured."""
    found: float | None = getattr(latency_ms.get(name, Distribution()), stat)
    return found


def legend_few(
    rows: Iterable[Mapping[str, Distribution]], columns: Sequence[tuple[str, str]], words: Catalogue
) -> list[str]:
    """What the mark of too few samples means, where a figure of these columns has it."""
    marked = any(stat in row.get(name, Distribution()).marked for row in rows for name, stat in columns)
    return [f"{MARK} {words.say('screen.legend_few')}"] if marked else []


def figure(latency_ms: Mapping[str, Distribution], name: str, stat: str, scale: units.Scale) -> Cell:
    """One percentile of one latency in the unit of the scale, with the mark of too few samples."""
    found = value(latency_ms, name, stat)
    return Cell(scale.show(found), MARK if found is not None and stat in latency_ms[name].marked else "")


def _row(name: str, latency_ms: Mapping[str, Distribution], words: Catalogue) -> list[Cell]:
    scale = units.latency_scale([value(latency_ms, name, "p50"), value(latency_ms, name, "p95")])
    return [
        Cell(words.say(f"short.{name}")),
        Cell(scale.symbol),
        Cell(units.count(latency_ms.get(name, Distribution()).n)),
        *(figure(latency_ms, name, percentile, scale) for percentile in PERCENTILES),
    ]


def _measured(distribution: Distribution | None) -> bool:
    return distribution is not None and distribution.n != 0 and distribution.p50 is not None


def _differs(one: Distribution | None, other: Distribution | None) -> bool:
    if one is None or not _measured(one):
        return False
    return other is None or any(getattr(one, name) != getattr(other, name) for name in (*PERCENTILES, "n"))
