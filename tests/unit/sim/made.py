"""Machines, asks and played runs for the tests of the simulator."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import exp, log, sqrt
from random import Random
from typing import Any

from nilometer.core.record import Record
from nilometer.sim.cost import Cost, Linear
from nilometer.sim.drive import ORIGIN_NS, Offer, Played, simulate
from nilometer.sim.faults import HEALTHY, Faults
from nilometer.sim.machine import Machine, Plan, Router
from nilometer.sim.setting import Ask, Setting

STEADY = Linear(fixed_s=0.010)
"""Every step takes 10 ms."""
LIKE_A_GPU = Linear(fixed_s=0.007, prefill_token_s=86e-6, decode_token_s=20e-6, cached_token_s=0.32e-6)
"""Of the published prototype."""


def setting(cost: Cost = STEADY, **changes: Any) -> Setting:
    return Setting(cost=cost, **changes)


def machine(
    of: Setting, faults: Faults = HEALTHY, *, replicas: int = 1, router: Router = "least", seed: int = 1
) -> Machine:
    return Machine(Plan(setting=of, faults=faults, replicas=replicas, router=router), Random(seed))


def asks(prompts: Iterable[int], outputs: Iterable[int], **changes: Any) -> list[Ask]:
    return [Ask(i, p, o, **changes) for i, (p, o) in enumerate(zip(prompts, outputs, strict=False))]


def lognormal(random: Random, mean: float, cv: float) -> int:
    """Whole tokens, at least 1."""
    var = log(1 + cv * cv)
    return max(1, round(exp(log(mean) - var / 2 + sqrt(var) * random.gauss(0, 1))))


def mixed(count: int, prompt: float, output: float, cv: float = 1.0, seed: int = 1) -> list[Ask]:
    random = Random(seed)
    return asks(
        [lognormal(random, prompt, cv) for _ in range(count)], [lognormal(random, output, cv) for _ in range(count)]
    )


def closed(of: Machine, users: int, wanted: Sequence[Ask], **changes: Any) -> Played:
    return simulate(Offer(users=users, **changes), wanted, of)


def opened(of: Machine, due_s: Sequence[float], wanted: Sequence[Ask], **changes: Any) -> Played:
    return simulate(Offer(due_s=due_s, **changes), wanted, of)


def seconds(ns: int | None) -> float:
    """Of the run."""
    assert ns is not None
    return (ns - ORIGIN_NS) / 1e9


def stamps(record: Record) -> list[float]:
    return [seconds(frame.at_ns) for frame in record.frames]


def of_keys(records: Iterable[Record]) -> dict[int, Record]:
    return {record.seq: record for record in records}
