from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.unit.plan.shapes import DEEPSEEK_V2_LITE, LLAMA_8B

from nilometer.plan.devices import device
from nilometer.plan.latency.roofline import Lengths, latency
from nilometer.plan.latency.step import decode_step, prefill_step
from nilometer.plan.latency.work import Setup
from nilometer.plan.model.parallel import Parallel
from nilometer.plan.model.precision import precision_of
from nilometer.sim.cost import Cost, Kinked, Linear, Roofline

from .made import asks, closed, machine, seconds, setting

SETUP = Setup(shape=LLAMA_8B, device=device("h100"), precision=precision_of("bf16"))
LINEAR = Linear(fixed_s=7.0, prefill_token_s=0.5, decode_token_s=0.25, cached_token_s=0.125)


def test_a_straight_line_by_hand() -> None:
    assert LINEAR.seconds(2, 4, 8) == 7 + 1 + 1 + 1
    assert LINEAR.lines(2, 4) == ((9.0, 0.125),)


def test_the_slower_of_two_wins() -> None:
    """Reading takes 10 s in any case, multiplying 3 s a token: the kink lies between 3 and 4 tokens."""
    cost = Kinked((Linear(fixed_s=10.0), Linear(decode_token_s=3.0)))
    assert [cost.seconds(0, n, 0) for n in (1, 3, 4)] == [10.0, 10.0, 12.0]


@pytest.mark.parametrize("shape", [LLAMA_8B, DEEPSEEK_V2_LITE], ids=["dense", "experts"])
@pytest.mark.parametrize("batch", [1, 8, 64, 256])
def test_the_roofline_is_the_plan_s_own_where_all_are_alike(shape: object, batch: int) -> None:
    setup = replace(SETUP, shape=shape)
    cost = Roofline(setup, context=2_000)
    exact = decode_step(setup, batch, 2_000).seconds
    assert cost.seconds(0, batch, 2_000 * batch) == pytest.approx(exact, rel=0.01)


def test_a_prompt_by_itself_and_beside_others() -> None:
    cost = Roofline(SETUP, context=2_000)
    assert cost.seconds(512, 0, 0) == pytest.approx(prefill_step(SETUP, 512).seconds)
    mixed = cost.seconds(512, 16, 16 * 2_000)
    assert mixed == pytest.approx(cost.seconds(0, 16, 32_000) + prefill_step(SETUP, 512).riding_s)
    assert mixed < cost.seconds(512, 0, 0) + cost.seconds(0, 16, 32_000)


@given(st.integers(0, 512), st.integers(1, 256), st.integers(0, 10**6))
def test_lines_say_what_seconds_says(prefilled: int, decoded: int, cached: int) -> None:
    two = replace(SETUP, parallel=Parallel(tensor=2))
    costs: list[Cost] = [LINEAR, Kinked((LINEAR, Linear(fixed_s=9.0))), Roofline(two)]
    for cost in costs:
        lines = cost.lines(prefilled, decoded)
        assert max(at + slope * cached for at, slope in lines) == pytest.approx(
            cost.seconds(prefilled, decoded, cached)
        )


@pytest.mark.parametrize(("users", "within"), [(1, 0.02), (16, 0.05), (64, 0.1)])
def test_step_by_step_gives_the_throughput_of_the_formula(users: int, within: float) -> None:
    """The plan's closed form knows no steps and no chunks; equal lengths are what it is made for."""
    plan = latency(SETUP, Lengths(512, 128), users)
    of = machine(setting(Roofline(SETUP, context=576), max_batched_tokens=8192))
    played = closed(of, users, asks([512] * users * 6, [128] * users * 6))
    per_s = users * 6 * 128 / max(seconds(record.end_ns) for record in played.records)
    assert per_s == pytest.approx(plan.output_tokens_per_s.mid, rel=within)
