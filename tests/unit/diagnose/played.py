"""Load tests on the step machine, as groups under diagnosis: what a remedy brings can be tried there."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from tests.unit.metrics.made import spec
from tests.unit.sim.made import mixed

from nilometer.core.environment import Environment
from nilometer.core.run import Health, Run
from nilometer.diagnose.case import Case
from nilometer.diagnose.group import evidence_of_runs
from nilometer.metrics.summary import summarise
from nilometer.sim.cost import Linear
from nilometer.sim.drive import Offer, Played, simulate
from nilometer.sim.faults import HEALTHY, Faults
from nilometer.sim.machine import Machine, Plan
from nilometer.sim.setting import Setting

COST = Linear(fixed_s=0.02, prefill_token_s=0.00005, decode_token_s=0.0006)
"""20 ms a step and 0.6 ms for each stream, 20,000 prompt tokens a second."""
PROMPT, OUTPUT = 400.0, 80.0
WARMUP_S, STOP_S = 10.0, 70.0


def case_of_machine(
    setting: Setting, faults: Faults = HEALTHY, *, levels: Sequence[int] = (1, 4, 16), replicas: int = 1, **load: Any
) -> Case:
    """Closed loops of these loads, each on a fresh machine."""
    runs = (
        (run_of_play(number, played), played.records)
        for number in levels
        for played in [play(setting, faults, number, replicas, **load)]
    )
    return Case(evidence_of_runs(runs))


def play(
    setting: Setting, faults: Faults, users: int, replicas: int, *, prompt: float = PROMPT, output: float = OUTPUT
) -> Played:
    plan = Plan(setting=setting, faults=faults, replicas=replicas)
    offer = Offer(users=users, ramp_s=1.0, warmup_s=WARMUP_S, stop_s=STOP_S, drain_s=30)
    return simulate(offer, mixed(20_000, prompt, output, cv=0.5, seed=users), Machine(plan, Random(users)))


def run_of_play(users: int, played: Played) -> Run:
    asked = spec(concurrency=users, window=f"0..{STOP_S - WARMUP_S}")
    return Run(
        id="run",
        spec=asked,
        environment=Environment(),
        phases=played.phases,
        health=Health(),
        summary=summarise(iter(played.records), asked, played.phases, Health()),
        findings=[],
        verdict="admissible",
        level=str(users),
    )
