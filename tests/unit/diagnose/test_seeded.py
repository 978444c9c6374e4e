"""Features under seeded faults: each sees its own fault, and what it has to be told apart from looks different."""

from __future__ import annotations

from functools import cache

import pytest
from tests.unit.diagnose.made import run_of
from tests.unit.diagnose.seeded import Engine, load

from nilometer.diagnose.group import GroupEvidence, evidence_of_runs
from nilometer.diagnose.level import LevelEvidence

HEALTHY = Engine()
QUEUE = Engine(slots=3)
STALL = Engine(chunk=None, prompt_s_per_token=0.0005)
KV = Engine(room_tokens=1600)
STATIC = Engine(static=True, slots=8)
BUFFERED = Engine(buffered=True)
COLD = Engine(cold=6)
FRONT_END = Engine(front_end_s=0.15)
NEIGHBOUR = Engine(neighbour=True)
COMPUTE = Engine(step_s=0.005, step_s_per_stream=0.01)
ALL = (HEALTHY, QUEUE, STALL, KV, STATIC, BUFFERED, COLD, FRONT_END, NEIGHBOUR, COMPUTE)


@cache
def group(engine: Engine) -> GroupEvidence:
    return evidence_of_runs(
        (run_of(records, 60.0, start_s=5, level=users), records)
        for users in (1, 16)
        for records in [load(engine, users)]
    )


def high(engine: Engine) -> LevelEvidence:
    return group(engine).levels[-1]


def value(engine: Engine, name: str) -> float:
    found = high(engine).value(name)
    assert found is not None
    return found


def step(engine: Engine, name: str) -> float:
    found = group(engine).value(name)
    assert found is not None
    return found


@pytest.mark.parametrize("engine", [one for one in ALL if one is not BUFFERED])
def test_only_static_batches_take_nobody_in(engine: Engine) -> None:
    refill = value(engine, "refill_share")
    assert refill == 0 if engine is STATIC else refill > 0.6


def test_only_a_buffer_brings_all_at_the_end() -> None:
    assert value(BUFFERED, "stream_share") > 0.99
    assert value(BUFFERED, "burst_share") == 1
    for engine in ALL:
        assert engine is BUFFERED or (value(engine, "stream_share") < 0.9 and value(engine, "burst_share") == 0)


def test_a_blocking_prefill_stops_all_streams_and_a_lost_place_one() -> None:
    assert value(STALL, "gap_simultaneity") > 0.95
    assert value(STALL, "gap_first_token_share") > 0.9
    assert value(KV, "gap_simultaneity") < 0.1
    assert value(KV, "long_gaps_per_request") > 0.05
    assert value(STALL, "gap_tail_ratio") > 10
    assert value(HEALTHY, "long_gaps_per_request") == value(QUEUE, "long_gaps_per_request") == 0


def test_slots_limit_a_count_and_a_cache_limits_tokens() -> None:
    assert value(QUEUE, "decoding_most") == 3
    assert value(QUEUE, "full_decoding") == pytest.approx(3, rel=0.06)
    assert value(QUEUE, "full_decoding_cv") < 0.15 < value(QUEUE, "full_held_tokens_cv")
    assert value(KV, "full_held_tokens_cv") < value(KV, "full_decoding_cv")
    assert value(HEALTHY, "decoding_share") > 0.9


def test_a_queue_leaves_the_gaps_alone_and_slow_decoding_does_not() -> None:
    assert step(QUEUE, "gap_elasticity") < 0.1
    assert step(QUEUE, "wait_share") > 0.9
    assert step(COMPUTE, "gap_elasticity") > 0.7
    assert step(COMPUTE, "throughput_gain") < 0.1
    assert step(HEALTHY, "throughput_gain") > 0.9


def test_a_front_end_lets_one_through_at_a_time() -> None:
    assert value(FRONT_END, "spacing_evenness") > 0.6
    assert value(FRONT_END, "first_token_spacing") == pytest.approx(150, rel=0.1)
    assert value(FRONT_END, "decoding_share") < 0.75
    for engine in (HEALTHY, QUEUE, KV, STATIC, NEIGHBOUR):
        assert value(engine, "spacing_evenness") < 0.6


def test_a_cold_start_is_in_the_head_of_the_lowest_level() -> None:
    cold, warm = group(COLD).levels[0].value("head_ratio"), group(HEALTHY).levels[0].value("head_ratio")
    assert cold is not None
    assert warm is not None
    assert cold > 10
    assert warm < 2


def test_a_neighbour_is_there_at_the_lowest_level_too_and_in_spells() -> None:
    lowest = group(NEIGHBOUR).levels[0]
    assert lowest.value("slow_ratio") == pytest.approx(5, rel=0.2)
    assert lowest.value("slow_spell") == pytest.approx(1, rel=0.25)
    assert (lowest.value("slow_separation") or 0) > 0.9
    assert value(NEIGHBOUR, "slow_separation") > 0.9
    for engine in (HEALTHY, QUEUE, FRONT_END):
        assert value(engine, "slow_ratio") < 1.3


def test_what_slows_down_for_prompts_is_told_from_what_does_not() -> None:
    assert value(STALL, "slow_prefill_r") > 0.3
    assert value(NEIGHBOUR, "slow_prefill_r") < 0.1


def test_budgets_put_the_time_where_the_fault_is() -> None:
    assert _share(QUEUE, "ttft") > 0.7
    assert _share(STALL, "stalls") > 0.4
    assert _share(COMPUTE, "slower_gaps") > 0.7
    assert _share(BUFFERED, "ttft") > 0.99
    assert _share(HEALTHY, "base_gaps") > 0.8


def _share(engine: Engine, part: str) -> float:
    budget = high(engine).e2e
    assert budget is not None
    found = budget.part(part).share
    assert found is not None
    return found
