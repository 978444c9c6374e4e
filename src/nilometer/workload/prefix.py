"""What prompts have in common at their start: chains of blocks, and how much of each was seen before. Pure.

A block of text is `BLOCK_CHARACTERS` long. Ids are handed out in the order in which blocks are first seen, so they say
nothing of the text.
"""

from __future__ import annotations

from collections.abc import Sequence

BLOCK_TOKENS = 64
"""Tokens that a block of text stands for."""
BLOCK_CHARACTERS = 4 * BLOCK_TOKENS
MOST_BLOCKS = 1_000_000
"""Blocks that are remembered; beyond it new ones are not, and what is shared is a lower bound."""


class Prefixes:
    """Remembers the chains of blocks it was shown."""

    def __init__(self, block_tokens: int) -> None:
        self._block_tokens = block_tokens
        self._seen: dict[int, int] = {}
        self.full = False

    def shared(self, blocks: Sequence[object], tokens: int | None) -> tuple[int, list[int]]:
        """(tokens of the prompt that an earlier one began with, ids of its blocks); then it has been seen too.

        An id stands for its block and all before it. A last block that is not full counts as far as the prompt goes.
        A block that cannot be kept any more ends the chain.
        """
        seen = self._seen
        known = len(seen)
        ids: list[int] = []
        old = before = 0
        for block in blocks:
            before = hash((before, block))
            found = seen.get(before)
            if found is None:
                found = len(seen)
                if found >= MOST_BLOCKS:
                    self.full = True
                    break
                seen[before] = found
            elif found < known:
                old += 1
            ids.append(found)
        most = len(blocks) * self._block_tokens if tokens is None else tokens
        return min(old * self._block_tokens, most), ids


def text_blocks(text: str) -> list[int]:
    """Hashes of the full blocks of a text; what is shorter than one has none."""
    return [
        hash(text[start : start + BLOCK_CHARACTERS])
        for start in range(0, len(text) - BLOCK_CHARACTERS + 1, BLOCK_CHARACTERS)
    ]
