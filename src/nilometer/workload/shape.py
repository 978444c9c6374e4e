"""The shape of a workload: how long, how often, how much in common. Exact, from counts, in one pass. Pure.

Percentiles interpolate linearly between order statistics (type 7), as everywhere here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from .entry import NO_TIME, NS_PER_S, UNKNOWN, Batch, Ints

DENSE = 1 << 18
"""Lengths below it are counted in an array, the few above one by one."""
BINS = 32
"""Joint distribution: bin k holds lengths above 2^(k-1) up to 2^k."""
KEPT_STAMPS = 4_000_000
"""So many stamps are kept, to be put in order if the file is not; a longer file has its gaps taken as they come."""
MINUTE_NS = 60 * NS_PER_S


class Lengths(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens; None where no row has any."""

    n: int = 0
    mean: float | None = None
    p50: float | None = None
    p95: float | None = None
    max: int | None = None


class Arrivals(msgspec.Struct, frozen=True, kw_only=True):
    """Requests per second from the first to the last stamp, and how uneven they come.

    `gap_cv` is the coefficient of variation of the gaps: 0 even, 1 Poisson, above it bursts. `per_minute` holds the
    median, the 95th percentile and the most of minutes from the first stamp on, empty ones included.
    """

    rate_per_s: float | None = None
    gap_cv: float | None = None
    span_s: float | None = None
    per_minute: Lengths = Lengths()
    sorted: bool = True


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """All of it. `joint[i][j]`: rows with an input of bin i and an output of bin j, where both are known."""

    rows: int
    input_tokens: Lengths
    output_tokens: Lengths
    arrivals: Arrivals
    turns: Lengths
    turns_over_one: float | None
    shared_prefix_share: float | None
    joint: list[list[int]]


class Counts:
    """How often each whole number of at least 0 came."""

    def __init__(self) -> None:
        self._dense = np.zeros(DENSE, np.int64)
        self._rare: Counter[int] = Counter()

    def add(self, values: Ints) -> None:
        """Count them; UNKNOWN is left out."""
        known = values[values >= 0]
        high = known >= DENSE
        if high.any():
            self._rare.update(known[high].tolist())
            known = known[~high]
        if len(known):
            found = np.bincount(known)
            self._dense[: len(found)] += found

    def pairs(self) -> tuple[Ints, Ints]:
        """(values that came, ascending; how often)."""
        values = np.flatnonzero(self._dense)
        rare = sorted(self._rare.items())
        return (
            np.concatenate((values, np.array([value for value, _ in rare], np.int64))),
            np.concatenate((self._dense[values], np.array([often for _, often in rare], np.int64))),
        )

    def lengths(self) -> Lengths:
        """Their summary."""
        return summary(*self.pairs())


def summary(values: Ints, often: Ints) -> Lengths:
    """Statistics of values, ascending, that came so often."""
    total = int(often.sum())
    if not total:
        return Lengths()
    upto = np.cumsum(often)
    return Lengths(
        n=total,
        mean=float((values * often.astype(np.float64)).sum() / total),
        p50=_quantile(values, upto, 0.5),
        p95=_quantile(values, upto, 0.95),
        max=int(values[-1]),
    )


def _quantile(values: Ints, upto: Ints, share: float) -> float:
    place = share * (int(upto[-1]) - 1)
    below = int(place)
    low, high = (int(values[np.searchsorted(upto, min(at, int(upto[-1]) - 1), "right")]) for at in (below, below + 1))
    return low + (high - low) * (place - below)


class Measure:
    """Takes the batches of one pass and tells their shape."""

    def __init__(self) -> None:
        self._rows = 0
        self._input, self._output, self._turns = Counts(), Counts(), Counts()
        self._joint = np.zeros((BINS, BINS), np.int64)
        self._shared = [0, 0]
        self._times = _Times()

    @property
    def least_ns(self) -> int | None:
        """The earliest stamp: offsets count from it. None where no row has one."""
        return self._times.least_ns

    def add(self, batch: Batch) -> None:
        """One batch more."""
        self._rows += batch.size
        self._input.add(batch.input_tokens)
        self._output.add(batch.output_tokens)
        self._turns.add(batch.turns)
        both = (batch.input_tokens >= 0) & (batch.output_tokens >= 0)
        at = bins(batch.input_tokens[both]) * BINS + bins(batch.output_tokens[both])
        self._joint += np.bincount(at, minlength=BINS * BINS).reshape(BINS, BINS)
        known = (batch.shared_tokens != UNKNOWN) & (batch.input_tokens > 0)
        self._shared[0] += int(batch.shared_tokens[known].sum())
        self._shared[1] += int(batch.input_tokens[known].sum())
        self._times.add(batch.at_ns)

    def shape(self) -> Shape:
        """What was taken so far."""
        values, often = self._turns.pairs()
        return Shape(
            rows=self._rows,
            input_tokens=self._input.lengths(),
            output_tokens=self._output.lengths(),
            arrivals=self._times.arrivals(),
            turns=summary(values, often),
            turns_over_one=float(often[values > 1].sum() / often.sum()) if len(often) else None,
            shared_prefix_share=self._shared[0] / self._shared[1] if self._shared[1] else None,
            joint=self._joint.tolist(),
        )

    def margins(self) -> dict[str, tuple[Ints, Ints]]:
        """The counts of each margin, to hold a sample against."""
        return {"input": self._input.pairs(), "output": self._output.pairs(), "turns": self._turns.pairs()}


