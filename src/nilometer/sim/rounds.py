"""The decode steps of an engine, numbered: who takes part, when each ended, and what is known of those ahead.

Their ends are kept once for all sequences; a sequence knows the rounds it takes part in. So a round costs the same
however many decode, and one can see ahead: in which round somebody ends, before which somebody needs a block, how the
cached tokens grow. Between such rounds the composition stays the same, and a simulator may leap (`coast`).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from heapq import heappop, heappush

from .cost import Line
from .kv import Pool
from .pace import Pace
from .sequence import NOWHERE, Running


class Rounds:
    """`now` is the round that is next, or under way."""

    __slots__ = (
        "_ending",
        "_ends",
        "_gains",
        "_grown",
        "_joinings",
        "_pool",
        "context",
        "decoding",
        "need",
        "now",
    )

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self.now = self.decoding = self.context = self._grown = self._joinings = 0
        """`decoding` sequences hold `context` tokens, the ones they are about to decode with included."""
        self.need: dict[int, int] = {}
        """Blocks wanted before a round."""
        self._gains: dict[int, int] = {}
        """Tokens that speculation gives in a round."""
        self._ends = array("d")
        self._ending: list[tuple[int, int, Running]] = []

    def rewind(self) -> None:
        """Counts anew where nobody decodes: what was kept of old rounds is let go."""
        if not self.decoding and self.now:
            self.now = self._grown = 0
            self._ends = array("d")
            self._ending.clear()
            self.need.clear()
            self._gains.clear()

    def supplied(self) -> None:
        """The blocks that are needed before this round have been taken."""
        self.need.pop(self.now, None)
        self._grown = self.now + 1

    def join(self, one: Running, plan: list[int] | None, *, growing: bool) -> None:
        """Takes part from this round on; `plan` = what each of its rounds gives. `growing`: takes blocks as it goes."""
        self._joinings += 1
        one.joins(self.now, self._joinings, plan)
        one.grows = one.growths(self._pool.block_tokens) if growing else ()
        for at in one.grows:
            self.need[at] = self.need.get(at, 0) + 1
        for i, gained in enumerate(plan or (), self.now):
            self._gains[i] = self._gains.get(i, 0) + gained
        self.decoding += 1
        self.context += one.ask.prompt_tokens + one.emitted
        heappush(self._ending, (one.ends_at, one.number, one))

    def leave(self, one: Running) -> int:
        """Takes no part any more, and its stamps along; gives the blocks that it took since it joined."""
        grown = bisect_left(one.grows, self._grown)
        for at in one.grows[grown:]:
            self.need[at] -= 1
            if not self.need[at]:
                del self.need[at]
        if one.gains is not None:
            for i in range(self.now, one.ends_at + 1):
                self._gains[i] -= one.gains[i - one.joined]
        self.decoding -= 1
        self.context -= one.ask.prompt_tokens + one.done_by(self.now)
        one.keeps(self._ends[one.joined : self.now], self.now)
        return grown

    def gains_of(self, one: Running) -> int:
        """Tokens that this round gives to one; 0 where it takes no part."""
        if one.joined == NOWHERE:
            return 0
        return 1 if one.gains is None else one.gains[self.now - one.joined]

    def end(self, at_s: float, *, planned: bool) -> int:
        """This round is over; gives the tokens written in it. `planned`: they are what speculation gives."""
        gained = self._gains.pop(self.now, 0) if planned else self.decoding
        self._ends.append(at_s)
        self.context += gained
        self.now += 1
        return gained

    def ended(self) -> list[Running]:
        """Those for whom the round that is over was the last; they still have to leave."""
        found, ending = [], self._ending
        while ending and ending[0][0] < self.now:
            _, number, one = heappop(ending)
            if one.number == number:
                found.append(one)
        return found

    def coast(self, at_s: float, until_s: float, before_s: float, lines: tuple[Line, ...], pace: Pace | None) -> float:
        """Rounds from `at_s` on in which nobody ends or lacks a block; gives the end of the last one.

        All end up to `until_s` and begin before `before_s`. Here a simulator would leap.
        """
        now, decoding, context = self.now, self.decoding, self.context
        ends, need, stop = self._ends, self.need, self._ending[0][0]
        line_s, slope_s = lines[0]
        while now < stop and at_s < before_s:
            seconds = line_s + slope_s * context
            for other_s, other_slope_s in lines[1:]:
                seconds = max(seconds, other_s + other_slope_s * context)
            end_s = at_s + seconds if pace is None else pace.ends_s(at_s, seconds)
            if end_s > until_s:
                break
            if now in need:
                if not self._pool.take(need[now]):
                    break
                del need[now]
                self._grown = now + 1
            ends.append(end_s)
            at_s = end_s
            now += 1
            context += decoding
        self.now, self.context = now, context
        return at_s
