"""One replica as a machine of steps: a queue, a pool, and batches that are put together anew at every step.

It reads no clock: `advance` goes on to a moment that it is given. What decodes is kept by rounds
(`rounds.py`), so that a step costs the same however many decode and steps that are alike are done in one go.
"""

from __future__ import annotations

from collections import deque
from math import inf
from random import Random

from .adapters import Adapters
from .event import Answer, Event, Gauges, Kind
from .kv import UNBOUNDED, Pool
from .pace import Pace
from .policies import POLICIES
from .rounds import Rounds
from .sequence import NOWHERE, Running, rounds_of
from .setting import Ask, Setting


class Engine:
    """Use: `submit`, then `advance` to a moment, again and again. `next_s` is when it has something to do."""

    def __init__(
        self, setting: Setting, random: Random, *, pace: Pace | None = None, replica: int = 0, tokens: bool = False
    ) -> None:
        self.setting = setting
        self.pool = Pool(setting.kv_blocks or UNBOUNDED, setting.block_tokens)
        self.waiting: deque[Running] = deque()
        self.running_by_key: dict[int, Running] = {}
        """In order of admission."""
        self.budget = 0
        self._random, self._pace, self._replica, self._tokens = random, pace, replica, tokens
        self._policy = POLICIES[setting.policy]
        self._speculates = setting.speculation is not None
        self._verified = 1 + (setting.speculation.drafts if setting.speculation else 0)
        self._adapters = Adapters(setting.adapter_slots, setting.adapter_swap_s)
        self._swap_s = 0.0
        self._prefilling: list[Running] = []
        self._chunks: list[tuple[Running, int]] = []
        self._ready_s, self._ends_s = 0.0, inf
        self._decodes = False
        self._stuck = False
        """Nobody who waits can be admitted, for want of blocks or of a slot for its adapter, until somebody leaves."""
        self._rounds = Rounds(self.pool)
        self._events: list[Event] = []
        self.steps = self.preemptions = self.prefilled = self.written = self.prompts_asked = self.prompts_found = 0
        self.busy_s = 0.0

    @property
    def running(self) -> int:
        """Sequences admitted and not ended."""
        return len(self.running_by_key)

    @property
    def stepping(self) -> bool:
        """Whether a step is under way."""
        return self._ends_s < inf

    @property
    def next_s(self) -> float:
        """When the step under way ends, or the next one begins; infinite where there is nothing to do."""
        if self._ends_s < inf:
            return self._ends_s
        return self._ready_s if self.waiting or self.running_by_key else inf

    def idle_s(self, now_s: float) -> float:
        """How long it has had nothing to do."""
        return now_s - self._ready_s if self.next_s == inf else 0.0

    @property
    def gauges(self) -> Gauges:
        """As of the last step."""
        return Gauges(
            self.running,
            len(self.waiting),
            self.pool.held,
            self.pool.kept,
            self.steps,
            self.preemptions,
            self.prefilled,
            self.written,
            self.prompts_asked,
            self.prompts_found,
            self.busy_s,
            self._rounds.context + sum(one.prompt - one.left for one in self._prefilling),
        )

    def fits(self, ask: Ask) -> bool:
        """Whether it could ever be served: alone in the pool, and within a context where one is reserved."""
        most = ask.prompt_tokens + ask.limit
        if self.setting.reserve == "context":
            if most > self.setting.context_tokens:
                return False
            most = self.setting.context_tokens
        return self.pool.blocks_of(most) <= self.pool.blocks

    def submit(self, ask: Ask, now_s: float) -> None:
        """A request comes; it is looked at when the next step is put together. Its key is new.

        ValueError where it could never be served (`fits`).
        """
        if not self.fits(ask):
            raise ValueError("a request that never fits")
        if self.next_s == inf:
            self._ready_s = max(self._ready_s, now_s)
        self.waiting.append(Running(ask, now_s))
        if ask.adapter is not None:
            self._stuck = False

    def cancel(self, key: int) -> bool:
        """Nobody waits for it any more; whether it was there."""
        one = self.running_by_key.get(key)
        if one is not None:
            self._leave(one)
            return True
        for one in self.waiting:
            if one.ask.key == key:
                self.waiting.remove(one)
                self._stuck = False
                return True
        return False

    def has_begun(self, key: int) -> bool:
        """Whether a token of this request has been written."""
        one = self.running_by_key.get(key) or next((one for one in self.waiting if one.ask.key == key), None)
        return one is not None and bool(one.stamps)

    def advance(self, until_s: float, before_s: float) -> list[Event]:
        """Goes on to the first moment at which something is to be told. Nothing to tell: an empty list.

        Steps that end up to `until_s` are done. A step that would begin after it, or at `before_s`, is not begun: what
        comes at that moment may join it.
        """
        self._events = []
        while not self._events:
            if self._ends_s == inf:
                if not self._tokens and not self._speculates and self._settled():
                    self._coast(until_s, before_s)
                if self._ready_s > until_s or self._ready_s >= before_s or not self._begin():
                    break
            if self._ends_s > until_s:
                break
            self._end()
        return self._events

    def _begin(self) -> bool:
        """Puts the next step together; False where there is nothing to do."""
        if not self.running_by_key and not self.waiting:
            return False
        rounds = self._rounds
        rounds.rewind()
        self._chunks = []
        self._swap_s = 0.0
        self.budget = self.setting.max_batched_tokens
        self._decodes = (rounds.now not in rounds.need and self._settled()) or self._policy(self)
        decoded = self.decoded if self._decodes else 0
        prefilled, read = 0, rounds.context if decoded else 0
        for one, chunk in self._chunks:
            prefilled += chunk
            read += one.prompt - one.left
        if not decoded and not prefilled:
            return False
        seconds = self.setting.cost.seconds(prefilled, decoded, read) + self._swap_s
        seconds += self._drafting_s() if decoded else 0.0
        pace = self._pace
        self._ends_s = self._ready_s + seconds if pace is None else pace.ends_s(self._ready_s, seconds)
        self.steps += 1
        self.prefilled += prefilled
        self.busy_s += self._ends_s - self._ready_s
        return True

    def _settled(self) -> bool:
        """Whether all that the policy would do, but for making room, is to let those decode who do."""
        if self._prefilling or not self._rounds.decoding:
            return False
        closed = self._stuck or len(self.running_by_key) >= self.setting.slots or self.setting.policy == "static"
        return closed or not self.waiting

    def _coast(self, until_s: float, before_s: float) -> None:
        """The steps in which all decode and nothing else happens, as `_begin` and `_end` would do them one by one."""
        rounds, begun_s = self._rounds, self._ready_s
        steps, written = rounds.now, rounds.context
        lines = self.setting.cost.lines(0, rounds.decoding)
        self._ready_s = rounds.coast(begun_s, until_s, before_s, lines, self._pace)
        self.steps += rounds.now - steps
        self.written += rounds.context - written
        self.busy_s += self._ready_s - begun_s

    def _drafting_s(self) -> float:
        asked = self.setting.speculation
        if asked is None:
            return 0.0
        return (
            asked.drafts * asked.draft_share * self.setting.cost.seconds(0, self._rounds.decoding, self._rounds.context)
        )

    # What a policy may do.

    @property
    def decoded(self) -> int:
        """Tokens that those who decode bring into a step: with speculation the guessed ones too."""
        return self._rounds.decoding * self._verified

    @property
    def next_prompt(self) -> int | None:
        """Tokens of the prompt that is next; None where none waits."""
        one = self._next()
        return None if one is None else one.prompt

    def make_room(self) -> bool:
        """The blocks that decoding needs before this round, the oldest first; whether nobody was preempted for them.

        What is free is taken before the newest has to go, so that cached blocks are lost in the order of a real engine.
        """
        rounds, taken = self._rounds, 0
        preempted = self.preemptions
        while not self.pool.take(rounds.need.get(rounds.now, 0) - taken):
            taken += self.pool.free
            self.pool.take(self.pool.free)
            self._preempt(next(reversed(self.running_by_key.values())))
        rounds.supplied()
        return self.preemptions == preempted

    def admit(self) -> bool:
        """The one that is next gets a slot and its blocks; False where it cannot."""
        if not self.waiting or len(self.running_by_key) >= self.setting.slots:
            return False
        one = self._next()
        if one is None:
            self._stuck = True
            return False
        found = self._found(one)
        if not self.pool.take_with(one.ask.hashes[:found], self._reserved(one) - found):
            self._stuck = True
            return False
        self.waiting.remove(one)
        one.given = self._reserved(one) - found
        one.hashes = list(one.ask.hashes[:found])
        one.left = one.prompt - found * self.setting.block_tokens
        if not one.preemptions:
            one.admitted_s = self._ready_s
            one.cached = found * self.setting.block_tokens
        self.prompts_asked += one.prompt
        self.prompts_found += one.prompt - one.left
        self.running_by_key[one.ask.key] = one
        self._prefilling.append(one)
        self._swap_s += self._adapters.enters(one.ask.adapter)
        return True

    def _next(self) -> Running | None:
        """The one that has waited for longest; those for whose adapter there is no slot are passed over."""
        return next((one for one in self.waiting if self._adapters.fits(one.ask.adapter)), None)

    def prefill_all(self) -> None:
        """Those admitted before get on with their prompts, in order, while the step has room."""
        for one in self._prefilling:
            if self.budget <= 0:
                return
            self._chunk(one, min(one.left, self.budget))

    def prefill_newest(self, *, whole: bool = False) -> None:
        """The one admitted last begins with its prompt: what the step has room for, or all of it."""
        one = self._prefilling[-1]
        self._chunk(one, one.left if whole else min(one.left, self.budget))

    def _chunk(self, one: Running, tokens: int) -> None:
        self._chunks.append((one, tokens))
        self.budget -= tokens

    def _found(self, one: Running) -> int:
        """Cached blocks of its prompt; its last token is computed in any case."""
        if not self.setting.prefix_cache:
            return 0
        return self.pool.found(one.ask.hashes, (one.ask.prompt_tokens - 1) // self.setting.block_tokens)

    def _reserved(self, one: Running) -> int:
        """Blocks that it holds on admission, cached ones included."""
        reserve = self.setting.reserve
        if reserve == "context":
            return self.pool.blocks_of(self.setting.context_tokens)
        if reserve == "max_tokens":
            return self.pool.blocks_of(one.ask.prompt_tokens + one.ask.limit)
        return self.pool.blocks_of(one.prompt + 1)

    # What a step does.

    def _end(self) -> None:
        at_s, self._ready_s, self._ends_s = self._ends_s, self._ends_s, inf
        if self._decodes and self._rounds.decoding:
            self._decoded(at_s)
        for one, chunk in self._chunks:
            if one.ask.key not in self.running_by_key:
                continue
            one.left -= chunk
            if not one.left:
                self._prefilled(one, at_s)

    def _decoded(self, at_s: float) -> None:
        if self._tokens:
            for key, one in self.running_by_key.items():
                if gained := self._rounds.gains_of(one):
                    self._events.append(Event(at_s, "token", key, gained, replica=self._replica))
        self.written += self._rounds.end(at_s, planned=self._speculates)
        for one in self._rounds.ended():
            self._leave(one)
            self._finish(one, at_s)

    def _prefilled(self, one: Running, at_s: float) -> None:
        """Its prompt is computed, and with it one token; it decodes from the next round on."""
        self._prefilling.remove(one)
        self._stuck = False
        if self.setting.prefix_cache:
            held = len(one.hashes)
            new = self.pool.publish(one.ask.hashes[held:])
            one.hashes.extend(new)
            one.given -= len(new)
        if self._tokens:
            kind: Kind = "token" if one.stamps else "first"
            self._events.append(Event(at_s, kind, one.ask.key, 1, replica=self._replica))
        one.stamps.append(at_s)
        if one.counts is not None:
            one.counts.append(1)
        one.emitted += 1
        self.written += 1
        if one.emitted >= one.written:
            self._leave(one)
            self._finish(one, at_s)
        else:
            self._join(one)

    def _join(self, one: Running) -> None:
        asked = self.setting.speculation
        plan = rounds_of(one.written - one.emitted, asked, self._random) if asked else None
        self._rounds.join(one, plan, growing=self.setting.reserve == "growing")

    def _leave(self, one: Running) -> None:
        """Gives back its slot and its blocks."""
        del self.running_by_key[one.ask.key]
        self._adapters.leaves(one.ask.adapter)
        self._stuck = False
        if one.left:
            self._prefilling.remove(one)
        grown = 0 if one.joined == NOWHERE else self._rounds.leave(one)
        self.pool.give(one.given + grown)
        self.pool.let_go(one.hashes)
        one.given, one.hashes, one.left = 0, [], 0

    def _preempt(self, one: Running) -> None:
        """Its blocks are taken; it waits in front of all others, to be computed again."""
        self._leave(one)
        one.preemptions += 1
        self.preemptions += 1
        self.waiting.appendleft(one)
        self._stuck = False
        if self._tokens:
            self._events.append(Event(self._ready_s, "preempted", one.ask.key, replica=self._replica))

    def _finish(self, one: Running, at_s: float) -> None:
        answer = Answer(
            one.stamps,
            one.counts,
            one.written,
            one.cached,
            one.entered_s,
            one.admitted_s,
            one.preemptions,
            self._replica,
            one.written >= one.ask.limit,
        )
        self._events.append(Event(at_s, "finish", one.ask.key, 0, answer, replica=self._replica))
