"""A whole service as a machine: what is in front of the engine, a router, replicas, and the way of the stream back.

One object for three uses: virtual time (`drive.simulate`), real sockets (`tokens=True`: an event for each token, `step`
called when `next_s` has come), and later a simulator that leaps over steps. It reads no clock and owns no randomness
but what it is handed: equal seeds and calls give equal events. Moments are seconds from the machine's own zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush, nsmallest
from math import inf
from random import Random
from typing import Literal, NamedTuple

import msgspec
from msgspec import structs

from .engine import Engine
from .event import Event, Gauges, Kind, Why
from .faults import HEALTHY, Faults
from .pace import Pace
from .setting import Ask, Setting
from .stream import Outlet, changes, passed_on

Router = Literal["least", "turns", "random"]
"""The replica with the fewest requests (in turn where several have), each in turn, or any."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The service: one setting for all replicas."""

    setting: Setting
    replicas: int = 1
    router: Router = "least"
    faults: Faults = HEALTHY


class _Try(NamedTuple):
    """One attempt at a request, as the gateway knows it."""

    ask: Ask
    number: int


class _Deadline(NamedTuple):
    """The gateway gives up on this attempt if no token of it has come."""

    key: int
    number: int


class Machine:
    """Use: `submit` what comes, `step` to a moment, take the events, again. A key is used once.

    In real time a request is submitted after all steps up to its moment; the machine keeps its own times however late
    it is called. The generator that is handed in is the machine's alone.

    `tokens`: whether each token is told as it comes; if not, only ends are, with all stamps. Slow spells come to all
    replicas at the same moments.
    """

    def __init__(self, plan: Plan, random: Random, *, tokens: bool = False) -> None:
        faults, spells = plan.faults, random.getrandbits(64)
        self.plan = plan
        self.engines = [
            Engine(
                plan.setting,
                _seeded(random.getrandbits(64)),
                pace=Pace(faults, _seeded(spells), _seeded(random.getrandbits(64)), i) if faults.slows else None,
                replica=i,
                tokens=tokens,
            )
            for i in range(plan.replicas)
        ]
        self._faults = faults
        self._random = random
        self._coming: list[tuple[float, int, _Try | _Deadline | Event]] = []
        """What happens outside the engines, by its moment."""
        self._tries: dict[int, _Try] = {}
        """What the gateway may still give up on."""
        self._outlets: dict[int, Outlet] = {}
        self._tokens, self._streams = tokens, changes(faults)
        self._entered = self._turn = self._numbers = 0
        self._front_free_s = self._filled_s = 0.0
        self._bucket = float(faults.rate_burst)

    @property
    def next_s(self) -> float:
        """When `step` has something to do; infinite where nothing is under way."""
        first = min(engine.next_s for engine in self.engines)
        return min(self._coming[0][0], first) if self._coming else first

    @property
    def gauges(self) -> Sequence[Gauges]:
        """Of each replica, as of its last step."""
        return [engine.gauges for engine in self.engines]

    def submit(self, ask: Ask, now_s: float) -> None:
        """A request reaches the service. Whatever becomes of it comes back as an event, but not if it gets lost."""
        faults = self._faults
        if not self._let_in(now_s):
            self._refuse(ask.key, now_s, "rate_limit")
        elif not self.engines[0].fits(ask):
            self._refuse(ask.key, now_s, "too_long")
        else:
            if faults.early_eos_share and self._random.random() < faults.early_eos_share:
                ask = _cut(ask, faults.early_eos_at)
            self._try(_Try(ask, 0), now_s)

    def cancel(self, key: int) -> bool:
        """The client of this request went away; whether an engine had it."""
        self._tries.pop(key, None)
        self._outlets.pop(key, None)
        self._coming = [one for one in self._coming if not isinstance(one[2], _Try) or one[2].ask.key != key]
        heapify(self._coming)
        return sum(engine.cancel(key) for engine in self.engines) > 0

    def step(self, now_s: float) -> list[Event]:
        """Goes on to the first moment up to `now_s` at which something is to be told; its events, in order.

        An empty list: nothing is to be told up to `now_s`. What comes at a moment is there before a step begins then;
        none begins at `now_s` itself.
        """
        while True:
            engine, others_s = self._first()
            due_s = engine.next_s
            coming_s = self._coming[0][0] if self._coming else inf
            if self._coming and coming_s <= min(due_s, now_s):
                told = self._arrives()
            elif due_s < now_s or (due_s == now_s and engine.stepping):
                until_s = min(now_s, coming_s)
                told = self._told(engine.advance(min(until_s, others_s), until_s))
            else:
                return []
            if told:
                return told

    def _first(self) -> tuple[Engine, float]:
        """The engine that is next, steps that end before those that begin, and when another one is."""
        if len(self.engines) == 1:
            return self.engines[0], inf
        first, second = nsmallest(2, self.engines, key=lambda engine: (engine.next_s, not engine.stepping))
        return first, second.next_s

    def _later(self, at_s: float, what: _Try | _Deadline | Event) -> None:
        self._numbers += 1
        heappush(self._coming, (at_s, self._numbers, what))

    # In front of the engines.

    def _refuse(self, key: int, now_s: float, why: Why) -> None:
        at_s = now_s + self._faults.refuse_s
        self._later(at_s, Event(at_s, "rejected", key, why=why))

    def _let_in(self, now_s: float) -> bool:
        """A token bucket, full at first."""
        rate_per_s = self._faults.rate_per_s
        if rate_per_s is None:
            return True
        grown = self._bucket + (now_s - self._filled_s) * rate_per_s
        self._bucket, self._filled_s = min(grown, float(self._faults.rate_burst)), now_s
        if self._bucket < 1 - 1e-9:
            return False
        self._bucket -= 1
        return True

    def _try(self, one: _Try, now_s: float) -> None:
        faults = self._faults
        if faults.timeout_s is not None:
            self._tries[one.ask.key] = one
            self._later(now_s + faults.timeout_s, _Deadline(one.ask.key, one.number))
        if faults.drop_share and self._random.random() < faults.drop_share:
            return
        took_s = faults.front_s + faults.front_token_s * one.ask.prompt_tokens
        at_s = max(now_s, self._front_free_s) + took_s if took_s else now_s
        self._front_free_s = max(at_s, self._front_free_s)
        if min(engine.idle_s(now_s) for engine in self.engines) >= faults.cold_again_s:
            self._entered = 0
        if self._entered < faults.cold_requests:
            at_s += faults.cold_s
        self._entered += 1
        if at_s > now_s:
            self._later(at_s, one)
        else:
            self._enters(one, now_s)

    def _arrives(self) -> list[Event]:
        at_s, _, what = heappop(self._coming)
        if isinstance(what, Event):
            return [what]
        if isinstance(what, _Deadline):
            return self._gives_up(what, at_s)
        if self._faults.timeout_s is None or self._tries.get(what.ask.key) == what:
            self._enters(what, at_s)
        return []

    def _enters(self, one: _Try, now_s: float) -> None:
        self._route().submit(one.ask, now_s)

    def _route(self) -> Engine:
        if len(self.engines) == 1:
            return self.engines[0]
        if self.plan.router == "random":
            return self._random.choice(self.engines)
        turn = self._turn % len(self.engines)
        self._turn += 1
        if self.plan.router == "turns":
            return self.engines[turn]
        rotated = self.engines[turn:] + self.engines[:turn]
        return min(rotated, key=lambda engine: engine.running + len(engine.waiting))

    def _gives_up(self, deadline: _Deadline, now_s: float) -> list[Event]:
        one = self._tries.get(deadline.key)
        if one is None or one.number != deadline.number or any(e.has_begun(deadline.key) for e in self.engines):
            return []
        for engine in self.engines:
            engine.cancel(deadline.key)
        if one.number < self._faults.retries:
            self._try(_Try(one.ask, one.number + 1), now_s)
            return []
        del self._tries[deadline.key]
        return [Event(now_s, "rejected", deadline.key, why="timeout")]

    # On the way back.

    def _told(self, events: list[Event]) -> list[Event]:
        if self._streams:
            events = [told for event in events for told in self._passed(event)]
        if self._tries:
            for event in events:
                if event.kind == "finish":
                    self._tries.pop(event.key, None)
        return events

    def _passed(self, event: Event) -> list[Event]:
        """The same by frames."""
        if event.answer is not None:
            whole = event._replace(answer=passed_on(event.answer, self._faults))
            outlet = self._outlets.pop(event.key, None)
            return [whole] if outlet is None else [*_frames(event, outlet.begun, outlet.close()), whole]
        if event.kind not in ("first", "token"):
            return [event]
        outlet = self._outlets.setdefault(event.key, Outlet(self._faults))
        return _frames(event, outlet.begun, outlet.put(event.tokens))


def _frames(event: Event, begun: bool, frames: list[int]) -> list[Event]:
    """An event for each frame that leaves at this moment; `begun` = one had left before."""
    kinds: list[Kind] = ["token" if begun or i else "first" for i in range(len(frames))]
    return [
        Event(event.at_s, kind, event.key, tokens, replica=event.replica)
        for kind, tokens in zip(kinds, frames, strict=True)
    ]


def _seeded(seed: int) -> Random:
    return Random(seed)  # noqa: S311 - times of a simulation, no secrets


def _cut(ask: Ask, share: float) -> Ask:
    """The model ends by itself at this share of its answer."""
    return structs.replace(ask, output_tokens=max(1, round(ask.written * share)), max_tokens=ask.limit)
