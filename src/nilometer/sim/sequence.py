"""One request inside an engine: what it has, what it still needs, and when its tokens came."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from random import Random

from .setting import Ask, Speculation

NOWHERE = -1


class Running:
    """A sequence, waiting or admitted. Rounds are the numbers of the engine's decode steps."""

    __slots__ = (
        "admitted_s",
        "ask",
        "cached",
        "counts",
        "emitted",
        "ends_at",
        "entered_s",
        "gains",
        "given",
        "grows",
        "hashes",
        "joined",
        "left",
        "number",
        "preemptions",
        "stamps",
        "written",
    )

    def __init__(self, ask: Ask, entered_s: float) -> None:
        self.ask = ask
        self.entered_s = entered_s
        self.written = ask.written
        self.left = 0
        """Prompt tokens not computed yet since it was last admitted."""
        self.emitted = 0
        """Tokens written before it joined those that decode."""
        self.joined = NOWHERE
        """The first round it decodes in."""
        self.ends_at = NOWHERE
        """The last one."""
        self.number = NOWHERE
        """Of this joining; a sequence that was preempted joins anew."""
        self.gains: list[int] | None = None
        """Tokens of each of its rounds; None = one each."""
        self.grows: Sequence[int] = ()
        """The rounds before which it needs one more block."""
        self.given = 0
        """Private blocks."""
        self.hashes: list[int] = []
        """Of the shared blocks it holds."""
        self.cached = 0
        """Prompt tokens found in the cache when it was first admitted."""
        self.admitted_s = float("nan")
        """When it first got a slot."""
        self.preemptions = 0
        self.stamps = array("d")
        self.counts: list[int] | None = None
        """Tokens that came at each stamp; None = one each."""

    @property
    def prompt(self) -> int:
        """Tokens to be computed on admission: after a preemption also those that were written."""
        return self.ask.prompt_tokens + self.emitted

    def joins(self, first_round: int, number: int, plan: list[int] | None) -> None:
        """Decodes from this round on; the token of its prefill is counted already. `plan` = tokens of each round."""
        self.joined = first_round
        self.number = number
        self.gains = plan
        self.ends_at = first_round + (self.written - self.emitted if plan is None else len(plan)) - 1

    def growths(self, block_tokens: int) -> Sequence[int]:
        """The rounds before which it needs one more block than on joining: room for all it has written by then."""
        filled = self.ask.prompt_tokens + self.emitted
        if self.gains is None:
            return range(self.joined + 1 + -filled % block_tokens, self.ends_at + 1, block_tokens)
        rounds: list[int] = []
        blocks = -(-filled // block_tokens)
        for at, gained in enumerate(self.gains, self.joined):
            needed = -(-filled // block_tokens)
            rounds.extend([at] * (needed - blocks))
            blocks = needed
            filled += gained
        return rounds

    def done_by(self, rounds_over: int) -> int:
        """Tokens written in all rounds before this one."""
        if self.joined == NOWHERE:
            return self.emitted
        rounds = rounds_over - self.joined
        return self.emitted + (rounds if self.gains is None else sum(self.gains[:rounds]))

    def keeps(self, stamps: array[float], rounds_over: int) -> None:
        """Takes the stamps of its rounds with it; what it has written is then `emitted`."""
        self.stamps.extend(stamps)
        done = self.done_by(rounds_over)
        if self.gains is not None:
            self.counts = [*(self.counts or [1] * (len(self.stamps) - len(stamps))), *self.gains[: len(stamps)]]
        elif self.counts is not None:
            self.counts.extend([1] * len(stamps))
        self.emitted = done
        self.joined = self.ends_at = self.number = NOWHERE
        self.gains, self.grows = None, ()


def rounds_of(tokens: int, speculation: Speculation, random: Random) -> list[int]:
    """How many tokens each round gives until these are written; the last gives no more than are left."""
    rounds: list[int] = []
    while tokens > 0:
        gained = 1
        while gained <= speculation.drafts and random.random() < speculation.acceptance:
            gained += 1
        rounds.append(min(gained, tokens))
        tokens -= gained
    return rounds
