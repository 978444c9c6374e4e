"""The load generator's verdict on itself: did the figures measure the server, or the client?

`gather` reads the signs from columns and health, `reasons` holds them against the limits below; each reason names the
sign that speaks. Kernel stamps make the loop's own lag harmless, unless two frames fell into one read: so with them it
is the reads that tell, without them the lag.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nilometer.core.clock import NS_PER_MS
from nilometer.core.run import Health, Phases
from nilometer.core.spec import Load
from nilometer.core.summary import Distribution, Generator

from .collect import Seen
from .frames import Reads
from .quantiles import Ints, distribution, percentile
from .table import NONE, STAMPS, Mask, Table
from .timeline import flights, in_flight
from .window import Span, Stretch

LATE_READS_SHARE = 0.005
"""Frame gap p99 lives on 1 % of the gaps, and a late read of two frames makes two of them wrong."""
LATE_FRAMES_SHARE = 0.009
"""The same by frames, for reads that hold more than two; a little below 1 %, as some late reads go unnoticed (measured:
gap p99 7 ms off at 0.95 %)."""
LATE_FIRST_SHARE = 0.01
"""TTFT p99 is the client's when more of the first tokens than this came in a late read."""
LEAST_LATE_READS = 2
"""One hiccup is no verdict."""
LIMIT_MS = 5.0
"""The error that must not go unsaid; also the longest own lag that a figure is trusted with."""
LAG_TIME_SHARE = 0.01
"""Without kernel stamps: lag p99 is beyond LIMIT_MS when a frame has this chance of waiting longer."""
LATE_ROWS_SHARE = 0.05
"""Refill p95 is laid to the loop where it was away for longer than LIMIT_MS in this share of the 100 ms rows."""
REFILL_NS_PER_SLOT = 50_000
"""Slots that end together are refilled one after another: reading the last of one response and sending the next request
took 46 us a slot at p95, with 256 slots that ended at the same instant and nothing else at fault."""
ACHIEVED_SHARE = 0.95
TURNAROUND_NS = 1_000_000
"""Up to this much of each refill is no fault: with answers of a few ms it is a large part of the slot's time."""
LEAST_REFILLS = 10
_UNSENT_SHARE = 0.01
"""With more requests than this that found no connection, slots stand idle for the target's sake."""
_UNSTAMPED_SHARE = 0.01
"""From this share of frames without a kernel stamp on, lag is judged as it is without any."""


class Signs(NamedTuple):
    """What can be seen of the generator in a window; None where it cannot."""

    reads: int
    """Reads that brought frames."""
    late_reads: int
    """Of these, reads that came late and held more frames than this server writes at once."""
    frames: int
    late_frames: int
    """Frames in late reads."""
    requests: int
    """Ok requests that streamed."""
    late_first: int
    """First tokens that came in such a read."""
    unstamped_share: float | None
    """Share of the frames without a kernel stamp."""
    lag_time_share: float | None
    """Chance that a moment of the window had to wait longer than LIMIT_MS for the loop."""
    late_rows_share: float | None
    refill_p95_ms: float | None
    """Refill of kept connections."""
    refills: int
    slots: int | None
    achieved: float | None
    idle_share: float | None
    """Closed loop: share of the slots' time that the generator left idle without need."""
    start_lag_p99_ms: float | None
    late_starts: int
    socketless: int
    """Requests for which this machine had no socket left; over the whole run."""


def gather(seen: Seen, stretch: Stretch, load: Load, phases: Phases, health: Health) -> Signs:
    """The signs of one window, from all requests that start in it, whatever became of them."""
    table, reads = seen.table, seen.frames.reads()
    span, started = stretch.span, stretch.started
    late, late_frames, late_first = _late(reads, started)
    rows = _Rows(health, span)
    refill = table.refill_ns[started & (table.refill_ns != NONE) & (table.new_connection == 0)]
    own_lag = _own_start_lag_ns(table, started)
    slots = None if load.is_open else (health.asked_in_flight or load.concurrency)
    achieved, idle = _achieved(table, span, phases, slots, load)
    return Signs(
        reads=int(reads.of_request[started].sum()),
        late_reads=late,
        frames=int(table.frames[started].sum()),
        late_frames=late_frames,
        requests=int((started & table.of("ok") & (table.frames > 0)).sum()),
        late_first=late_first,
        unstamped_share=_unstamped_share(seen, started),
        lag_time_share=rows.lag_time_share(),
        late_rows_share=rows.late_share(),
        refill_p95_ms=_percentile_ms(refill, 95),
        refills=len(refill),
        slots=slots,
        achieved=achieved,
        idle_share=idle,
        start_lag_p99_ms=_percentile_ms(own_lag, 99),
        late_starts=int((own_lag > LIMIT_MS * NS_PER_MS).sum()),
        socketless=health.socketless,
    )


