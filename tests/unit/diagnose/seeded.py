"""A small step machine with seeded faults, for the tests of the evidence: a closed loop on a batching engine.

Each step decodes one token of every running stream and works on prompts in the order of admission; nothing is random
but lengths and jitter, from a seed.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from tests.unit.diagnose.made import even
from tests.unit.metrics.made import answered

from nilometer.core.record import Record


class Engine(NamedTuple):
    """A healthy engine where nothing is said; times in s."""

    slots: int = 32
    step_s: float = 0.02
    step_s_per_stream: float = 0.0
    prompt_s_per_token: float = 0.00002
    chunk: int | None = 512
    """Prompt tokens worked on in a step; None = a whole prompt, while all others stand still."""
    static: bool = False
    """Admits only into an empty batch."""
    room_tokens: int | None = None
    """Of the KV cache: when it is full, the youngest stream loses its place and starts over."""
    front_end_s: float = 0.0
    """One request at a time passes it."""
    buffered: bool = False
    cold: int = 0
    """So many requests are 2.5 s late at first."""
    neighbour: bool = False
    """Five times as slow for 1 s of 3."""


class _Request:
    def __init__(self, user: int, sent_s: float, ready_s: float, prompt: int, output: int) -> None:
        self.user, self.sent_s, self.ready_s, self.prompt, self.output = user, sent_s, ready_s, prompt, output
        self.to_do = prompt
        self.at_s: list[float] = []

    @property
    def held(self) -> int:
        return self.prompt + len(self.at_s)


def load(engine: Engine, users: int, *, until_s: float = 60.0, prompt: int = 400, output: int = 60) -> list[Record]:
    """What a closed loop of `users` sees of it."""
    random, now, door_s, sent = Random(users), 0.0, 0.0, 0
    waiting: list[_Request] = []
    running: list[_Request] = []
    made: list[Record] = []
    free = [(user * 0.05, user) for user in range(users)]
    while now < until_s:
        for at_s, user in [one for one in free if one[0] <= now]:
            free.remove((at_s, user))
            door_s = max(door_s, at_s) + engine.front_end_s
            late_s = 2.5 if sent < engine.cold else 0.0
            sent += 1
            size = round(prompt * random.lognormvariate(0, 0.5))
            tokens = max(5, round(output * random.lognormvariate(0, 0.4)))
            waiting.append(_Request(user, at_s, door_s + late_s, size, tokens))
        _admit(engine, waiting, running, now)
        now += _step_s(engine, running, now) * random.uniform(0.95, 1.1)
        for one in [one for one in running if one.to_do == 0]:
            one.at_s.append(now)
            if len(one.at_s) == one.output:
                running.remove(one)
                made.append(_record(engine, one))
                free.append((now + 0.001, one.user))
        _make_room(engine, waiting, running)
    return made


def _admit(engine: Engine, waiting: list[_Request], running: list[_Request], now: float) -> None:
    if engine.static and running:
        return
    for one in sorted(waiting, key=lambda one: one.ready_s):
        held = sum(other.held for other in running) + one.held + 16
        if len(running) >= engine.slots or one.ready_s > now or held > (engine.room_tokens or held):
            return
        waiting.remove(one)
        running.append(one)


def _step_s(engine: Engine, running: list[_Request], now: float) -> float:
    """How long a step takes; prompts go on by what it does of them."""
    budget, done = engine.chunk, 0
    for one in [one for one in running if one.to_do]:
        part = one.to_do if budget is None else min(one.to_do, budget - done)
        one.to_do -= part
        done += part
        if budget is None:
            break
    decoding = len([one for one in running if one.at_s])
    took = engine.step_s + engine.step_s_per_stream * decoding + engine.prompt_s_per_token * done
    return took * (5 if engine.neighbour and now % 3 < 1 else 1)


def _make_room(engine: Engine, waiting: list[_Request], running: list[_Request]) -> None:
    while engine.room_tokens and sum(one.held for one in running) > engine.room_tokens:
        victim = running.pop()
        victim.to_do = victim.held
        waiting.append(victim)


def _record(engine: Engine, one: _Request) -> Record:
    tokens = len(one.at_s)
    if engine.buffered:
        return even(one.sent_s, one.at_s[-1], tokens, 0.00001, prompt_tokens=one.prompt)
    return answered(one.sent_s, one.at_s, prompt_tokens=one.prompt)
