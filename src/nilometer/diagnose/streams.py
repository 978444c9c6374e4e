"""The streams of one run as arrays: when each began and ended to speak, its gaps, and how many did so at a time.

Made in one pass over the records, from the columns and frames of `metrics`; all that is dear is reckoned once, on
demand. Rows are requests, all of the run; what is said over time is said of the run's window.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np

from nilometer.core.clock import NS_PER_MS, NS_PER_S
from nilometer.core.record import Record
from nilometer.core.run import Run
from nilometer.metrics import window
from nilometer.metrics.collect import Seen, collect
from nilometer.metrics.quantiles import Floats, Ints, Ints32, percentile
from nilometer.metrics.table import NONE, Mask, Table
from nilometer.metrics.timeline import flights
from nilometer.metrics.window import Span, Stretch

from .flow import Flow, Spread, flow_of, spread

T = TypeVar("T")

GRID_POINTS = 4096
"""At so many moments of the window the tokens held by the decoding streams are counted."""
SLICE_NS = 250_000_000
"""Token gaps are followed in slices of this length: shorter than a spell of a neighbour's work, longer than a step."""
_MOST_SLICES = 1_000_000
"""A window of more than three days has longer ones."""
LONG_RATIO = 5
LONG_NS = 50_000_000
"""A gap is long above five times the median gap and above 50 ms."""


class Gaps(NamedTuple):
    """Gaps between neighbouring frames of one request that begin in the window, request by request."""

    place: Ints32 | Ints
    """The frame that each begins with, its place in `Streams.at_ns`."""
    length_ns: Ints
    """Not below 0, also where the stamps of two clocks go back."""
    tokens: Floats | None
    """Tokens that a gap stands for: (output tokens - 1) / (frames - 1) of its request, 1 where they are not counted.
    None where that is 1 throughout."""

    @property
    def per_token_ns(self) -> Floats:
        """Length over tokens: its mean over one request is that request's TPOT."""
        each: Floats = self.length_ns / (1.0 if self.tokens is None else self.tokens)
        return each


class Long(NamedTuple):
    """Long gaps: whose (a row of the table), and from when to when."""

    row: Ints
    begin_ns: Ints
    end_ns: Ints


class Spreads(NamedTuple):
    """How the counts of `Flow` were spread over the window; None where that is empty."""

    in_flight: Spread | None
    waiting: Spread | None
    decoding: Spread | None
    full_decoding: Spread | None
    """`decoding`, over the time in which somebody waited for a first token."""


class Slices(NamedTuple):
    """The mean token gap of each slice of the window in which tokens came."""

    place: Ints
    """Which slice, from the start of the window."""
    length_ns: int
    gap_ms: Floats
    first_tokens: Ints
    """First tokens that came in that slice: prompts were worked on until then."""

    @property
    def at_s(self) -> Floats:
        """The middle of each, seconds from the start of the window."""
        middle: Floats = (self.place.astype(np.float64) + 0.5) * (self.length_ns / NS_PER_S)
        return middle


