"""Prompts of an asked length, made from a Ruler's pieces; distinct from their first words on unless told otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from random import Random

from .ruler import Ruler

OPENING_WORDS = 3
_BLOCKS = 4096
"""Texts of shared blocks that are remembered; the others are made anew, alike."""


class Maker:
    """Makes the prompts of one run. Same ruler, seed, salt and index: same prompt.

    `salt` tells runs apart, so that a repeated run does not find its own prompts in the server's prefix cache. Not
    `unique`: prompts of one length are all the same, in every run. The first `shared_tokens` are common to all prompts
    that begin with them. `name` tells apart what one run mixes.
    """

    def __init__(
        self,
        ruler: Ruler,
        *,
        seed: int = 0,
        salt: str = "",
        unique: bool = True,
        shared_tokens: int = 0,
        name: str = "",
    ) -> None:
        self._ruler = ruler
        self._unique = unique
        self._name = f"{seed}/{salt if unique else ''}" + (f"/{name}" if name else "")
        order = self._random("openings")
        self._starts = order.sample(ruler.starts, len(ruler.starts))
        self._words = order.sample(ruler.words, len(ruler.words))
        self._offset = order.randrange(1 << 32)
        self._smallest = min(unit.tokens for unit in ruler.units)
        self._block = lru_cache(_BLOCKS)(self._made_block)
        self._shared_tokens = ruler.planned(max(shared_tokens, ruler.least)) if shared_tokens else 0
        self._shared = self._whole(self._shared_tokens, 0, self._random("shared")) if shared_tokens else ""

    @property
    def least(self) -> int:
        """Tokens of the shortest prompt this can make; beside a common prefix one word must be left to differ."""
        return self._shared_tokens + 1 if self._shared else self._ruler.least

    @property
    def distinct(self) -> int:
        """So many prompts in a row differ within the first words of what is not common; after that only further on."""
        starts = 1 if self._shared else len(self._starts)
        return starts * int(len(self._words) ** OPENING_WORDS)

    def text(self, tokens: int, index: int, *, shared: bool = True) -> str:
        """Prompt number `index`, of `tokens` tokens as the server counts them; the shortest where fewer are asked.

        `shared`: it begins with the common prefix, where there is one.
        """
        number = index if self._unique else 0
        random = self._random(str(number))
        shared = shared and bool(self._shared)
        planned = self._ruler.planned(max(tokens, self.least if shared else self._ruler.least))
        if not shared:
            return self._whole(planned, number + self._offset, random)
        rest = self._body(planned - self._shared_tokens, self._opening(number + self._offset), random)
        return f"{self._shared} {rest}"

    def chained(self, tokens: int, index: int, blocks: Sequence[int], block_tokens: int) -> str:
        """Prompt number `index` of so many tokens that begins with these blocks of text, each known by its id.

        Two prompts of a run whose blocks begin alike begin alike. What lies behind the last block is the prompt's own.
        """
        left = self._ruler.planned(max(tokens, self.least))
        texts = []
        for place, block in enumerate(blocks):
            size = min(block_tokens, left)
            if size <= self._smallest and place:
                break
            texts.append(self._block(block, size, place == 0))
            left -= size
        if left > self._smallest:
            texts.append(self._body(left, self._opening(index + self._offset), self._random(str(index))))
        return " ".join(texts)

    def _made_block(self, block: int, tokens: int, first: bool) -> str:
        random = self._random(f"block {block}")
        number = block + self._offset
        return self._whole(tokens, number, random) if first else self._body(tokens, self._opening(number), random)

    def _random(self, purpose: str) -> Random:
        return Random(f"{self._name}/{purpose}")  # noqa: S311 - text, not a secret

    def _whole(self, tokens: int, number: int, random: Random) -> str:
        number, which = divmod(number, len(self._starts))
        start = self._starts[which]
        body = self._body(tokens - start.tokens, self._opening(number), random)
        return f"{start.text} {body}" if body else start.text

    def _opening(self, number: int) -> list[str]:
        """Words that spell the number, so that two numbers never open alike; the fastest-changing word comes first."""
        words = []
        for _ in range(OPENING_WORDS):
            number, which = divmod(number, len(self._words))
            words.append(self._words[which])
        return words

    def _body(self, tokens: int, opening: list[str], random: Random) -> str:
        """The opening, sentences, the closing; what is left over becomes more words of the opening."""
        cost, frame = self._ruler.word_tokens, self._ruler.frame
        spare = tokens - len(opening) * cost - frame.tokens
        if spare < self._smallest:
            number = max(0, round(tokens / cost))
            return " ".join(opening[:number] + random.choices(self._words, k=max(0, number - len(opening))))
        sentences, spare = self._fill(spare, random)
        words = opening + random.choices(self._words, k=round(spare / cost))
        return " ".join([" ".join(words) + ":", *sentences, frame.text])

    def _fill(self, spare: float, random: Random) -> tuple[list[str], float]:
        """Sentences in random order as long as one fits, none twice before all were offered; and what is left over."""
        units = self._ruler.units
        chosen: list[str] = []
        while spare >= self._smallest:
            for unit in random.sample(units, len(units)):
                if unit.tokens <= spare:
                    chosen.append(unit.text)
                    spare -= unit.tokens
        return chosen, spare
