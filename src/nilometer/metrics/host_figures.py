"""What the machine of a local server did over the window, from rows that were seen of it twice a second.

Takes packed int64 columns and computes, no more. Only what was seen throughout has a figure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from nilometer.core.clock import NS_PER_S

from .quantiles import Floats

UNSEEN = -1
"""In any column but `at`."""


class HostRow(NamedTuple):
    """One look at the machine. Sums are since whenever; -1 is what was not seen."""

    at: int
    """ns, monotonic."""
    server_cpu: int = UNSEEN
    """ns of processor time that the server's process tree took so far."""
    own_cpu: int = UNSEEN
    """The same of this program and its load workers."""
    machine_cpu: int = UNSEEN
    """The same of all that runs on the machine."""
    cpu_time: int = UNSEEN
    """ns that its processors were there, idle or not."""
    steal: int = UNSEEN
    """ns that a processor had work and the hypervisor gave it to others."""
    running: int = UNSEEN
    """Threads that run or could, but for the one that looks."""
    switches: int = UNSEEN
    """Context switches of the machine so far."""
    faults: int = UNSEEN
    """Major page faults of the server so far."""
    rss: int = UNSEEN
    """Bytes of memory that the server holds."""
    stopped: int = UNSEEN
    """1 where a process of the server was stopped (state T)."""
    thread_cpu: int = UNSEEN
    """ns that the busiest thread of the server took since the row before that has one; looked at less often."""
    periods: int = UNSEEN
    """Periods so far of the processor quotas that the server is under."""
    throttled: int = UNSEEN
    """Those of them in which it was held back."""
    throttled_ns: int = UNSEEN
    """For how long, over all its processors."""
    gpu_busy: int = UNSEEN
    """Percent of the time since the driver's last look that the devices which hold the server had work, their mean."""
    gpu_memory_busy: int = UNSEEN
    gpu_clock_mhz: int = UNSEEN
    """Of the slowest of them."""
    gpu_power_mw: int = UNSEEN
    """Of all together."""
    gpu_throttled: int = UNSEEN
    """1 where one was held back for its power, its heat or its supply."""


PEAK_NS = 5 * NS_PER_S
CLOCK_NS = 10 * NS_PER_S
"""Clocks are averaged over so long before their least is held against their greatest: one dip is no drop."""


def host_told(columns: Mapping[str, bytes], start_ns: int, end_ns: int, cores: int | None = None) -> dict[str, float]:
    """The figures by the names of the contract's `host`, of the rows within [start, end); none of fewer than two."""
    rows = {name: np.frombuffer(packed, dtype="<i8").astype(np.float64) for name, packed in columns.items()}
    at = rows.pop("at", np.zeros(0))
    inside = (at >= start_ns) & (at < end_ns)
    if inside.sum() < 2:
        return {}
    seen = _Rows(at[inside], {name: column[inside] for name, column in rows.items() if len(column) == len(at)})
    told = {name: value for name, value in _all(seen) if value is not None}
    return told if cores is None else {"cores": float(cores), **told}


class _Rows(NamedTuple):
    at: Floats
    columns: Mapping[str, Floats]

    @property
    def length_s(self) -> float:
        return float(self.at[-1] - self.at[0]) / NS_PER_S

    def of(self, name: str) -> Floats | None:
        """The column; None where a row of it was not seen."""
        column = self.columns.get(name)
        return None if column is None or (column == UNSEEN).any() else column

    def growth(self, name: str) -> float | None:
        column = self.of(name)
        return None if column is None else max(0.0, float(column[-1] - column[0]))

    def mean(self, name: str) -> float | None:
        column = self.of(name)
        return None if column is None else float(column.mean())


def _all(rows: _Rows) -> Iterator[tuple[str, float | None]]:
    server, others = rows.of("server_cpu"), _others(rows)
    yield "server_cpu_cores", _rate(rows, server)
    yield "server_cpu_peak_cores", _peak(rows.at, server)
    yield "busiest_thread_share", _busiest_thread(rows)
    yield "other_cpu_cores", _rate(rows, others)
    yield "other_cpu_peak_cores", _peak(rows.at, others)
    yield "steal_share", _share(rows.growth("steal"), rows.growth("cpu_time"))
    yield "run_queue_mean", rows.mean("running")
    yield "throttled_share", _share(rows.growth("throttled"), rows.growth("periods"))
    yield "throttled_s", _times(rows.growth("throttled_ns"), 1 / NS_PER_S)
    yield "context_switches_per_s", _times(rows.growth("switches"), 1 / rows.length_s)
    yield "major_faults", rows.growth("faults")
    rss = rows.of("rss")
    yield "rss_start_bytes", None if rss is None else float(rss[0])
    yield "rss_end_bytes", None if rss is None else float(rss[-1])
    yield "stopped_share", rows.mean("stopped")
    yield from _gpu(rows)


def _gpu(rows: _Rows) -> Iterator[tuple[str, float | None]]:
    yield "gpu_busy_share", _times(rows.mean("gpu_busy"), 1 / 100)
    yield "gpu_memory_busy_share", _times(rows.mean("gpu_memory_busy"), 1 / 100)
    yield "gpu_clock_mean_mhz", rows.mean("gpu_clock_mhz")
    yield "gpu_clock_drop", _drop(rows.at, rows.of("gpu_clock_mhz"))
    yield "gpu_power_mean_w", _times(rows.mean("gpu_power_mw"), 1 / 1000)
    yield "gpu_throttled_share", rows.mean("gpu_throttled")


def _others(rows: _Rows) -> Floats | None:
    """What neither the server nor this program took, so far."""
    machine, server, own = (rows.of(name) for name in ("machine_cpu", "server_cpu", "own_cpu"))
    return None if machine is None or server is None or own is None else machine - server - own


def _rate(rows: _Rows, column: Floats | None) -> float | None:
    """Processors: processor time a second. The kernel counts in steps, so that a rest may come out just below 0."""
    return None if column is None else max(0.0, float(column[-1] - column[0]) / NS_PER_S / rows.length_s)


def _peak(at: Floats, column: Floats | None) -> float | None:
    """Of the busiest 5 s; None where there were none so long."""
    if column is None:
        return None
    ends = np.searchsorted(at, at + PEAK_NS)
    starts = np.flatnonzero(ends < len(at))
    if not len(starts):
        return None
    ends = ends[starts]
    return max(0.0, float(((column[ends] - column[starts]) / (at[ends] - at[starts])).max()))


def _busiest_thread(rows: _Rows) -> float | None:
    """A row tells what one thread took since the row before that tells it."""
    column = rows.columns.get("thread_cpu")
    told = np.flatnonzero(column != UNSEEN) if column is not None else np.zeros(0, dtype=np.int64)
    if column is None or len(told) < 2:
        return None
    return float(column[told[1:]].sum() / (rows.at[told[-1]] - rows.at[told[0]]))


def _share(part: float | None, whole: float | None) -> float | None:
    """0 where there was nothing to be a part of: under no quota nothing is held back."""
    return None if part is None or whole is None else part / whole if whole else 0.0


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _drop(at: Floats, clock: Floats | None) -> float | None:
    """The least over the greatest of the means of 10 s; None where there are no two of them."""
    if clock is None:
        return None
    stretch = ((at - at[0]) // CLOCK_NS).astype(np.int64)
    whole = int((at[-1] - at[0]) // CLOCK_NS)
    means = [float(clock[stretch == i].mean()) for i in range(whole) if (stretch == i).any()]
    return min(means) / max(means) if len(means) > 1 and max(means) > 0 else None
