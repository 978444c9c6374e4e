"""Figures as genai-perf and aiperf write them: `{"unit": "ms", "avg": 18.0, "p50": 17.9, ...}`, each with its unit."""

from __future__ import annotations

from nilometer.core.summary import Distribution, Length

from .fields import Fields
from .figures import FACTORS, of
from .told import Notes

_STATS = {
    "mean": "avg",
    "sd": "std",
    "min": "min",
    "p50": "p50",
    "p90": "p90",
    "p95": "p95",
    "p99": "p99",
    "max": "max",
}
_PER_SECOND = ("tokens/sec", "requests/sec", "tokens/s", "requests/s")
BYTES = {"B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1024.0, "MiB": 1024.0**2, "GiB": 1024.0**3}


class Measured:
    """The metrics of one file by their names."""

    def __init__(self, fields: Fields, notes: Notes) -> None:
        self._fields = fields
        self._notes = notes

    def latency(self, name: str, n: int | None) -> Distribution:
        """In ms; `count` where the metric has one."""
        metric = self._fields.under(name)
        factor = self._factor(metric, name, FACTORS)
        counted = metric.whole("count")
        return Distribution() if factor is None else of(metric, _STATS, n if counted is None else counted, factor)

    def length(self, name: str) -> Length:
        """In tokens."""
        metric = self._fields.under(name)
        found = {stat: metric.number(_STATS[stat]) for stat in ("mean", "p50", "p95")}
        return Length(max=metric.whole("max"), **found)

    def mean(self, name: str) -> float | None:
        """A figure without a time unit: a count, or a mean."""
        return self._fields.under(name).number("avg")

    def count(self, name: str) -> int | None:
        """A whole one."""
        return self._fields.under(name).whole("avg")

    def per_second(self, name: str) -> float | None:
        """A rate over the run."""
        metric = self._fields.under(name)
        return None if self._factor(metric, name, dict.fromkeys(_PER_SECOND, 1.0)) is None else metric.number("avg")

    def seconds(self, name: str) -> float | None:
        """A span."""
        metric = self._fields.under(name)
        factor, value = self._factor(metric, name, FACTORS), metric.number("avg")
        return None if factor is None or value is None else value * factor / 1e3

    def _factor(self, metric: Fields, name: str, known: dict[str, float]) -> float | None:
        """What a unit holds of ours; None, and noted, where nobody knows it. A metric that is not there has none."""
        if not metric:
            return None
        unit = metric.text("unit") or ""
        if unit not in known:
            self._notes.odd("import_unit_unknown", f"{name} ({unit})")
        return known.get(unit)
