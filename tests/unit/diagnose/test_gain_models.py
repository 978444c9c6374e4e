"""What a remedy is foretold to bring is what it brings: fault and remedy are both played on the step machine."""

from __future__ import annotations

import msgspec
import pytest
from tests.unit.diagnose.cases import Shown, case_of, group_of, level_of
from tests.unit.diagnose.played import COST, case_of_machine

from nilometer.core.finding import Evidence
from nilometer.diagnose import gain_models as models
from nilometer.diagnose.case import Case
from nilometer.diagnose.gain import Gain, throughput, tpot, ttft_p95
from nilometer.diagnose.level import LevelEvidence
from nilometer.sim.cost import Linear
from nilometer.sim.faults import Faults
from nilometer.sim.setting import Setting

PROMPT, OUTPUT = 1500.0, 16.0
"""Prompts that fill the server's time."""


def engine(slots: int = 64, cost: Linear = COST, **changes: object) -> Setting:
    return Setting(cost=cost, slots=slots, **changes)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def healthy() -> LevelEvidence:
    return case_of_machine(engine(), levels=[16]).highest


def holds(gain: Gain | None, truth: float | None, within: float | None = None) -> None:
    """The truth lies in the interval, and the middle is as near to it as told (a share of it)."""
    assert gain is not None
    assert truth is not None
    low, mid, high = gain.after
    assert low <= truth <= high, f"{truth} is not in {gain}"
    assert within is None or mid == pytest.approx(truth, rel=within)


def told(case: Case, name: str, value: float) -> None:
    """A figure that the machine cannot know of itself, at both ends."""
    for level in (case.lowest, case.highest):
        level.figures[name] = Evidence(name=name, value=value)


@pytest.mark.parametrize(("slots", "then"), [(3, 8), (3, 6), (5, 10), (8, 16)])
def test_more_slots(slots: int, then: int) -> None:
    case = case_of_machine(engine(slots), levels=[1, 4, 16])
    after = case_of_machine(engine(then), levels=[16]).highest
    holds(models.more_slots(case, then), throughput(after), within=0.03)


@pytest.mark.parametrize("slots", [3, 5, 8])
def test_a_cap_on_the_load(slots: int) -> None:
    case = case_of_machine(engine(slots), levels=[1, 4, 32])
    gain = models.capped(case)
    holds(gain, ttft_p95(case_of_machine(engine(slots), levels=[slots]).highest))
    assert gain is not None
    assert gain.after.high < gain.before / 10


def test_more_processes_in_front() -> None:
    case = case_of_machine(engine(), Faults(front_s=0.15))
    for count in (2, 4):
        after = case_of_machine(engine(), Faults(front_s=0.15 / count), levels=[16]).highest
        holds(models.spread_front(case, count), ttft_p95(after), within=0.15)
    assert models.processes_to(case) == 2


def test_continuous_batches_in_place_of_static_ones() -> None:
    case = case_of_machine(engine(8, policy="static"))
    holds(models.continuous(case), throughput(case_of_machine(engine(8), levels=[16]).highest), within=0.05)


def test_prompts_in_chunks() -> None:
    cost = Linear(fixed_s=0.02, prefill_token_s=0.0005, decode_token_s=0.0006)
    case = case_of_machine(engine(cost=cost, policy="blocking"), prompt=1000.0, output=120.0)
    chunk = models.chunk_to(case)
    assert chunk == models.LEAST_CHUNK
    chunked = engine(cost=cost, max_batched_tokens=chunk + 16)
    after = case_of_machine(chunked, levels=[16], prompt=1000.0, output=120.0).highest
    tail = (after.value("token_gap") or 0) * (after.value("gap_tail_ratio") or 0)
    holds(models.chunked(case), tail)


def test_half_the_bytes_of_the_weights() -> None:
    """Of the fixed 20 ms 17 read weights, which at the memory's own rate would take 14.1: a use of 0.7 of 20.1 ms."""
    case = case_of_machine(engine(cost=Linear(fixed_s=0.02, decode_token_s=0.0001, prefill_token_s=0.00005)))
    gap_s = (case.lowest.value("token_gap") or 0) / 1000
    facts = msgspec.structs.replace(case.lowest.facts, devices=("A10",), weight_bytes=int(0.7 * gap_s * 600e9))
    case.lowest = msgspec.structs.replace(case.lowest, facts=facts)
    half = Linear(fixed_s=0.0115, decode_token_s=0.0001, prefill_token_s=0.00005)
    holds(models.half_the_weights(case), tpot(case_of_machine(engine(cost=half), levels=[16]).highest), within=0.03)


def test_without_slow_spells(healthy: LevelEvidence) -> None:
    case = case_of_machine(engine(), Faults(spell_s=1.0, quiet_s=2.0, spell_slowness=5.0))
    holds(models.undisturbed(case), tpot(healthy), within=0.06)


