"""A small set of requests with the proportions of a large one: stratified, seeded, and held against it. Pure.

Rows are put into strata by their turns and by how much of them is a shared prefix (nothing, up to half, more), each
with its part of the sample. Within a stratum they are laid in slabs of like input and taken evenly along the output of
each slab, so that both margins and their joint shape stay.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from .entry import UNKNOWN, Batch, Ints
from .prefix import Prefixes
from .shape import counted, ks

REPRESENTATIVE_KS = 0.05
"""A margin that is further off is not that of the source any more."""
POOL = 2_000_000
"""Rows of the source that a sample is chosen from: evenly spread ones where there are more."""
_GROUP_SHARE = 0.02
"""Prefixes of its own that a sample may have, per row: the first row of each finds nothing to share, which no more than
so many rows may owe to the sample alone. The commonest keep theirs, rows of the others share one."""

HashIds = tuple[int, ...] | None


class Pool(NamedTuple):
    """Columns that a sample is chosen by. `nth` counts the requests of one line, from 0."""

    line: Ints
    nth: Ints
    at_ns: Ints
    input_tokens: Ints
    output_tokens: Ints
    turns: Ints
    shared_tokens: Ints
    root: Ints


class Gatherer:
    """Keeps the columns of the batches of a pass; of more rows than `POOL` every second, fourth, eighth one."""

    def __init__(self, most: int = POOL) -> None:
        self._most = most
        self._every = 1
        self._seen = 0
        self._held: list[Pool] = []
        self._n = 0
        self._last_line = UNKNOWN
        self._last_nth = 0

    def add(self, batch: Batch) -> None:
        """One batch more."""
        columns = Pool(batch.line, self._nth(batch.line), *batch[1:7])
        start = -self._seen % self._every
        self._seen += batch.size
        self._held.append(_of(columns, slice(start, None, self._every)))
        self._n += len(self._held[-1].line)
        while self._n > self._most:
            self._thin()

    def _nth(self, line: Ints) -> Ints:
        """Which request of its line each is."""
        fresh = np.append(line[:1] != self._last_line, line[1:] != line[:-1])
        place = np.arange(len(line))
        since = place - np.maximum.accumulate(np.where(fresh, place, 0))
        carried = np.cumsum(fresh) == 0
        nth: Ints = since + np.where(carried, self._last_nth + 1, 0)
        self._last_line, self._last_nth = int(line[-1]), int(nth[-1])
        return nth

    def _thin(self) -> None:
        whole = self.pool()
        self._every *= 2
        self._held = [_of(whole, slice(0, None, 2))]
        self._n = len(self._held[0].line)

    def pool(self) -> Pool:
        """What is kept."""
        if not self._held:
            return Pool(*[np.zeros(0, np.int64)] * len(Pool._fields))
        return Pool(*(np.concatenate(column) for column in zip(*self._held, strict=True)))


def _of(pool: Pool, which: slice | Ints) -> Pool:
    return Pool(*(column[which] for column in pool))


def choose(pool: Pool, rows: int, seed: int) -> Pool:
    """`rows` rows of the pool, in its order; all of them where there are no more. Same seed, same rows."""
    total = len(pool.line)
    if rows >= total:
        return pool
    random = np.random.default_rng(seed)
    stratum = np.minimum(pool.turns, 8) * 3 + (pool.shared_tokens > 0) + (2 * pool.shared_tokens > pool.input_tokens)
    names, sizes = np.unique(stratum, return_counts=True)
    chosen = [
        _along(pool, np.flatnonzero(stratum == name), part, random)
        for name, part in zip(names.tolist(), _parts(sizes.tolist(), rows), strict=True)
        if part
    ]
    return _of(pool, np.sort(np.concatenate(chosen)))


def _parts(sizes: Sequence[int], rows: int) -> list[int]:
    """Each its part of `rows`, the rest to the greatest remainders."""
    total = sum(sizes)
    parts = [size * rows // total for size in sizes]
    by_rest = sorted(range(len(sizes)), key=lambda at: -(sizes[at] * rows % total))
    for at in by_rest[: rows - sum(parts)]:
        parts[at] += 1
    return parts


def _along(pool: Pool, places: Ints, rows: int, random: np.random.Generator) -> Ints:
    """`rows` of these: slabs along the input, each with its part, evenly along the output of a slab."""
    order = places[_order(pool.input_tokens[places], random)]
    slabs = np.array_split(order, max(1, math.isqrt(rows)))
    taken = []
    for slab, part in zip(slabs, _parts([len(slab) for slab in slabs], rows), strict=True):
        if part:
            inner = slab[_order(pool.output_tokens[slab], random)]
            at = ((np.arange(part) + random.random()) * len(inner) / part).astype(np.int64)
            taken.append(inner[at])
    return np.concatenate(taken)


def _order(values: Ints, random: np.random.Generator) -> Ints:
    """Ascending, like ones in random order."""
    order: Ints = np.lexsort((random.random(len(values)), values))
    return order


def distances(
    pool: Pool, margins: dict[str, tuple[Ints, Ints]], rows: Pool, ids: Sequence[HashIds], block_tokens: int
) -> dict[str, float]:
    """How far each margin of the chosen rows is from that of the whole source (KS).

    `prefix` is the share of each prompt that the rows before it began with, as the sample itself has it by `ids`; left
    out where the source tells nothing of it.
    """
    columns = {"input": rows.input_tokens, "output": rows.output_tokens, "turns": rows.turns}
    found = {name: ks(margins[name], counted(column.tolist())) for name, column in columns.items()}
    if (pool.shared_tokens != UNKNOWN).any():
        kept = shared_again(rows.input_tokens.tolist(), ids, block_tokens)
        found["prefix"] = ks(_shares(pool.shared_tokens, pool.input_tokens), counted(kept))
    return found


def representative(found: Mapping[str, float]) -> bool:
    """Whether every margin is within `REPRESENTATIVE_KS`."""
    return all(distance <= REPRESENTATIVE_KS for distance in found.values())


def _shares(shared: Ints, tokens: Ints) -> tuple[Ints, Ints]:
    """Shared parts of prompts in percent, rounded, as a counted distribution."""
    return counted(_percent(shared, tokens).tolist())


def _percent(shared: Ints, tokens: Ints) -> Ints:
    share = np.where(shared == UNKNOWN, UNKNOWN, np.rint(100 * shared / np.maximum(tokens, 1)))
    return share.astype(np.int64)


def chains(rows: Pool, block_tokens: int) -> list[HashIds]:
    """Ids of blocks that make the rows share again what each shared with others in the source.

    Rows with one of the commonest first blocks go on sharing it; the others share one prefix. The first of each
    brings all its blocks; the rest of a later prompt is its own. None where nothing is known of a row's prefix.
    """
    often = Counter(root for root in rows.root.tolist() if root != UNKNOWN)
    kept = {root for root, n in often.most_common(max(1, int(_GROUP_SHARE * len(rows.root)))) if n > 1}
    heads: dict[int, list[int]] = {}
    fresh = iter(range(1 << 62))
    found: list[HashIds] = []
    for asked, shared, root in zip(
        rows.input_tokens.tolist(), rows.shared_tokens.tolist(), rows.root.tolist(), strict=True
    ):
        if shared == UNKNOWN:
            found.append(None)
            continue
        own = root in kept
        head = heads.setdefault(root if own else UNKNOWN, [])
        count = -(-max(asked, 0) // block_tokens)
        first = not head and (own or shared > 0)
        common = count if first else min(-(-shared // block_tokens), count)
        head += [next(fresh) for _ in range(common - len(head))]
        found.append((*head[:common], *(next(fresh) for _ in range(count - common))))
    return found


def shared_again(tokens: Sequence[int], ids: Sequence[HashIds], block_tokens: int) -> list[int]:
    """How much of each prompt, in percent, the rows before it began with; UNKNOWN without ids."""
    prefixes = Prefixes(block_tokens)
    found = [
        UNKNOWN if blocks is None else prefixes.shared(blocks, asked)[0]
        for asked, blocks in zip(tokens, ids, strict=True)
    ]
    percent: list[int] = _percent(np.array(found, np.int64), np.array(tokens, np.int64)).tolist()
    return percent
