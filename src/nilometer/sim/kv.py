"""The pool of KV blocks of one replica: who holds how many, and which prompt blocks are kept for the next asker.

Only counts: which block is whose place in memory changes no time. A block is in one of four states: blank, private
(held by one sequence), shared (a cached prompt block that sequences hold), idle (a cached one that nobody holds; the
one idle for longest goes first when room is needed). Never more blocks are held than the pool has.
"""

from __future__ import annotations

from collections.abc import Sequence

UNBOUNDED = 1 << 62
"""Blocks of a pool that never fills."""


class Pool:
    """Blocks of `block_tokens` tokens each. What does not fit is answered False, never raised."""

    __slots__ = ("_idle", "_shared", "block_tokens", "blocks", "private")

    def __init__(self, blocks: int = UNBOUNDED, block_tokens: int = 16) -> None:
        self.blocks = blocks
        self.block_tokens = block_tokens
        self.private = 0
        self._shared: dict[int, int] = {}
        self._idle: dict[int, None] = {}

    @property
    def held(self) -> int:
        """Blocks that sequences hold, each shared one counted once."""
        return self.private + len(self._shared)

    @property
    def kept(self) -> int:
        """Cached blocks that nobody holds."""
        return len(self._idle)

    @property
    def free(self) -> int:
        """Blocks that can be had: blank ones and idle ones."""
        return self.blocks - self.held

    def blocks_of(self, tokens: int) -> int:
        """How many blocks so many tokens fill or begin."""
        return -(-tokens // self.block_tokens)

    def take(self, count: int) -> bool:
        """Hold so many more blocks, whose idle content is lost; False, and nothing changed, where there are too few."""
        if count > self.free:
            return False
        self.private += count
        over = self.private + len(self._shared) + len(self._idle) - self.blocks
        while over > 0:
            del self._idle[next(iter(self._idle))]
            over -= 1
        return True

    def give(self, count: int) -> None:
        """Hold so many fewer, blank again."""
        self.private -= count

    def found(self, hashes: Sequence[int], most: int) -> int:
        """How many blocks at the head of a prompt are cached; `most` is the limit."""
        count = 0
        for one in hashes[:most]:
            if one not in self._shared and one not in self._idle:
                break
            count += 1
        return count

    def take_with(self, hashes: Sequence[int], count: int) -> bool:
        """Hold these cached blocks and `count` private ones; False, and nothing changed, where that does not fit."""
        woken = sum(one in self._idle for one in hashes)
        if count + woken > self.free:
            return False
        for one in hashes:
            self._idle.pop(one, None)
            self._shared[one] = self._shared.get(one, 0) + 1
        return self.take(count)

    def publish(self, hashes: Sequence[int]) -> list[int]:
        """Private blocks, now filled with these contents, become shared; gives those that were not there before."""
        new = [one for one in hashes if one not in self._shared and one not in self._idle]
        for one in new:
            self._shared[one] = 1
        self.private -= len(new)
        return new

    def let_go(self, hashes: Sequence[int]) -> None:
        """One holder less of each; what nobody holds is kept idle. A prompt's tail is lost before its head."""
        for one in reversed(hashes):
            left = self._shared[one] - 1
            if left:
                self._shared[one] = left
            else:
                del self._shared[one]
                self._idle[one] = None
