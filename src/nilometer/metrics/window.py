"""Which stretch of a run the figures are of, and whether the service was steady in it.

`auto` cuts what MSER-5 takes for warm-up beyond the asked one; `A..B` and `guide` are as asked; `count` holds all
measured requests, `plan` all that a load of changing rate brought. A request belongs to the window by its start, a
token by its arrival.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

import numpy as np

from nilometer.core.clock import NS_PER_S
from nilometer.core.errors import SpecError
from nilometer.core.run import Phases
from nilometer.core.spec import Load

from . import trend
from .quantiles import Floats, Ints
from .table import NONE, Mask, Table

RuleName = Literal["auto", "guide", "asked", "count", "plan"]

GUIDE_S = (60.0, 180.0)
"""The guide's window, in seconds from the end of its 60 s of warm-up."""
GUIDE_WARMUP_S = 60.0
GUIDE_MEASURED_S = 180.0
LEAST_REQUESTS = 50
"""Fewer ok requests in the window are too few to say whether it was steady."""
_BORDERS = re.compile(r"(\d+(?:\.\d+)?)s?\.\.(\d+(?:\.\d+)?)s?")


class Rule(NamedTuple):
    """How the window is chosen; `borders_s` from the end of the asked warm-up, None where the run decides."""

    name: RuleName
    borders_s: tuple[float, float] | None = None


class Span(NamedTuple):
    """The window on the run's clock, `[start, end)`. `cut_ns` is what was cut beyond the asked warm-up."""

    start_ns: int
    end_ns: int
    cut_ns: int = 0

    @property
    def length_s(self) -> float:
        return (self.end_ns - self.start_ns) / NS_PER_S

    def holds(self, moments_ns: Ints) -> Mask:
        """Which of these moments lie in it; NONE lies nowhere."""
        held: Mask = (moments_ns >= self.start_ns) & (moments_ns < self.end_ns)
        return held


class Stretch(NamedTuple):
    """The window and who is in it: `started` the requests that start in it, `measured` the ok ones of them."""

    span: Span
    started: Mask
    measured: Mask


def parse(text: str) -> Rule:
    """The rule that `auto`, `count`, `guide` or `A..B` (seconds) names; slug `window_invalid` for anything else."""
    text = text.strip()
    if text in ("auto", "count"):
        return Rule("auto" if text == "auto" else "count")
    if text == "guide":
        return Rule("guide", GUIDE_S)
    borders = _BORDERS.fullmatch(text)
    if borders is None or float(borders[1]) >= float(borders[2]):
        raise SpecError("window_invalid", text=text)
    return Rule("asked", (float(borders[1]), float(borders[2])))


def rule_of(load: Load) -> Rule:
    """The rule of a load: its own. Where nothing was said: `count` with a number of requests, `plan` with a shape."""
    rule = parse(load.window)
    if rule.name != "auto":
        return rule
    return Rule("count") if load.requests is not None else Rule("plan") if load.varies else rule


def choose(rule: Rule, phases: Phases, table: Table) -> Span:
    """The window of a run. It ends with the asked load at the latest, and is empty where that ended before it began."""
    measured, stop = phases.measured_ns, max(phases.stop_ns, phases.measured_ns)
    if rule.borders_s is not None:
        start, end = (measured + round(border * NS_PER_S) for border in rule.borders_s)
        end = min(end, stop)
        return Span(min(start, end), end)
    if rule.name == "count":
        return Span(measured, _last_end_ns(table, stop))
    if rule.name == "plan":
        return Span(measured, stop)
    cut = min(max(_warmup_end_ns(phases, table) - measured, 0), stop - measured)
    return Span(measured + cut, stop, cut)


def stretch_of(span: Span, table: Table) -> Stretch:
    """Who starts in the window; a request that never got to start (no connection) counts by its phase."""
    start = table.start_ns
    started = span.holds(start)
    if span.end_ns > span.start_ns:
        started |= (start == NONE) & table.in_phase("measured")
    return Stretch(span, started, started & table.of("ok"))


def is_steady(table: Table, measured: Mask) -> bool | None:
    """Whether the latencies of these (ok) requests showed no drift; None where they are too few to tell.

    A drift is one that Kendall's test on 10 blocks finds (p < .05 over all series looked at) and that exceeds 5 % of
    the median over the window.
    """
    if int(measured.sum()) < LEAST_REQUESTS:
        return None
    series = _series(table, measured)
    return not any(trend.drift(values).is_real(trend.DRIFT_P / len(series)) for values in series)


def _series(table: Table, measured: Mask) -> list[Floats]:
    """TTFT and TPOT in the order of starts, where (nearly) all requests have them; else E2E."""
    order = np.argsort(table.start_ns[measured], kind="stable")
    columns = [table.latency(name)[measured][order] for name in ("ttft", "tpot")]
    known = [column[~np.isnan(column)] for column in columns]
    full = [column for column in known if len(column) >= LEAST_REQUESTS]
    return full or [table.latency("e2e")[measured][order]]


def _last_end_ns(table: Table, otherwise_ns: int) -> int:
    """Just after the last byte of the measured requests, so that this byte lies inside."""
    ends = table.end_ns[table.in_phase("measured") & (table.end_ns != NONE)]
    return int(ends.max()) + 1 if len(ends) else otherwise_ns


def _warmup_end_ns(phases: Phases, table: Table) -> int:
    """Where MSER-5 sees the end of the warm-up, in TTFT (E2E without streaming) and in completions per second."""
    ok = table.of("ok")
    return max(_settled_latency_ns(phases, table, ok), _settled_completions_ns(phases, table, ok))


def _settled_latency_ns(phases: Phases, table: Table, ok: Mask) -> int:
    ok = ok & (table.start_ns >= phases.start_ns) & (table.start_ns < phases.stop_ns)
    name = "ttft" if (~np.isnan(table.latency("ttft")[ok])).any() else "e2e"
    known = ok & ~np.isnan(table.latency(name))
    starts = table.start_ns[known]
    order = np.argsort(starts, kind="stable")
    cut = trend.warmup(table.latency(name)[known][order])
    return int(starts[order][cut]) if cut else phases.start_ns


def _settled_completions_ns(phases: Phases, table: Table, ok: Mask) -> int:
    seconds = max(phases.stop_ns - phases.start_ns, 0) // NS_PER_S
    at = (table.end_ns[ok & (table.end_ns != NONE)] - phases.start_ns) // NS_PER_S
    at = at[(at >= 0) & (at < seconds)]
    per_second = np.bincount(at, minlength=int(seconds)).astype(np.float64)
    return phases.start_ns + trend.warmup(per_second) * NS_PER_S
