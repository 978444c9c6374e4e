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

    def owner(self) -> Ints:
        """For each frame, which request of the block it belongs to."""
        return np.repeat(np.arange(len(self.counts)), self.counts)


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
            spread = np.repeat(np.where(totals > 0, totals / np.maximum(block.counts, 1), 0.0), block.counts)
            if block.tokens is not None:
                spread = _stated(block, block.tokens, totals)
            yield block.at_ns, spread


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


def _stated(block: Block, tokens: Ints32, totals: Floats) -> Floats:
    """Tokens of each frame where the server stated some of them."""
    owner = block.owner()
    unstated = tokens < 0
    said = np.bincount(owner, weights=np.where(unstated, 0, tokens), minlength=len(totals))
    holders = np.bincount(owner, weights=unstated, minlength=len(totals))
    rest = np.maximum(totals - said, 0.0)
    to_all = holders == 0
    each = rest / np.maximum(np.where(to_all, block.counts, holders), 1)
    spread: Floats = np.where(unstated, 0, tokens) + np.where(unstated | to_all[owner], each[owner], 0.0)
    return np.where((totals > 0)[owner], spread, 0.0)


def _reads(block: Block, user: Ints, flags: npt.NDArray[np.uint8] | None) -> Reads:
    """The reads of a block. Frames of one read stand side by side, are SHARED, and have one user stamp."""
    none = np.zeros(0, dtype=np.int64)
    if flags is None:
        sizes, first_sizes = (np.zeros(_LARGEST_READ + 1, dtype=np.int64) for _ in range(2))
        sizes[1], first_sizes[1] = block.counts.sum(), np.count_nonzero(block.counts)
        return Reads(block.counts, np.zeros_like(block.counts), sizes, first_sizes, none, none, none)
    owner = block.owner()
    begins = np.ones(len(user), dtype=np.bool_)
    shared = (flags & SHARED) != 0
    begins[1:] = ~(shared[1:] & shared[:-1] & (user[1:] == user[:-1]) & (owner[1:] == owner[:-1]))
    at = np.flatnonzero(begins)
    size = np.minimum(np.diff(at, append=len(user)), _LARGEST_READ)
    request = owner[at]
    first = np.diff(request, prepend=-1) != 0
    several = shared[at]
    late = several & ((flags[at] & LATE) != 0)
    return Reads(
        of_request=np.bincount(request, minlength=len(block.counts)),
        shared_of_request=np.bincount(request[several], minlength=len(block.counts)),
        sizes=np.bincount(size[~late], minlength=_LARGEST_READ + 1),
        first_sizes=np.bincount(size[~late & first], minlength=_LARGEST_READ + 1),
        late_request=request[late] + block.first,
        late_size=size[late],
        late_first=first[late].astype(np.int64),
    )
