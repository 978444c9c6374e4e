"""How long a prompt is as the server counts it: the pieces prompts are made of, each with its tokens.

A prompt is a beginning word, some plain words, a colon, sentences and a closing, one blank between any two of them. In
the tokenizers of language models no token reaches across such a blank, so the tokens of a prompt are the sum of those
of its pieces. That is assumed here and tested on finished prompts (`corrected`). Pure: counting is a function handed
in.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple

import msgspec

from . import corpus, estimate
from .corpus import Corpus

Source = Literal["server_tokenizer", "usage", "estimated"]
Count = Callable[[str], int]
"""Prompt tokens of a text, all that the server adds around it included."""

TOLERANCE = 0.01
"""Asked against got: more than this is worth a word."""

_GROUP = 6
"""Words tested at once: large enough to save counts, small enough that one long word spoils few."""


class Uncountable(Exception):  # noqa: N818 - an answer of the server, not a fault
    """The server's counts do not follow the text, so no prompt can be measured by them."""


class Effort(NamedTuple):
    """How many pieces to count. Each costs one request."""

    starts: int
    words: int
    tests: int
    sentences: int
    passages: int


CHEAP = Effort(starts=8, words=96, tests=48, sentences=32, passages=16)
"""Counting costs next to nothing: a tokenize endpoint."""
DEAR = Effort(starts=4, words=48, tests=12, sentences=16, passages=12)
"""Each count is a whole request with its prefill."""


class Unit(msgspec.Struct, frozen=True):
    """A piece of text and its tokens."""

    text: str
    tokens: int


class Ruler(msgspec.Struct, frozen=True, kw_only=True):
    """What prompts are made of.

    The tokens of `starts` include all that surrounds the prompt (chat template, begin-of-text). `words` cost
    `word_tokens` each: 1 where they were found to be single tokens. `frame` is the closing, with the tokens of colon
    and closing. `shift` tokens and `drift` (a share) are what finished prompts turned out longer than their sum.
    `verified`: finished prompts were counted and agreed to the token; None = not tried.
    """

    source: Source
    starts: tuple[Unit, ...]
    words: tuple[str, ...]
    units: tuple[Unit, ...]
    frame: Unit
    word_tokens: float = 1.0
    shift: int = 0
    drift: float = 0.0
    verified: bool | None = None

    @property
    def least(self) -> int:
        """Tokens of the shortest prompt that every beginning can make."""
        return max(start.tokens for start in self.starts) + self.shift

    def planned(self, tokens: int) -> int:
        """The sum of pieces to aim at so that the server counts `tokens`."""
        return round((tokens - self.shift) / (1 + self.drift))


def measure(count: Count, text: Corpus, longest: int, effort: Effort, source: Source) -> Ruler:
    """Count the pieces for prompts of up to `longest` tokens. Raises Uncountable, and whatever `count` raises."""
    starts = tuple(Unit(start, count(start)) for start in corpus.STARTS[: effort.starts])
    words, word_tokens = _words(count, starts[0], effort)
    opening = f"{starts[0].text} {words[0]}"
    empty = count(f"{opening}: {text.closing}")

    def unit(piece: str) -> Unit:
        return Unit(piece, count(f"{opening}: {piece} {text.closing}") - empty)

    units = [unit(piece) for piece in corpus.spread(text.lines, effort.sentences)]
    units += [unit(piece) for piece in _passages(units, text.lines, longest, effort.passages)]
    if min(unit.tokens for unit in units) <= 0:
        raise Uncountable
    return Ruler(
        source=source,
        starts=starts,
        words=tuple(words),
        word_tokens=word_tokens,
        frame=Unit(text.closing, empty - count(opening)),
        units=tuple(units),
    )


def _words(count: Count, start: Unit, effort: Effort) -> tuple[Sequence[str], float]:
    """Words of one token each; where there are hardly any, all of them with their mean cost."""
    words = corpus.WORDS[: effort.words]

    def cost(low: int, high: int) -> int:
        return count(" ".join([start.text, *words[low:high]])) - start.tokens

    total = cost(0, len(words))
    if total <= 0:
        raise Uncountable
    single = words if total == len(words) else _single(words, cost, effort.tests)
    return (single, 1.0) if len(single) >= _GROUP else (words, total / len(words))


def _single(words: Sequence[str], cost: Callable[[int, int], int], tests: int) -> list[str]:
    """Words of single tokens: small groups are tested, those that cost more than a token a word halved once more.

    At most `tests` counts.
    """
    found: list[str] = []
    groups = [(low, min(low + _GROUP, len(words))) for low in range(0, len(words), _GROUP)]
    while groups and tests > 0:
        low, high = groups.pop(0)
        tests -= 1
        if cost(low, high) == high - low:
            found += words[low:high]
        elif high - low > 1:
            middle = (low + high) // 2
            groups += [(low, middle), (middle, high)]
    return found


def _passages(units: Sequence[Unit], lines: Sequence[str], longest: int, most: int) -> list[str]:
    """Longer stretches, so that a prompt of `longest` tokens need not say anything twice; none where sentences do."""
    tokens = sum(unit.tokens for unit in units)
    needed = longest * 1.5 - tokens
    if needed <= 0 or tokens <= 0:
        return []
    characters_per_token = sum(len(unit.text) for unit in units) / tokens
    each = max(48, math.ceil(needed / most))
    return corpus.passages(lines, min(most, math.ceil(needed / each)), round(each * characters_per_token))


def corrected(ruler: Ruler, seen: Iterable[tuple[int, int]]) -> Ruler:
    """The ruler after finished prompts were counted: pairs of (asked, got) tokens.

    All alike off: a shift; else the line of least squares through what was planned and what was got. `verified` says
    that they were exact as they stood, so a changed ruler has it False until it is tried again.
    """
    pairs = list(seen)
    off = [got - asked for asked, got in pairs]
    if not any(off):
        return msgspec.structs.replace(ruler, verified=True) if pairs else ruler
    if max(off) - min(off) <= 1 or len({asked for asked, _ in pairs}) == 1:
        shift = ruler.shift + round(sum(off) / len(off))
        return msgspec.structs.replace(ruler, shift=shift, verified=False)
    planned = [ruler.planned(asked) for asked, _ in pairs]
    slope, intercept = statistics.linear_regression(planned, [got for _, got in pairs])
    return msgspec.structs.replace(ruler, shift=round(intercept), drift=slope - 1, verified=False)


def estimated(text: Corpus) -> Ruler:
    """A ruler without any count: tokens from characters, nothing added for a chat template. Never within 1 %."""
    pieces = [*corpus.spread(text.lines, 64), *corpus.passages(text.lines, 32, 1200)]
    return Ruler(
        source="estimated",
        starts=tuple(Unit(start, 1) for start in corpus.STARTS),
        words=corpus.WORDS,
        frame=Unit(text.closing, 1 + estimate.tokens(text.closing)),
        units=tuple(Unit(piece, estimate.tokens(piece)) for piece in pieces),
    )