def bins(tokens: Ints) -> Ints:
    """The bin of each length: 0 holds 0 and 1, k what is above 2^(k-1) up to 2^k."""
    _, exponent = np.frexp(np.maximum(tokens - 1, 0).astype(np.float64))
    return np.minimum(exponent.astype(np.int64), BINS - 1)


class _Run(NamedTuple):
    """Gaps of stamps in order, as sums."""

    n: int = 0
    total_s: float = 0.0
    squares_s2: float = 0.0


class _Times:
    """Stamps: kept up to a bound, else only their gaps as they come and their number in each minute."""

    def __init__(self) -> None:
        self.first_ns: int | None = None
        self._kept: list[Ints] = []
        self._n = 0
        self._least = self._most = self._last = 0
        self._sorted = True
        self._gaps = _Run()
        self._minutes: Counter[int] = Counter()

    def add(self, at_ns: Ints) -> None:
        known = at_ns[at_ns != NO_TIME]
        if not len(known):
            return
        if self.first_ns is None:
            self.first_ns = self._least = self._most = self._last = int(known[0])
            stretch = known[1:] - known[:-1]
        else:
            stretch = known - np.append(self._last, known[:-1])
        self._n += len(known)
        self._last = int(known[-1])
        self._least, self._most = min(self._least, int(known.min())), max(self._most, int(known.max()))
        self._sorted = self._sorted and bool((stretch >= 0).all())
        self._gaps = _and(self._gaps, stretch)
        minutes, often = _counted((known - self.first_ns) // MINUTE_NS)
        for minute, found in zip(minutes.tolist(), often.tolist(), strict=True):
            self._minutes[minute] += found
        if self._n <= KEPT_STAMPS:
            self._kept.append(known)
        else:
            self._kept.clear()

    @property
    def least_ns(self) -> int | None:
        return None if self.first_ns is None else self._least

    def arrivals(self) -> Arrivals:
        if self.first_ns is None:
            return Arrivals()
        gaps = self._gaps
        if not self._sorted and self._kept:
            ordered: Ints = np.sort(np.concatenate(self._kept))
            gaps = _and(_Run(), ordered[1:] - ordered[:-1])
        usable = self._sorted or bool(self._kept)
        span_s = (self._most - self._least) / NS_PER_S
        return Arrivals(
            rate_per_s=(self._n - 1) / span_s if span_s > 0 else None,
            gap_cv=_cv(gaps) if usable else None,
            span_s=span_s,
            per_minute=self._per_minute(),
            sorted=self._sorted,
        )

    def _per_minute(self) -> Lengths:
        """Of all minutes from the first to the last, those in which nothing came too."""
        often = Counter(self._minutes.values())
        empty = max(self._minutes) - min(self._minutes) + 1 - len(self._minutes)
        if empty:
            often[0] += empty
        values = sorted(often)
        return summary(np.array(values, np.int64), np.array([often[value] for value in values], np.int64))


def _counted(values: Ints) -> tuple[Ints, Ints]:
    """Distinct values and how often each came; quick where they lie close together, as minutes of a batch do."""
    low = int(values.min())
    width = int(values.max()) - low + 1
    if width > 4 * len(values) + 1024:
        found, often = np.unique(values, return_counts=True)
        return found, often
    often = np.bincount(values - low, minlength=width)
    there: npt.NDArray[np.int64] = np.flatnonzero(often)
    return there + low, often[there]


def _and(run: _Run, gaps_ns: Ints) -> _Run:
    gaps_s = gaps_ns / NS_PER_S
    return _Run(
        run.n + len(gaps_ns), run.total_s + float(gaps_s.sum()), run.squares_s2 + float((gaps_s * gaps_s).sum())
    )


def _cv(run: _Run) -> float | None:
    """Standard deviation (of the population) over the mean; None below two gaps or where all are 0."""
    if run.n < 2 or run.total_s <= 0:
        return None
    mean = run.total_s / run.n
    return float(np.sqrt(max(run.squares_s2 / run.n - mean * mean, 0.0)) / mean)


def ks(one: tuple[Ints, Ints], other: tuple[Ints, Ints]) -> float:
    """Kolmogorov-Smirnov distance of two counted distributions: the greatest difference of their shares up to a value.

    1 where only one of them has any value, 0 where neither has.
    """
    totals = [int(often.sum()) for _, often in (one, other)]
    if not all(totals):
        return 0.0 if not any(totals) else 1.0
    at = np.union1d(one[0], other[0])
    shares = [_upto(pair, at) / total for pair, total in zip((one, other), totals, strict=True)]
    return float(np.abs(shares[0] - shares[1]).max())


def _upto(pair: tuple[Ints, Ints], at: Ints) -> npt.NDArray[np.float64]:
    sums = np.concatenate((np.zeros(1, np.int64), np.cumsum(pair[1])))
    return sums[np.searchsorted(pair[0], at, "right")].astype(np.float64)


def counted(values: Iterable[int]) -> tuple[Ints, Ints]:
    """Any values of at least 0 as `ks` takes them."""
    known = np.array([value for value in values if value >= 0], np.int64)
    found, often = np.unique(known, return_counts=True)
    return found, often.astype(np.int64)
