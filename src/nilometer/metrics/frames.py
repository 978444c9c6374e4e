"""The frames of all requests, kept as arrays and worked on a block at a time: gaps, arrivals, reads.

About 12 bytes stay of a frame, so that 20 million of them fit in memory. Requests are known by their row in `table`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nilometer.core.record import LATE, SHARED, Frames

from .quantiles import Floats, Ints, Ints32
from .request import best_stamps_ns
from .table import Mask

_BLOCK_FRAMES = 1 << 20
Lags = Ints32 | Ints
"""int32 where that holds them (2 s), which halves what most runs need."""
UNKNOWN_LAG = -(2**31)
"""Lag of a frame without a kernel stamp."""
_LARGEST_READ = 64
"""Reads that hold more frames are counted as if they held this many."""


class Block(NamedTuple):
    """The frames of neighbouring requests, the first of which has row `first` in the table."""

    first: int
    counts: Ints
    """Frames of each request."""
    at_ns: Ints
    """Best stamp of each frame."""
    lag_ns: Lags | None
    """User minus kernel stamp of each frame; None where no frame has a kernel stamp."""
    stamped: Ints
    """Frames of each request that have a kernel stamp."""
    tokens: Ints32 | None
    """What the server stated for each frame, -1 unknown; None where nothing was stated."""

    @property
    def rows(self) -> slice:
        """Its requests in the table."""
        return slice(self.first, self.first + len(self.counts))


class Reads(NamedTuple):
    """Reads that brought frames, and those among them that held several while the loop was late.

    `sizes` and `first_sizes` count the reads that were in time by the frames they held (position = frames), over the
    run; `late_*` describe each shared late read: request, frames held, whether it brought the first token.
    """

    of_request: Ints
    shared_of_request: Ints
    sizes: Ints
    first_sizes: Ints
    late_request: Ints
    late_size: Ints
    late_first: Ints


class FrameStore:
    """Takes the frames of each request in the order of the table, also of those that have none."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._reads: list[Reads] = []
        self._open: list[Frames] = []
        self._held = 0
        self._rows = 0

    def add(self, frames: Frames) -> None:
        """Note the frames of the next request."""
        self._open.append(frames)
        self._held += len(frames) + 1
        if self._held >= _BLOCK_FRAMES:
            self.close()

    def close(self) -> None:
        """Turn what is open into a block; nothing happens where nothing is."""
        if not self._open:
            return
        counts = np.array([len(frames) for frames in self._open], dtype=np.int64)
        user = np.frombuffer(b"".join([frames.user for frames in self._open]), dtype="<i8")
        block = Block(self._rows, counts, *_stamps(self._open, user, counts), _tokens(self._open))
        self.blocks.append(block)
        self._reads.append(_reads(block, user, _flags(self._open)))
        self._rows += len(self._open)
        self._open, self._held = [], 0

    def reads(self) -> Reads:
        """The reads of all closed blocks."""
        none = np.zeros(0, dtype=np.int64)
        sizes = np.zeros(_LARGEST_READ + 1, dtype=np.int64)
        parts = [Reads(none, none, sizes, sizes, none, none, none), *self._reads]
        return Reads(
            of_request=np.concatenate([part.of_request for part in parts]),
            shared_of_request=np.concatenate([part.shared_of_request for part in parts]),
            sizes=np.sum([part.sizes for part in parts], axis=0, dtype=np.int64),
            first_sizes=np.sum([part.first_sizes for part in parts], axis=0, dtype=np.int64),
            late_request=np.concatenate([part.late_request for part in parts]),
            late_size=np.concatenate([part.late_size for part in parts]),
            late_first=np.concatenate([part.late_first for part in parts]),
        )

    def gaps_ns(self, keep: Mask) -> Ints:
        """Gaps between neighbouring frames of the same request, pooled over the requests in `keep`."""
        counts = np.concatenate([block.counts for block in self.blocks] or [np.zeros(0, dtype=np.int64)])
        gaps = np.empty(int(np.maximum(counts - 1, 0)[keep].sum()), dtype=np.int64)
        filled = 0
        for block in self.blocks:
            own = _gaps(block, keep[block.rows])
            gaps[filled : filled + len(own)] = own
            filled += len(own)
        return gaps

    def lags_ns(self, keep: Mask) -> Lags:
        """User minus kernel stamp of the frames of the requests in `keep`, where there is one."""
        parts = [_lags(block, keep[block.rows]) for block in self.blocks if block.lag_ns is not None]
        return np.concatenate([np.zeros(0, dtype=np.int32), *parts])

    def stamped(self, keep: Mask) -> int:
        """How many frames of the requests in `keep` have a kernel stamp."""
        return sum(int(block.stamped[keep[block.rows]].sum()) for block in self.blocks)

    def arrivals(self, weights: Floats) -> Iterator[tuple[Ints, Floats]]:
        """Per block: the stamp of each frame and the tokens it counts, for requests with weight > 0.

        A frame counts what the server states for it; `weights` gives each request's output tokens, of which the rest
        is spread evenly over its frames without a statement (over all, where each has one).
        """
        for block in self.blocks:
            totals = weights[block.rows]
            if block.tokens is None:
                yield block.at_ns, np.repeat(totals / np.maximum(block.counts, 1), block.counts)
            else:
                yield block.at_ns, _stated(block, block.tokens, totals)