class Streams:
    """One run: its columns, its window, and what follows from both. Stamps in ns, NONE where there is none."""

    def __init__(self, run: Run, seen: Seen, noted: _Noted) -> None:
        self.run, self.seen = run, seen
        self.last_token_ns, self.target, self.status, self.finish, self.replica = noted.columns()
        self.finishes = tuple(noted.finishes)
        """The finish reasons that `finish` gives the place of; `replica` is NONE where the answer did not name it."""
        self._made: dict[Hashable, Any] = {}

    def once(self, make: Callable[..., T], *of: Hashable) -> T:
        """What `make` makes of these streams; several figures share it."""
        key = (make, *of)
        if key not in self._made:
            self._made[key] = make(self, *of)
        made: T = self._made[key]
        return made

    @property
    def table(self) -> Table:
        return self.seen.table

    @cached_property
    def stretch(self) -> Stretch:
        """The window that the run's figures are of, and who starts in it."""
        told, phases = self.run.summary.window, self.run.phases
        if told.end_s is None:
            span = window.choose(window.rule_of(self.run.spec.load), phases, self.table)
        else:
            start, end = (phases.measured_ns + round(border * NS_PER_S) for border in (told.start_s, told.end_s))
            span = Span(start, end)
        return window.stretch_of(span, self.table)

    @property
    def span(self) -> Span:
        return self.stretch.span

    @property
    def measured(self) -> Mask:
        """The ok requests that start in the window."""
        return self.stretch.measured

    @cached_property
    def spoke(self) -> Mask:
        """Requests of which a first token was seen, whatever became of them."""
        mask: Mask = (self.table.sent_ns != NONE) & (self.table.first_token_ns != NONE)
        return mask

    @cached_property
    def flow(self) -> Flow:
        """How many were in flight, waited and decoded at each moment of the window."""
        table = self.table
        sent, end = flights(table, self.run.phases)
        gone = table.sent_ns != NONE
        return flow_of(sent, table.first_token_ns[gone], self.last_token_ns[gone], end, self.span)

    @cached_property
    def at_ns(self) -> Ints:
        """Best stamp of every frame with generated matter, request by request."""
        blocks = self.seen.frames.blocks
        if len(blocks) == 1:
            return blocks[0].at_ns
        return np.concatenate([np.zeros(0, dtype=np.int64), *(block.at_ns for block in blocks)])

    @cached_property
    def first_frame(self) -> Ints:
        """Where in `at_ns` each request begins; one more than there are requests."""
        return np.concatenate([[0], self.table.frames.cumsum()])

    @cached_property
    def tokens_a_gap(self) -> Floats:
        """Of each request, tokens that one of its gaps stands for; 1 where its tokens are not counted."""
        table = self.table
        counted = ~np.isnan(table.latency("tpot")) & (table.frames >= 2)
        each = (table.output_tokens - 1) / np.maximum(table.frames - 1, 1)
        tokens: Floats = np.where(counted, each, 1.0)
        return tokens

    @cached_property
    def gaps(self) -> Gaps:
        """All gaps that begin in the window, of any request."""
        at, frames = self.at_ns, self.table.frames
        if len(at) < 2:
            none = np.zeros(0, dtype=np.int64)
            return Gaps(none, none, None)
        keep = self.span.holds(at[:-1])
        borders = self.first_frame[1:-1]
        keep[borders[(borders > 0) & (borders < len(at))] - 1] = False
        length = np.maximum(at[1:] - at[:-1], 0)[keep]
        place = np.flatnonzero(keep)
        plain = (self.tokens_a_gap[frames >= 2] == 1).all()
        tokens = None if plain else np.repeat(self.tokens_a_gap, frames)[place]
        return Gaps(place.astype(np.int32) if len(at) < 2**31 else place, length, tokens)

    def rows(self, place: Ints32 | Ints) -> Ints:
        """To which request each of these frames belongs."""
        row: Ints = np.searchsorted(self.first_frame, place, side="right") - 1
        return row

    @cached_property
    def gap_p50_p99_ns(self) -> tuple[float, float] | None:
        """Median and p99 of the gaps, frame by frame; None without gaps."""
        return _p50_p99(self.gaps.length_ns)

    @cached_property
    def token_gap_ns(self) -> float | None:
        """Median gap per token over the window; None without gaps."""
        known = self.gap_p50_p99_ns if self.gaps.tokens is None else _p50_p99(self.gaps.per_token_ns)
        return None if known is None else known[0]

    @cached_property
    def long_gaps(self) -> Long:
        """Gaps above LONG_RATIO of the median gap and above LONG_NS."""
        gaps, known = self.gaps, self.gap_p50_p99_ns
        usual_ns = 0.0 if known is None else known[0]
        chosen = np.flatnonzero(gaps.length_ns > max(LONG_RATIO * usual_ns, LONG_NS))
        begin = self.at_ns[gaps.place[chosen]]
        return Long(self.rows(gaps.place[chosen]), begin, begin + gaps.length_ns[chosen])

    @cached_property
    def slices(self) -> Slices:
        """The token gap over time, each gap counted where it ends; slices without a token are left out.

        What ends after the window counts nowhere.
        """
        gaps, start = self.gaps, self.span.start_ns
        width = max(SLICE_NS, (self.span.end_ns - start) // _MOST_SLICES)
        n = max(-(-(self.span.end_ns - start) // width), 0)
        place = np.minimum((self.at_ns[gaps.place] + gaps.length_ns - start) // width, n)
        length = np.bincount(place, weights=gaps.length_ns, minlength=n)[:n]
        tokens = np.bincount(place, weights=gaps.tokens, minlength=n)[:n]
        first = self.table.first_token_ns[self.spoke & self.span.holds(self.table.first_token_ns)]
        firsts = np.bincount((first - start) // width, minlength=n)
        seen = np.flatnonzero(tokens > 0)
        return Slices(seen, width, length[seen] / tokens[seen] / NS_PER_MS, firsts[seen])

    @cached_property
    def spreads(self) -> Spreads:
        """Means and spreads of the counts over the window."""
        flow = self.flow
        length = flow.length_ns
        return Spreads(
            in_flight=spread(flow.in_flight, length),
            waiting=spread(flow.waiting, length),
            decoding=spread(flow.decoding, length),
            full_decoding=spread(flow.decoding, length, flow.waiting > 0),
        )

    @cached_property
    def grid_ns(self) -> Ints:
        """Evenly spaced moments of the window, GRID_POINTS of them."""
        span = self.span
        step = max((span.end_ns - span.start_ns) // GRID_POINTS, 1)
        return span.start_ns + step // 2 + step * np.arange(GRID_POINTS, dtype=np.int64)

    @cached_property
    def held_tokens(self) -> Floats:
        """Prompt and output tokens held by the decoding streams at each moment of the grid.

        A stream holds its prompt from its first token on, each output token from its arrival, and nothing after its
        last. Prompts that are not counted hold nothing, frames without a count hold one token each.
        """
        table, spoke, grid = self.table, self.spoke, self.grid_ns
        prompt = np.where(table.prompt_tokens == NONE, 0, table.prompt_tokens)[spoke].astype(np.float64)
        arrived, total = self._arrived(grid)
        came = _sum_until(table.first_token_ns[spoke], prompt, grid)
        left = _sum_until(self._left_ns[spoke], prompt + total[spoke], grid)
        held: Floats = np.maximum(came + arrived - left, 0.0)
        return held

    @cached_property
    def _left_ns(self) -> Ints:
        """When each stream let go of its tokens: at its last one, at its end where that was not seen."""
        end = np.where(self.table.end_ns == NONE, self.run.phases.end_ns, self.table.end_ns)
        last: Ints = np.where(self.last_token_ns == NONE, end, self.last_token_ns)
        return last

    def _arrived(self, grid: Ints) -> tuple[Floats, Floats]:
        """Output tokens that had streamed in by each moment of the grid, and how many streamed of each request."""
        table = self.table
        counted = np.where(table.output_tokens == NONE, table.frames, table.output_tokens).astype(np.float64)
        counted[~self.spoke] = 0.0
        into, total = np.zeros(len(grid) + 1), np.zeros(len(counted))
        for block, (at, tokens) in zip(self.seen.frames.blocks, self.seen.frames.arrivals(counted), strict=True):
            into += np.bincount(_place(grid, at), weights=tokens, minlength=len(grid) + 1)
            if block.tokens is None:
                total[block.rows] = np.where(block.counts > 0, counted[block.rows], 0.0)
            else:
                sums = np.concatenate([[0.0], tokens.cumsum()])
                ends = block.counts.cumsum()
                total[block.rows] = sums[ends] - sums[ends - block.counts]
        return into[:-1].cumsum(), total


def streams_of(run: Run, records: Iterable[Record]) -> Streams:
    """The streams of a run, from its records in any order; each is looked at once and let go."""
    noted = _Noted()
    seen = collect(noted.noting(records))
    return Streams(run, seen, noted)


class _Noted:
    """What the table of `metrics` does not keep of a request."""

    def __init__(self) -> None:
        self.finishes: dict[str, int] = {}
        self._rows: list[tuple[int, int, int, int, int]] = []

    def noting(self, records: Iterable[Record]) -> Iterator[Record]:
        """The records as they come, looked at in passing."""
        add, finishes = self._rows.append, self.finishes
        for record in records:
            last, status, finish = record.last_token_ns, record.status, record.finish_reason
            replica = record.server.get("replica") if record.server else None
            add(
                (
                    NONE if last is None else last,
                    record.target,
                    NONE if status is None else status,
                    NONE if finish is None else finishes.setdefault(finish, len(finishes)),
                    replica if isinstance(replica, int) else NONE,
                )
            )
            yield record

    def columns(self) -> tuple[Ints, Ints, Ints, Ints, Ints]:
        last, target, status, finish, replica = np.array(self._rows, dtype=np.int64).reshape(-1, 5).T.copy()
        return last, target, status, finish, replica


def _place(grid: Ints, at_ns: Ints) -> Ints:
    """The first moment of an even grid at or after each stamp; len(grid) for what comes later."""
    place: Ints = -((grid[0] - at_ns) // (grid[1] - grid[0]))
    return np.clip(place, 0, len(grid), out=place)


def _p50_p99(values: Floats | Ints) -> tuple[float, float] | None:
    """Both percentiles of a few million values, by a partition of a copy."""
    n = len(values)
    if not n:
        return None
    ranks = {rank for percent in (50, 99) for low in [(n - 1) * percent // 100] for rank in (low, min(low + 1, n - 1))}
    parted: Floats = np.partition(values, sorted(ranks)).astype(np.float64, copy=False)
    middle, tail = percentile(parted, 50), percentile(parted, 99)
    return None if middle is None or tail is None else (middle, tail)


def _sum_until(at_ns: Ints, weights: Floats, grid: Ints) -> Floats:
    """The weights of the stamps up to each moment of the grid, summed."""
    order = np.argsort(at_ns, kind="stable")
    sums = np.concatenate([[0.0], weights[order].cumsum()])
    until: Floats = sums[np.searchsorted(at_ns[order], grid, side="right")]
    return until
