"""What each chart draws: series of numbers with their units and borders, from a Run and what its records told.

No words and no colours: a `look` says what a series, a band or a level is, `pictures` names it, the page draws it.
Seconds count from the end of the asked warm-up, as everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from nilometer.core.clock import NS_PER_MS, NS_PER_S
from nilometer.core.run import Run
from nilometer.core.summary import Distribution
from nilometer.metrics.quantiles import Floats, Ints
from nilometer.metrics.table import NONE, Mask, Table
from nilometer.metrics.window import Stretch, stretch_of
from nilometer.text.units import Scale, latency_scale

from . import lttb
from .gather import Gathered, span_of

MOST_POINTS = 2_000
"""Of one chart; shared by the runs of a report."""
LEAST_POINTS = 200
MOST_FAILED = 300
PERCENTS = [*(float(part) for part in range(100)), *(round(99 + part / 10, 1) for part in range(11))]
"""Where a distribution is read: each percent, and each tenth of the last."""
_TAIL = 3.0
"""A slowest request beyond so many times p99 would press all others against the axis."""
LENGTH_GROUPS = 10
_LEAST_OF_A_GROUP = 5
_MARGIN = 1.03
"""Room for a mark at the end of an axis."""


class Series(msgspec.Struct, frozen=True):
    """Points of one kind, x ascending."""

    look: str
    x: list[float]
    y: list[float]


class Band(msgspec.Struct, frozen=True):
    """A stretch of the x axis."""

    look: str
    begin: float
    end: float


class Level(msgspec.Struct, frozen=True):
    """One value across a stretch of the x axis."""

    look: str
    y: float
    begin: float
    end: float


class Plot(msgspec.Struct, frozen=True, kw_only=True):
    """One picture in numbers. `shown` of `total` points are in it."""

    x: tuple[float, float]
    y: tuple[float, float]
    series: list[Series]
    bands: list[Band] = []
    levels: list[Level] = []
    shown: int = 0
    total: int = 0


class Drawn(NamedTuple):
    """All pictures of a report by their names, and the unit of each latency in them: the same for all runs.

    `ttft-0` is that of the first run, `spread_ttft` of all; a name is missing where there is nothing to draw.
    """

    plots: dict[str, Plot]
    scales: dict[str, Scale]


class Seconds(NamedTuple):
    """The borders of a run, in seconds from the end of the asked warm-up."""

    begin: float
    window: tuple[float, float]
    stop: float
    end: float


def draw(runs: Sequence[Run], seen: Sequence[Gathered]) -> Drawn:
    """Every picture there can be of these runs, whose records told `seen`; pictures of one kind on one y axis."""
    pairs = [(run, one.table) for run, one in zip(runs, seen, strict=True)]
    scales = {name: _scale(runs, name) for name in ("ttft", "tpot", "e2e")}
    most = max(MOST_POINTS // len(runs), LEAST_POINTS)
    ttft, e2e = scales["ttft"], scales["e2e"]
    kinds: dict[str, list[Plot | None]] = {
        "ttft": [latency(run, table, "ttft", ttft, most) for run, table in pairs],
        "e2e": [latency(run, table, "e2e", e2e, most) for run, table in pairs],
        "in_flight": [per_second(run, "in_flight", most // 2) for run in runs],
        "tokens": [per_second(run, "output_tokens", most // 2) for run in runs],
        "length": [by_length(run, table, ttft, most // 2) for run, table in pairs],
    }
    plots = {f"{kind}-{i}": plot for kind, of_runs in kinds.items() for i, plot in enumerate(alike(of_runs))}
    plots |= {f"spread_{name}": spread(pairs, name, scales[name]) for name in scales}
    return Drawn({name: plot for name, plot in plots.items() if plot is not None}, scales)


def _scale(runs: Sequence[Run], name: str) -> Scale:
    """s or ms for all runs."""
    return latency_scale(run.summary.latency_ms.get(name, Distribution()).p95 for run in runs)


def seconds_of(run: Run) -> Seconds:
    """Where the run, its window and its load begin and end."""
    phases, window = run.phases, run.summary.window
    begin, stop, end = (
        (at_ns - phases.measured_ns) / NS_PER_S for at_ns in (phases.start_ns, phases.stop_ns, phases.end_ns)
    )
    window_end = end if window.end_s is None else window.end_s
    return Seconds(begin, (window.start_s, window_end), stop, max(end, window_end))


def stretch(run: Run, table: Table) -> Stretch:
    """Who is in the window."""
    return stretch_of(span_of(run), table)


def latency(run: Run, table: Table, name: str, scale: Scale, most: int = MOST_POINTS) -> Plot | None:
    """Each request's `name` at the moment it started: ok in the window, ok outside it, failed (how long it took).

    None where no ok request has it.
    """
    values = table.latency(name) / NS_PER_MS / scale.ms
    ok = table.of("ok") & ~np.isnan(values)
    if not ok.any():
        return None
    failed = (table.of("error") | table.of("incomplete")) & ~np.isnan(table.latency("e2e"))
    inside = stretch(run, table).measured
    took = np.where(failed, table.latency("e2e") / NS_PER_MS / scale.ms, values)
    at_s = (table.start_ns - run.phases.measured_ns) / NS_PER_S
    room = max(most - most // 4, most - int((ok & ~inside).sum()))
    kinds: list[tuple[str, Mask, int]] = [
        ("outside", ok & ~inside, max(most // 4, most - int((ok & inside).sum()))),
        ("ok", ok & inside, room),
        ("failed", failed, min(MOST_FAILED, most)),
    ]
    series = [_points(look, at_s[keep], took[keep], room) for look, keep, room in kinds if keep.any()]
    borders, drawn = seconds_of(run), [y for one in series for y in one.y]
    levels = list(_percentiles(run, name, scale))
    return Plot(
        x=(borders.begin, borders.end),
        y=(0.0, _top(drawn, levels)),
        series=series,
        bands=list(bands(run)),
        levels=levels,
        shown=len(drawn),
        total=int(sum(keep.sum() for _, keep, _ in kinds)),
    )


def per_second(run: Run, what: str, most: int = MOST_POINTS) -> Plot | None:
    """`in_flight` or `output_tokens` of each second of the run; None where no second is known."""
    timeline = run.summary.timeline
    if not timeline:
        return None
    at_s = np.array([second.at_s for second in timeline], dtype=np.float64)
    values = np.array([getattr(second, what) for second in timeline], dtype=np.float64)
    borders, levels = seconds_of(run), list(_asked(run, what))
    return Plot(
        x=(borders.begin, borders.end),
        y=(0.0, _top(values.tolist(), levels)),
        series=[_points("line", at_s, values, most)],
        bands=list(bands(run)),
        levels=levels,
        shown=min(len(at_s), most),
        total=len(at_s),
    )


def by_length(run: Run, table: Table, scale: Scale, most: int = MOST_POINTS) -> Plot | None:
    """TTFT of each request of the figures over the tokens of its prompt, and the median by tenths of the lengths.

    None where there are no two lengths.
    """
    lengths, ttft = lengths_and_ttft(run, table)
    if len(lengths) == 0 or lengths[0] == lengths[-1]:
        return None
    ttft = ttft / scale.ms
    medians = [(float(np.median(lengths[part])), float(np.median(ttft[part]))) for part in tenths(lengths)]
    points = _points("ok", lengths, ttft, most)
    series = [points]
    if len(medians) > 1:
        series.append(Series("median", [_short(x) for x, _ in medians], [_short(y) for _, y in medians]))
    return Plot(
        x=(0.0, float(lengths[-1]) * _MARGIN),
        y=(0.0, max(points.y)),
        series=series,
        shown=len(points.x),
        total=len(lengths),
    )


def lengths_and_ttft(run: Run, table: Table) -> tuple[Floats, Floats]:
    """Prompt tokens (as got, else as asked) and TTFT in ms of the requests of the figures, by length."""
    lengths = np.where(table.prompt_tokens != NONE, table.prompt_tokens, table.asked_input)
    ttft = table.latency("ttft")
    known = stretch(run, table).measured & (lengths != NONE) & ~np.isnan(ttft)
    order = np.lexsort((ttft[known], lengths[known]))
    return lengths[known][order].astype(np.float64), ttft[known][order] / NS_PER_MS


def tenths(lengths: Floats) -> Iterator[slice]:
    """Up to ten groups of neighbours, none of which parts requests of one length; `lengths` ascend."""
    groups = max(min(LENGTH_GROUPS, len(lengths) // _LEAST_OF_A_GROUP), 1)
    borders = [0, *(round(len(lengths) * part / groups) for part in range(1, groups)), len(lengths)]
    whole: Ints = np.unique(np.searchsorted(lengths, lengths[[min(at, len(lengths) - 1) for at in borders[:-1]]]))
    for begin, end in zip(whole.tolist(), [*whole.tolist()[1:], len(lengths)], strict=True):
        yield slice(begin, end)


def spread(runs: Sequence[tuple[Run, Table]], name: str, scale: Scale) -> Plot | None:
    """The percent of requests whose `name` was no longer than x: a line for each run, of the ok ones in its window.

    None where no run has it. What lies far beyond p99 is left out, and `shown` is then less than `total`.
    """
    series, far, total = [], [], 0
    for number, (run, table) in enumerate(runs):
        values = values_ms(run, table, name) / scale.ms
        if len(values):
            at = np.percentile(values, PERCENTS)
            series.append(Series(f"run{number}", [_short(value) for value in at], PERCENTS))
            far.append((float(values.max()), float(np.percentile(values, 99))))
            total += len(values)
    if not series:
        return None
    end = max(most if most <= _TAIL * p99 else _TAIL / 2 * p99 for most, p99 in far)
    return Plot(
        x=(0.0, end),
        y=(0.0, 100.0),
        series=series,
        levels=[Level("p50", 50.0, 0.0, end), Level("p95", 95.0, 0.0, end)],
        shown=total if max(most for most, _ in far) <= end else 0,
        total=total,
    )


def values_ms(run: Run, table: Table, name: str) -> Floats:
    """One latency of the ok requests of the window, in ms."""
    values = table.latency(name)[stretch(run, table).measured]
    known: Floats = values[~np.isnan(values)] / NS_PER_MS
    return known


def bands(run: Run) -> Iterator[Band]:
    """Warm-up, window, drain, and what of the measured stretch is not in the window."""
    borders = seconds_of(run)
    start, end = borders.window
    stop = max(borders.stop, end)
    for look, begin, until in (
        ("warmup", borders.begin, 0.0),
        ("left_out", 0.0, start),
        ("window", start, end),
        ("left_out", end, stop),
        ("drain", stop, borders.end),
    ):
        if until > begin:
            yield Band(look, round(begin, 2), round(until, 2))


def alike(plots: Sequence[Plot | None]) -> list[Plot | None]:
    """The same pictures with one y axis for all, so that they can be held against each other."""
    most = max((plot.y[1] for plot in plots if plot is not None), default=0.0)
    return [None if plot is None else msgspec.structs.replace(plot, y=(0.0, most)) for plot in plots]


def _percentiles(run: Run, name: str, scale: Scale) -> Iterator[Level]:
    """p50 and p95 of the table, over the window they are of."""
    found = run.summary.latency_ms.get(name, Distribution())
    for look, value in (("p50", found.p50), ("p95", found.p95)):
        if value is not None:
            yield Level(look, _short(value / scale.ms), *seconds_of(run).window)


def _asked(run: Run, what: str) -> Iterator[Level]:
    """What a closed loop was asked to keep in flight; the throughput of the window."""
    load, rate = run.spec.load, run.summary.throughput.output_tokens_per_s
    borders = seconds_of(run)
    if what == "in_flight" and not load.is_open and load.concurrency is not None:
        yield Level("asked", float(load.concurrency), borders.begin, borders.end)
    if what == "output_tokens" and rate is not None:
        yield Level("mean", _short(rate), *borders.window)


def _top(drawn: Sequence[float], levels: Sequence[Level]) -> float:
    return max([*drawn, *(level.y for level in levels)])


def _points(look: str, x: Floats, y: Floats, most: int) -> Series:
    """At most `most` of them, in order of x."""
    order = np.argsort(x, kind="stable")
    x, y = x[order], y[order]
    kept = lttb.chosen(x, y, max(most, 3))
    return Series(look, [round(value, 2) for value in x[kept].tolist()], [_short(value) for value in y[kept].tolist()])


def _short(value: float) -> float:
    """Four digits: finer than a screen can show, and half the bytes."""
    return float(f"{value:.4g}")