def _stamps(opened: list[Frames], user: Ints, counts: Ints) -> tuple[Ints, Lags | None, Ints]:
    """Best stamps; the loop's lag where there are kernel stamps; how many frames of each request have one."""
    if not any(frames.kernel for frames in opened):
        return user, None, np.zeros_like(counts)
    kernel = np.frombuffer(b"".join([frames.kernel or b"\xff" * len(frames.user) for frames in opened]), dtype="<i8")
    has = kernel >= 0
    lag = np.where(has, user - kernel, UNKNOWN_LAG)
    fits = lag.max() < 2**31 and lag.min() >= -(2**31)
    stamped = (
        counts if has.all() else np.bincount(np.repeat(np.arange(len(counts)), counts)[has], minlength=len(counts))
    )
    return best_stamps_ns(user, kernel), lag.astype(np.int32) if fits else lag, stamped


def _tokens(opened: list[Frames]) -> Ints32 | None:
    if not any(frames.tokens for frames in opened):
        return None
    return np.frombuffer(b"".join([frames.tokens or b"\xff" * (4 * len(frames)) for frames in opened]), dtype="<i4")


def _flags(opened: list[Frames]) -> npt.NDArray[np.uint8] | None:
    if not any(frames.flags for frames in opened):
        return None
    return np.frombuffer(b"".join([frames.flags or bytes(len(frames)) for frames in opened]), dtype=np.uint8)


def _gaps(block: Block, keep: Mask) -> Ints:
    if len(block.at_ns) < 2:
        return np.zeros(0, dtype=np.int64)
    gaps = np.diff(block.at_ns)
    within = np.repeat(keep, block.counts)[1:]
    firsts = block.counts.cumsum()[:-1]
    within[firsts[(firsts > 0) & (firsts < len(block.at_ns))] - 1] = False
    return gaps if within.all() else gaps[within]


def _lags(block: Block, keep: Mask) -> Lags:
    assert block.lag_ns is not None  # noqa: S101 - asked only of blocks that have them
    if keep.all() and block.stamped is block.counts:
        return block.lag_ns
    known = np.repeat(keep, block.counts) & (block.lag_ns != UNKNOWN_LAG)
    lags: Lags = block.lag_ns[known]
    return lags


def _per_request(block: Block, values: Ints | Ints32 | Mask) -> Ints:
    """The sum of the values over the frames of each request."""
    sums = np.concatenate([[0], values.cumsum(dtype=np.int64)])
    ends = block.counts.cumsum()
    per_request: Ints = sums[ends] - sums[ends - block.counts]
    return per_request


def _stated(block: Block, tokens: Ints32, totals: Floats) -> Floats:
    """Tokens of each frame where the server stated some of them."""
    silent = tokens < 0
    said = np.where(silent, 0, tokens)
    holders = _per_request(block, silent)
    rest = np.maximum(totals - _per_request(block, said), 0.0)
    each = rest / np.maximum(np.where(holders > 0, holders, block.counts), 1)
    spread = said.astype(np.float64)
    if rest.any():
        to_all = np.repeat(holders == 0, block.counts)
        spread += np.where(silent | to_all, np.repeat(each, block.counts), 0.0)
    if not (totals > 0).all():
        spread[np.repeat(totals <= 0, block.counts)] = 0.0
    return spread


def _reads(block: Block, user: Ints, flags: npt.NDArray[np.uint8] | None) -> Reads:
    """The reads of a block. Frames of one read stand side by side, are SHARED, and have one user stamp."""
    ends = block.counts.cumsum()
    begin, size = _shared_reads(user, flags, ends)
    request = np.searchsorted(ends, begin, side="right")
    first = (ends - block.counts)[request] == begin
    late = np.zeros(len(begin), dtype=np.bool_) if flags is None else (flags[begin] & LATE) != 0
    more = np.bincount(request, weights=size - 1, minlength=len(ends)).astype(np.int64)
    return Reads(
        of_request=block.counts - more,
        shared_of_request=np.bincount(request, minlength=len(ends)),
        sizes=_sizes(size[~late], len(user) - int(size.sum())),
        first_sizes=_sizes(size[~late & first], int(np.count_nonzero(block.counts)) - int(first.sum())),
        late_request=request[late] + block.first,
        late_size=size[late],
        late_first=first[late].astype(np.int64),
    )


def _shared_reads(user: Ints, flags: npt.NDArray[np.uint8] | None, ends: Ints) -> tuple[Ints, Ints]:
    """Where each read of several frames begins, and how many it held."""
    none = np.zeros(0, dtype=np.int64)
    if flags is None or len(user) < 2:
        return none, none
    shared = (flags & SHARED) != 0
    same = np.flatnonzero(shared[1:] & shared[:-1] & (user[1:] == user[:-1])) + 1
    same = same[~np.isin(same, ends)]
    opens = np.diff(same, prepend=-1) != 1
    length = np.diff(np.flatnonzero(opens), append=len(same))
    return same[opens] - 1, length + 1


def _sizes(shared: Ints, alone: int) -> Ints:
    """How many reads held 1, 2, ... frames."""
    sizes = np.bincount(np.minimum(shared, _LARGEST_READ), minlength=_LARGEST_READ + 1)
    sizes[1] += alone
    return sizes