def test_without_throttling(healthy: LevelEvidence) -> None:
    step = case_of_machine(engine(), Faults(throttle_after_s=40, throttle_slowness=1.8))
    holds(models.unthrottled(step), tpot(healthy), within=0.05)
    pauses = case_of_machine(engine(), Faults(duty_period_s=0.5, duty_share=0.7))
    holds(models.unthrottled(pauses), tpot(healthy), within=0.05)


def test_after_a_restart(healthy: LevelEvidence) -> None:
    """1 % a second: at the start of the window, 10 s in, a step takes 1.1 times as long."""
    case = case_of_machine(engine(), Faults(leak_per_s=0.01))
    holds(models.fresh(case), (tpot(healthy) or 0) * 1.1, within=0.05)


def test_with_all_replicas_as_fast_as_the_fast_one() -> None:
    case = case_of_machine(engine(), Faults(replica_slowness=(1.0, 2.0)), replicas=2)
    holds(models.fast_replicas(case), tpot(case_of_machine(engine(), replicas=2, levels=[16]).highest), within=0.03)


def test_twice_the_copies_of_what_computing_limits() -> None:
    cost = Linear(fixed_s=0.005, decode_token_s=0.01, prefill_token_s=0.00005)
    case = case_of_machine(engine(cost=cost))
    holds(models.twice_the_copies_tpot(case), tpot(case_of_machine(engine(cost=cost), levels=[16], replicas=2).highest))
    holds(models.capped_early(case), tpot(case.group.levels[1]))
    fast = msgspec.structs.replace(cost, decode_token_s=0.005)
    holds(models.faster_arithmetic(case), tpot(case_of_machine(engine(cost=fast), levels=[16]).highest))


def test_twice_the_copies_of_what_prompts_limit() -> None:
    cost = Linear(fixed_s=0.02, decode_token_s=0.0006, prefill_token_s=0.0006)
    one = engine(cost=cost, max_batched_tokens=512)
    case = case_of_machine(one, prompt=PROMPT, output=OUTPUT)
    after = case_of_machine(one, levels=[16], replicas=2, prompt=PROMPT, output=OUTPUT).highest
    holds(models.twice_the_copies_ttft(case), ttft_p95(after), within=0.2)


def test_cache_of_half_the_bytes_and_shorter_contexts() -> None:
    case = case_of_machine(engine(kv_blocks=100))
    holds(models.twice_held(case), throughput(case_of_machine(engine(kv_blocks=200), levels=[16]).highest), within=0.1)
    held = engine(kv_blocks=1024, reserve="context", context_tokens=4096)
    case = case_of_machine(held)
    told(case, "context_tokens", 4096.0)
    assert models.context_to(case) == 1024
    cut = msgspec.structs.replace(held, context_tokens=1024)
    holds(models.context_cut(case), throughput(case_of_machine(cut, levels=[16]).highest), within=0.03)


def test_arithmetic_by_hand() -> None:
    high = {
        "kv_usage_mean": 0.5,
        "output_tokens_per_s": 300.0,
        "decoding": 4.0,
        "token_gap": 14.0,
        "full_decoding": 4.0,
    }
    low = {"decoding": 1.0, "token_gap": 11.0}
    case = Case(group_of([level_of(1, low), level_of(16, high)]))
    """10 ms a step and 1 ms for each: 7.6 at a time take 17.6 ms."""
    gain = models.admitted(case)
    assert gain is not None
    assert gain.after.mid == pytest.approx(300 * 1.9 * 14 / 17.6)
    own = models.unbuffered(case_of(Shown(high={"ttft_mean": 4000.0, "server_ttft_mean": 250.0})))
    assert own is not None
    assert (own.before, own.after.mid) == (4000, 250)
    """20 in 100 lost, 8 requests/s, 400 tokens of 0.5 ms each again: 32 % of the time."""
    lost = {"preemptions_per_100": 20.0, "requests_per_s": 8.0, "prompt_tokens": 300.0, "output_tokens": 200.0}
    low = {"ttft_mean": 150.0, "prompt_tokens": 300.0}
    again = models.no_preemption(case_of(Shown(high={**lost, "output_tokens_per_s": 100.0}, low=low)))
    assert again is not None
    assert again.after == pytest.approx((100, 100 / 0.84, 100 / 0.68))


def test_what_was_not_measured_has_no_gain() -> None:
    bare = case_of(Shown())
    tried = [value for name, value in vars(models).items() if getattr(value, "__module__", "") == models.__name__]
    functions = [one for one in tried if getattr(one, "__annotations__", {}).get("return") == "Gain | None"]
    assert len(functions) > 15
    public = [one for one in functions if not one.__name__.startswith("_")]
    assert [one.__name__ for one in public if one(bare) is not None] == []