def reasons(signs: Signs) -> list[str]:
    """The signs that call the generator limited, gravest first; their names are those of the evidence."""
    found = {
        "requests_without_socket": signs.socketless > 0,
        "late_reads_share": _reads_late(signs),
        "late_first_tokens_share": _first_tokens_late(signs),
        "loop_lag": _lag_shows(signs),
        "start_lag": (signs.start_lag_p99_ms or 0.0) > LIMIT_MS and signs.late_starts >= LEAST_LATE_READS,
        "refill": _refills_late(signs),
        "achieved_over_asked": signs.idle_share is not None and signs.idle_share > 1 - ACHIEVED_SHARE,
    }
    return [name for name, speaks in found.items() if speaks]


def generator(seen: Seen, stretch: Stretch, load: Load, phases: Phases, health: Health) -> Generator:
    """The verdict with the figures behind it. `unknown` where there was nothing to judge by."""
    signs = gather(seen, stretch, load, phases, health)
    shared = int(seen.frames.reads().shared_of_request[stretch.started].sum())
    rows = _Rows(health, stretch.span)
    return Generator(
        verdict="limited" if reasons(signs) else "fit" if _can_judge(signs) else "unknown",
        cpu_share=rows.cpu_share(),
        loop_lag_ms=_loop_lag(seen, stretch.started, rows),
        shared_reads_share=shared / signs.reads if signs.reads else None,
        late_reads_share=signs.late_reads / signs.reads if signs.reads else None,
        achieved_over_asked=signs.achieved,
        stamp_source=_stamp_source(seen.table, stretch.started),
    )


def _reads_late(signs: Signs) -> bool:
    if signs.late_reads < LEAST_LATE_READS:
        return False
    by_reads = signs.late_reads >= LATE_READS_SHARE * signs.reads
    return by_reads or signs.late_frames >= LATE_FRAMES_SHARE * signs.frames


def _first_tokens_late(signs: Signs) -> bool:
    return signs.late_first >= LEAST_LATE_READS and signs.late_first > LATE_FIRST_SHARE * signs.requests


def _lag_shows(signs: Signs) -> bool:
    if signs.unstamped_share is None or signs.lag_time_share is None or signs.unstamped_share <= _UNSTAMPED_SHARE:
        return False
    return signs.lag_time_share * signs.unstamped_share > LAG_TIME_SHARE


def _refills_late(signs: Signs) -> bool:
    if signs.refill_p95_ms is None or signs.refills < LEAST_REFILLS or signs.late_rows_share is None:
        return False
    allowed_ms = LIMIT_MS + (signs.slots or 0) * REFILL_NS_PER_SLOT / NS_PER_MS
    return signs.refill_p95_ms > allowed_ms and signs.late_rows_share >= LATE_ROWS_SHARE


def _can_judge(signs: Signs) -> bool:
    """Whether stamps can be trusted or the loop's lag is known, for something that was measured."""
    if signs.unstamped_share is not None and signs.unstamped_share <= _UNSTAMPED_SHARE:
        return True
    return signs.late_rows_share is not None and (signs.reads > 0 or signs.achieved is not None)


def _late(reads: Reads, started: Mask) -> tuple[int, int, int]:
    """Late reads with more frames than the server writes at once, the frames they held, the first tokens among them.

    A server (or a proxy) that writes several frames at once makes shared reads in time too: the median of those is what
    it writes, for first tokens apart.
    """
    usual, usual_first = _median_size(reads.sizes), _median_size(reads.first_sizes)
    first = reads.late_first != 0
    ours = started[reads.late_request] & (reads.late_size > np.where(first, usual_first, usual))
    return int(ours.sum()), int(reads.late_size[ours].sum()), int((ours & first).sum())


