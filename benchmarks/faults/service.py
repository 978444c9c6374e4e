"""A service and its load as a few numbers that a kind of fault changes, and what is simulated of them.

Numbers are drawn widely, so that nothing in a diagnosis can be fitted to one service; the two splits draw from bins
that lie between each other's, and never share a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil, exp, log, sqrt
from random import Random
from typing import Literal, TypeVar

from msgspec import structs

from nilometer.core.environment import Environment
from nilometer.sim.cost import Cost, Kinked, Linear
from nilometer.sim.faults import HEALTHY, Faults
from nilometer.sim.machine import Plan, Router
from nilometer.sim.setting import Ask, Policy, Reserve, Setting, Speculation

Split = Literal["tune", "score"]
BINS = 8
BLOCK = 16
LONGEST = 3.0
"""A length is at most this many times its mean, as a service that names a limit has it."""
T = TypeVar("T")


class Draw:
    """Where numbers come from: every second bin of a range, every second one of some choices."""

    def __init__(self, random: Random, split: Split) -> None:
        self.random, self._odd = random, int(split == "score")

    def between(self, low: float, high: float) -> float:
        """Log-uniform over this split's half of the bins."""
        at = 2 * self.random.randrange(BINS // 2) + self._odd + self.random.random()
        return float(low * (high / low) ** (at / BINS))

    def pick(self, options: Sequence[T]) -> T:
        """One of this split's half of them."""
        return self.random.choice(options[self._odd :: 2])

    def chance(self, share: float) -> bool:
        return self.random.random() < share


@dataclass
class Client:
    """What the load generator is like."""

    kernel: bool = True
    """Whether its kernel stamps what it reads."""
    away_share: float = 0.0
    """Of its time at the top level, in which it reads nothing."""
    away_s: float = 0.02
    own_work: bool = True
    """Whether it works in that time or waits for a processor."""
    path_pool: int | None = None
    """Connections behind the client's stamps: a request waits for one after it was `sent`."""
    own_pool: int | None = None
    """Connections in front of them: fewer are in flight than were asked for."""


@dataclass
class Draft:
    """All that a case is made of. Seconds and tokens; what is None follows from the rest in `setting_of`."""

    tpot: float
    prompt: float
    output: float
    top: int
    """The highest level that is asked for."""
    growth: float
    """TPOT at the top over TPOT alone."""
    rho: float
    """Share of the engine's time at the top that prompts take."""
    usage: float
    """Of the KV cache at the top, in the mean."""
    sparse: bool = False
    """Levels by 4 and not by 2."""
    prompt_cv: float = 0.5
    output_cv: float = 0.5
    cost: Cost | None = None
    prefill_token_s: float | None = None
    chunk: int | None = None
    slots: int | None = None
    pool_tokens: int | None = None
    policy: Policy = "chunked"
    reserve: Reserve = "growing"
    context_tokens: int = 8192
    speculation: Speculation | None = None
    adapters: int = 0
    adapter_slots: int = 1
    adapter_swap_s: float = 0.0
    prompts: int | None = None
    """So many different ones, again and again, through a prefix cache; None = each is new."""
    tells_cached: bool = True
    asked_over: float = 1.0
    """The limit that a request names over what the model writes."""
    faults: Faults = HEALTHY
    replicas: int = 1
    router: Router = "least"
    targets: bool = False
    """Whether the client knows the replicas as targets of its own."""
    client: Client = field(default_factory=Client)
    client_timeout_s: float | None = None
    least_s: float = 0.0
    """Of each level."""
    requests: float = 1.0
    """Of the usual number."""
    environment: Environment = field(default_factory=Environment)
    tells_slots: bool = False
    first_level_only: bool = False
    """Of a cold start."""
    throttles_at: float | None = None
    """At this share of the first level, counted in its own lengths."""
    leak_per_level: float = 0.0
    also_client: tuple[str, ...] = ()
    """Other answers that are true by what a client sees."""
    also_server: tuple[str, ...] = ()

    def change(self, **faults: object) -> None:
        """More of what is around the engine."""
        self.faults = structs.replace(self.faults, **faults)

    @property
    def levels(self) -> list[int]:
        step, found = 4 if self.sparse else 2, [1]
        while found[-1] * step <= self.top:
            found.append(found[-1] * step)
        return found if found[-1] == self.top else [*found, self.top]

    @property
    def prefill_s(self) -> float:
        """Seconds of a prompt token."""
        if self.prefill_token_s is not None:
            return self.prefill_token_s
        return max(self.rho * self.answer_s / (self.top * self.prompt), 1e-6)

    @property
    def answer_s(self) -> float:
        """About what a request takes at the top, if nothing is wrong."""
        return self.output * self.tpot * self.growth / (1 - self.rho)

    @property
    def alone_s(self) -> float:
        """About what a request takes alone."""
        return self.prompt * self.prefill_s + self.output * self.tpot

    @property
    def rate(self) -> float:
        """Requests per second at the top, if nothing is wrong."""
        return self.top / self.answer_s


def draft(draw: Draw) -> Draft:
    """A service that is well at every level that is asked for."""
    while True:
        tpot, output = draw.between(0.004, 0.060), draw.between(16, 400)
        if 0.3 <= tpot * output <= 5:
            break
    random = draw.random
    return Draft(
        tpot=tpot,
        prompt=draw.between(100, 4000),
        output=output,
        top=random.choice((8, 16, 16, 32, 64)),
        growth=random.uniform(1.05, 1.6),
        rho=random.uniform(0.03, 0.3),
        usage=random.uniform(0.15, 0.45),
        sparse=draw.chance(0.4),
        prompt_cv=random.uniform(0.3, 0.8),
        output_cv=random.uniform(0.25, 0.7),
        faults=Faults(jitter=random.uniform(0.01, 0.05)),
        client=Client(kernel=draw.chance(0.5)),
        tells_slots=draw.chance(0.5),
    )


def setting_of(d: Draft, random: Random) -> Setting:
    """The engine. What a draft leaves open is ample."""
    held = d.prompt + d.output * 0.6
    pool = d.pool_tokens or int(d.top * held / d.usage)
    pool = max(pool, int(LONGEST * (d.prompt + d.output * d.asked_over)) + 8 * BLOCK)
    slots = d.slots or max(d.top, random.choice((d.top, 2 * d.top, 128, 256)))
    ample = int(random.uniform(0.6, 1.8) * d.tpot / d.prefill_s)
    cost = d.cost or Linear(
        fixed_s=d.tpot * 0.97,
        prefill_token_s=d.prefill_s,
        decode_token_s=d.tpot * (d.growth - 1) * 0.7 / d.top + d.tpot * 0.01,
        cached_token_s=d.tpot * (d.growth - 1) * 0.3 / (d.top * held),
    )
    drafts = 1 + (d.speculation.drafts if d.speculation else 0)
    return Setting(
        cost=cost,
        policy=d.policy,
        slots=slots,
        max_batched_tokens=d.chunk or min(max(ample, 64), 8192) + min(slots, 2 * d.top) * drafts,
        kv_blocks=ceil(pool / BLOCK),
        block_tokens=BLOCK,
        reserve=d.reserve,
        context_tokens=d.context_tokens,
        prefix_cache=d.prompts is not None,
        speculation=d.speculation,
        adapter_slots=d.adapter_slots,
        adapter_swap_s=d.adapter_swap_s,
    )


def plan_of(d: Draft, random: Random) -> Plan:
    return Plan(setting=setting_of(d, random), replicas=d.replicas, router=d.router, faults=d.faults)


def compute_bound(d: Draft, each: float, *, kinked: bool) -> Cost:
    """Steps that take `each` of a lone step for every sequence; kinked: only from where that exceeds the fixed part."""
    fixed = Linear(fixed_s=d.tpot, prefill_token_s=d.prefill_s)
    every = Linear(prefill_token_s=d.prefill_s, decode_token_s=d.tpot * each)
    if kinked:
        return Kinked((fixed, every))
    return Linear(fixed_s=d.tpot * (1 - min(each, 0.9)), prefill_token_s=d.prefill_s, decode_token_s=d.tpot * each)


def asks(d: Draft, random: Random) -> Iterator[Ask]:
    """Endless; keys are given by the load."""
    kept = [_length(random, d.prompt, d.prompt_cv) for _ in range(d.prompts or 0)]
    while True:
        at = random.randrange(len(kept)) if kept else 0
        prompt = kept[at] if kept else _length(random, d.prompt, d.prompt_cv)
        output = _length(random, d.output, d.output_cv)
        limit = None
        if d.asked_over > 1:
            limit = ceil(d.asked_over * d.output)
            output = min(output, limit)
        yield Ask(
            0,
            prompt,
            output,
            max_tokens=limit,
            hashes=tuple(hash((at, i)) for i in range(prompt // BLOCK)) if kept else (),
            adapter=_adapter(random, d.adapters) if d.adapters else None,
        )


def _adapter(random: Random, n: int) -> int:
    """Some are asked for more often than others."""
    return min(int(n * random.random() ** 1.5), n - 1)


def _length(random: Random, mean: float, cv: float) -> int:
    if not cv:
        return max(1, round(mean))
    var = log(1 + cv * cv)
    drawn = exp(log(mean) - var / 2 + sqrt(var) * random.gauss(0, 1))
    return max(2, round(min(drawn, LONGEST * mean)))
