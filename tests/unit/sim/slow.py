"""An engine written a second time, as plainly as can be: each token of each sequence in each step, no numbering, no
heaps, no blocks counted ahead. What it answers is what the step machine has to answer. Deterministic settings only:
speculation with an acceptance of 0 or 1.
"""

from __future__ import annotations

from collections import OrderedDict

from nilometer.sim.setting import Ask, Setting


class One:
    def __init__(self, ask: Ask, at_s: float) -> None:
        self.ask, self.at_s = ask, at_s
        self.stamps: list[tuple[float, int]] = []
        self.emitted = 0
        self.left = 0
        self.blocks: list[int | None] = []
        """The content of each block it holds; None = nobody else's business."""
        self.preempted = 0

    @property
    def length(self) -> int:
        return self.ask.prompt_tokens + self.emitted


class Slow:
    def __init__(self, setting: Setting) -> None:
        self.s = setting
        self.drafts = setting.speculation.drafts if setting.speculation else 0
        self.now = 0.0
        self.coming: list[One] = []
        self.waiting: list[One] = []
        self.running: list[One] = []
        self.done: list[One] = []
        self.total = setting.kv_blocks or 10**9
        self.idle: OrderedDict[int, None] = OrderedDict()
        self.most_held = 0

    def ceil(self, tokens: int) -> int:
        return (tokens + self.s.block_tokens - 1) // self.s.block_tokens

    def held(self) -> int:
        private = sum(1 for r in self.running for b in r.blocks if b is None)
        return private + len({b for r in self.running for b in r.blocks if b is not None})

    def take(self, one: One, count: int, found: list[int]) -> bool:
        woken = sum(1 for h in found if h in self.idle)
        if self.held() + woken + count > self.total:
            return False
        for h in found:
            self.idle.pop(h, None)
        one.blocks = [*found, *one.blocks, *[None] * count]
        others = 0 if one in self.running else len({*found} - {b for r in self.running for b in r.blocks}) + count
        while self.held() + others + len(self.idle) > self.total:
            self.idle.popitem(last=False)
        return True

    def release(self, one: One) -> None:
        self.running.remove(one)
        others = {b for r in self.running for b in r.blocks}
        for h in reversed([b for b in one.blocks if b is not None]):
            if h not in others:
                self.idle[h] = None
        one.blocks = []

    def reserved(self, one: One) -> int:
        if self.s.reserve == "context":
            return self.ceil(self.s.context_tokens)
        if self.s.reserve == "max_tokens":
            return self.ceil(one.ask.prompt_tokens + one.ask.limit)
        return self.ceil(one.length + 1)

    def admit(self) -> One | None:
        if not self.waiting or len(self.running) == self.s.slots:
            return None
        one = self.waiting[0]
        found: list[int] = []
        if self.s.prefix_cache:
            cached = set(self.idle) | {b for r in self.running for b in r.blocks if b is not None}
            for h in one.ask.hashes[: (one.ask.prompt_tokens - 1) // self.s.block_tokens]:
                if h not in cached:
                    break
                found.append(h)
        if not self.take(one, self.reserved(one) - len(found), found):
            return None
        self.waiting.pop(0)
        self.running.append(one)
        one.left = one.length - len(found) * self.s.block_tokens
        return one

    def room(self) -> bool:
        """Each decoding sequence in order of admission takes the block it needs; the newest goes for it."""
        fine = True
        for one in list(self.running):
            while one in self.running and not one.left and self.s.reserve == "growing":
                if self.ceil(one.length) <= len(one.blocks):
                    break
                if not self.take(one, 1, []):
                    fine = False
                    victim = self.running[-1]
                    self.release(victim)
                    victim.left = 0
                    victim.preempted += 1
                    self.waiting.insert(0, victim)
        return fine

    def compose(self) -> tuple[list[tuple[One, int]], bool]:
        """The prompt tokens of this step, and whether those who have their first token decode in it."""
        policy = {"chunked": self.chunked, "blocking": self.blocking, "static": self.static}[self.s.policy]
        chunks, decodes = policy()
        if decodes and self.s.policy != "chunked":
            self.room()
        return chunks, decodes

    def chunked(self) -> tuple[list[tuple[One, int]], bool]:
        fine = self.room()
        chunks: list[tuple[One, int]] = []
        budget = self.s.max_batched_tokens - (1 + self.drafts) * sum(not r.left for r in self.running)
        for one in self.running:
            if one.left and budget > 0:
                chunks.append((one, min(one.left, budget)))
                budget -= chunks[-1][1]
        while fine and budget > 0 and (new := self.admit()):
            chunks.append((new, min(new.left, budget)))
            budget -= chunks[-1][1]
        return chunks, True

    def blocking(self) -> tuple[list[tuple[One, int]], bool]:
        chunks: list[tuple[One, int]] = []
        budget = self.s.max_batched_tokens
        while self.waiting and (not chunks or self.waiting[0].length <= budget) and (new := self.admit()):
            chunks.append((new, new.left))
            budget -= new.left
        return chunks, not chunks

    def static(self) -> tuple[list[tuple[One, int]], bool]:
        chunks: list[tuple[One, int]] = []
        if self.running:
            return chunks, True
        while new := self.admit():
            chunks.append((new, new.left))
        return chunks, False

    def step(self) -> None:
        chunks, decodes = self.compose()
        fresh = [one for one, _ in chunks]
        decoders = [r for r in self.running if decodes and not r.left and r not in fresh]
        read = sum(r.length for r in decoders) + sum(c.length - c.left for c in fresh)
        self.now += self.s.cost.seconds(sum(n for _, n in chunks), len(decoders) * (1 + self.drafts), read)
        if decoders and self.s.speculation:
            each = self.s.cost.seconds(0, len(decoders), sum(r.length for r in decoders))
            self.now += self.drafts * self.s.speculation.draft_share * each
        self.most_held = max(self.most_held, self.held())
        for one in decoders:
            gained = 1 + (self.drafts if self.s.speculation and self.s.speculation.acceptance == 1 else 0)
            self.write(one, min(gained, one.ask.written - one.emitted))
        for one, n in chunks:
            one.left -= n
            if not one.left:
                self.publish(one)
                self.write(one, 1)

    def publish(self, one: One) -> None:
        if not self.s.prefix_cache:
            return
        known = set(self.idle) | {b for r in self.running for b in r.blocks if b is not None}
        for i, h in enumerate(one.ask.hashes):
            if one.blocks[i] is None and h not in known:
                one.blocks[i] = h

    def write(self, one: One, tokens: int) -> None:
        one.emitted += tokens
        one.stamps.append((self.now, tokens))
        if one.emitted >= one.ask.written:
            self.release(one)
            self.done.append(one)

    def play(self, asks: list[Ask], due_s: list[float] | None = None, users: int = 0) -> list[One]:
        rest = list(asks)
        if due_s is None:
            due_s = [0.0] * min(users, len(rest))
        self.coming = [One(rest.pop(0), at) for at in due_s]
        while self.coming or self.waiting or self.running:
            if not self.waiting and not self.running:
                self.now = max(self.now, self.coming[0].at_s)
            while self.coming and self.coming[0].at_s <= self.now:
                self.waiting.append(self.coming.pop(0))
            over = len(self.done)
            self.step()
            for _ in self.done[over:]:
                if users and rest:
                    self.coming.append(One(rest.pop(0), self.now))
        return self.done