def _median_size(sizes: Ints) -> int:
    """The frames that the middle read held; 1 where there was none."""
    total = int(sizes.sum())
    return int(np.searchsorted(sizes.cumsum(), (total + 1) // 2)) if total else 1


def _unstamped_share(seen: Seen, started: Mask) -> float | None:
    """Share of the frames in which no kernel stamp stands; None without frames."""
    frames = int(seen.table.frames[started].sum())
    return 1 - seen.frames.stamped(started) / frames if frames else None


def _loop_lag(seen: Seen, started: Mask, rows: _Rows) -> Distribution:
    """Lag of the loop: user minus kernel stamp of each frame; without these its longest absence in each 100 ms."""
    lags = seen.frames.lags_ns(started)
    return distribution(lags if len(lags) else rows.lag_ns)


def _stamp_source(table: Table, started: Mask) -> str | None:
    seen = np.unique(table.stamp_source[started])
    return None if not len(seen) else STAMPS[seen[0]] if len(seen) == 1 else "mixed"


def _percentile_ms(values_ns: Ints, percent: int) -> float | None:
    value = percentile(np.sort(values_ns), percent)
    return None if value is None else value / NS_PER_MS


def _own_start_lag_ns(table: Table, started: Mask) -> Ints:
    """Start lag without what connecting took: a new connection is the server's time and the network's."""
    due = started & (table.due_ns != NONE) & (table.sent_ns != NONE)
    connecting = np.where((table.connect_ns != NONE) & (table.new_connection == 1), table.connect_ns, 0)
    lag: Ints = (table.sent_ns - table.due_ns - connecting)[due]
    return lag


def _achieved(
    table: Table, span: Span, phases: Phases, slots: int | None, load: Load
) -> tuple[float | None, float | None]:
    """Achieved over asked, and the share of the slots' time left idle without need (closed loop).

    Closed loop: mean in flight / N, from the moment all slots had begun. Open loop: sent / due.
    """
    if slots is None:
        return _sent_over_due(table, span, phases), None
    if (table.due_ns[span.holds(table.sent_ns)] != NONE).any():
        return None, None  # think time is part of the load: a slot without a request is as it should be
    full = _full_load(table, span, phases, slots, load)
    if full.end_ns <= full.start_ns:
        return None, None
    mean = float(in_flight(table, phases, np.array([full.start_ns, full.end_ns]))[0])
    return mean / slots, _idle_share(table, full, slots, mean)


def _sent_over_due(table: Table, span: Span, phases: Phases) -> float | None:
    """Requests sent over requests due in the span. A loop that ran behind left some that it never came to."""
    due = float(span.holds(table.due_ns).sum())
    if not due:
        return None
    sent = int(span.holds(table.sent_ns).sum())
    last = int(table.due_ns.argmax())
    due_ns, sent_ns = int(table.due_ns[last]), int(table.sent_ns[last])
    behind_ns = min(span.end_ns, phases.stop_ns) - due_ns
    if sent_ns != NONE and sent_ns - due_ns > LIMIT_MS * NS_PER_MS and behind_ns > 0:
        due *= 1 + behind_ns / max(due_ns - span.start_ns, 1)  # as many a second as were due so far
    return sent / due


def _full_load(table: Table, span: Span, phases: Phases, slots: int, load: Load) -> Span:
    """The part of the window in which all slots were to be busy: after the opening wave, before the drain."""
    opening = np.sort(table.sent_ns[(table.sent_ns != NONE) & (table.refill_ns == NONE)])
    start = int(opening[slots - 1]) if len(opening) >= slots else span.start_ns
    end = phases.stop_ns
    if load.requests is not None:
        end = min(end, int(flights(table, phases)[0].max(initial=phases.start_ns)))
    return Span(max(span.start_ns, start), min(span.end_ns, end))


def _idle_share(table: Table, full: Span, slots: int, mean: float) -> float | None:
    """1 - (in flight + connecting + ordinary turnaround) / N.

    None where connections failed or most requests did (their answers take no time of a model's, so the turnaround is
    most of it), or where too few requests were sent to tell.
    """
    sent = full.holds(table.sent_ns)
    unsent = table.in_phase("measured") & (table.sent_ns == NONE)
    if int(sent.sum()) < max(slots, LEAST_REFILLS):
        return None
    if int(unsent.sum()) > _UNSENT_SHARE * int(sent.sum()):
        return None
    if int((sent & table.of("ok")).sum()) * 2 < int(sent.sum()):
        return None
    fresh = sent & (table.new_connection == 1)
    kept = sent & (table.new_connection == 0) & (table.refill_ns != NONE)
    excused = np.maximum(table.refill_ns[fresh], 0).sum() + np.minimum(table.refill_ns[kept], TURNAROUND_NS).sum()
    return 1 - (mean + float(excused) / (full.end_ns - full.start_ns)) / slots


class _Rows:
    """The health rows of a window."""

    def __init__(self, health: Health, span: Span) -> None:
        at = np.frombuffer(health.at, dtype="<i8")
        inside = span.holds(at)
        self._at = at[inside]
        self.lag_ns = np.frombuffer(health.lag_max, dtype="<i8")[inside]
        self._cpu = np.frombuffer(health.cpu, dtype="<i8")[inside]

    def cpu_share(self) -> float | None:
        """Share of one core that the worker took."""
        if len(self._at) < 2:
            return None
        return float(self._cpu[-1] - self._cpu[0]) / float(self._at[-1] - self._at[0])

    def late_share(self) -> float | None:
        """Share of the rows in which the loop was away for longer than LIMIT_MS."""
        return float((self.lag_ns > LIMIT_MS * NS_PER_MS).mean()) if len(self.lag_ns) else None

    def lag_time_share(self) -> float | None:
        """Chance that a moment waited longer than LIMIT_MS, from the longest absence of each row: a lower bound.

        What comes at a random moment of an absence of length a waits longer than x with (a - x) / (time of the row).
        """
        if len(self._at) < 2:
            return None
        beyond = np.maximum(self.lag_ns[1:] - LIMIT_MS * NS_PER_MS, 0.0)
        return float(beyond.sum()) / float(self._at[-1] - self._at[0])
