from __future__ import annotations

from math import exp, log

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.unit.plan.shapes import LLAMA_8B

from nilometer.core.errors import SpecError
from nilometer.plan.devices import device
from nilometer.plan.interval import Interval
from nilometer.plan.latency.factors import FACTORS
from nilometer.plan.latency.roofline import Latency, Lengths, Tuning, curve, latency, parts_of
from nilometer.plan.latency.step import decode_step, prefill_step
from nilometer.plan.latency.work import Setup
from nilometer.plan.model.parallel import Parallel
from nilometer.plan.model.precision import precision_of

SETUP = Setup(shape=LLAMA_8B, device=device("h100"), precision=precision_of("bf16"))
LENGTHS = Lengths(1024, 256)
GPU = FACTORS["gpu"]


def test_one_request_waits_for_nobody() -> None:
    made = latency(SETUP, LENGTHS, 1)
    step, prefill = decode_step(SETUP, 1, 1024 + 128).seconds, prefill_step(SETUP, 1024).seconds
    assert made.tpot_s.mid == pytest.approx(step)
    assert made.ttft_s.mid == pytest.approx(GPU.request_s + prefill)
    assert made.output_tokens_per_s.mid == pytest.approx(256 / (GPU.request_s + prefill + 255 * step))
    assert (made.bound, made.running, made.basis) == ("bandwidth", 1, f"prior ({GPU.source})")


def test_every_request_sits_through_the_others_prefills_once() -> None:
    """N - 1 prefills, part before the first token, part while it decodes; by hand: the cycle holds them all."""
    n = 32
    made = latency(SETUP, LENGTHS, n)
    step, prefill = decode_step(SETUP, n, 1024 + 128), prefill_step(SETUP, 1024)
    others = (n - 1) * prefill.riding_s
    busy = n * prefill.riding_s / (n * prefill.riding_s + 256 * step.seconds)
    share = GPU.together + GPU.together_busy * busy
    assert made.tpot_s.mid == pytest.approx(step.seconds + (1 - share) * others / 255)
    assert made.ttft_s.mid == pytest.approx(
        GPU.request_s + prefill.seconds + share * others + step.seconds / 2, rel=1e-9
    )


@pytest.mark.parametrize("output", [1, 2, 8, 256])
@pytest.mark.parametrize("split", [Parallel(), Parallel(tensor=4), Parallel(pipeline=4)])
def test_prompts_are_never_computed_faster_than_the_devices_can(output: int, split: Parallel) -> None:
    """16.06 GFLOP a token of the 8 billion weights but the embedding, 0.48 of 989 TFLOP/s on each device, by hand.

    However short the answers: requests a second x their prompt's operations stay below what all devices compute.
    """
    made = latency(replace(SETUP, parallel=split), Lengths(1024, output), 2000)
    body = 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336)
    most = split.devices * 0.48 * device("h100").flops["fp16"] / (2 * 1024 * body)
    requests = made.output_tokens_per_s.mid / output
    assert requests < most
    if split.tensor == 1:
        assert requests > 0.5 * most or output > 8


def test_a_request_of_one_token_waits_for_all_prompts_before_it() -> None:
    """There is no second token whose wait could hold them."""
    made = latency(SETUP, Lengths(1024, 1), 8)
    step, prefill = decode_step(SETUP, 8, 1024.5), prefill_step(SETUP, 1024)
    assert made.ttft_s.mid == pytest.approx(
        GPU.request_s + prefill.seconds + 7 * prefill.riding_s + step.seconds / 2, rel=1e-3
    )
    assert made.output_tokens_per_s.mid == pytest.approx(8 / made.ttft_s.mid)
    assert made.tpot_s.mid == pytest.approx(step.seconds, rel=1e-3)


def test_a_stage_is_held_up_by_its_part_of_a_prompt_alone() -> None:
    """Four stages compute four prompts at once: 31 others cost 31 / 4 prefills, and a step is that of 8 sequences."""
    setup = replace(SETUP, parallel=Parallel(pipeline=4))
    made, n = parts_of(setup, LENGTHS, 32), 32
    assert made.others_s == pytest.approx((n - 1) / 4 * prefill_step(setup, 1024).riding_s)
    assert made.step.seconds == pytest.approx(decode_step(setup, 32, 1024 + 128).seconds)


def test_tokens_per_second_are_requests_over_their_cycle() -> None:
    """Little's law: N = X (TTFT + (O - 1) TPOT) / O, with a queue for slots or without."""
    for slots in (None, 4):
        made = latency(replace(SETUP, slots=slots), LENGTHS, 16)
        cycle = made.ttft_s.mid + 255 * made.tpot_s.mid
        assert made.output_tokens_per_s.mid * cycle / 256 == pytest.approx(16)


def test_beyond_the_slots_requests_queue() -> None:
    setup = replace(SETUP, slots=4)
    four, sixteen = latency(setup, LENGTHS, 4), latency(setup, LENGTHS, 16)
    assert sixteen.tpot_s.mid == four.tpot_s.mid
    assert sixteen.output_tokens_per_s.mid == pytest.approx(four.output_tokens_per_s.mid)
    cycle = four.ttft_s.mid + 255 * four.tpot_s.mid
    assert sixteen.ttft_s.mid == pytest.approx(four.ttft_s.mid + 3 * cycle)
    assert (sixteen.bound, sixteen.running) == ("capacity", 4)


def test_copies_side_by_side_serve_as_many_times_the_load() -> None:
    one = latency(SETUP, LENGTHS, 8)
    four = latency(replace(SETUP, parallel=Parallel(data=4)), LENGTHS, 32)
    assert four.tpot_s == one.tpot_s
    assert four.output_tokens_per_s.mid == pytest.approx(4 * one.output_tokens_per_s.mid)


def test_fewer_requests_than_copies_leave_some_idle() -> None:
    made = latency(replace(SETUP, parallel=Parallel(data=4)), LENGTHS, 2)
    assert made.running == 2
    assert made.output_tokens_per_s.mid == pytest.approx(2 * latency(SETUP, LENGTHS, 1).output_tokens_per_s.mid)


def test_the_wall_moves_with_the_load() -> None:
    long = Lengths(8192, 16)
    assert latency(SETUP, Lengths(16, 256), 1).bound == "bandwidth"
    assert latency(SETUP, long, 64).bound == "compute"
    assert latency(replace(SETUP, parallel=Parallel(tensor=8)), Lengths(16, 256), 1).bound == "interconnect"


def test_the_interval_is_four_fifths_of_the_spread() -> None:
    made = latency(SETUP, LENGTHS, 8).tpot_s
    assert log(made.high / made.mid) == pytest.approx(1.2816 * GPU.tpot_spread)
    assert made.low * made.high == pytest.approx(made.mid**2)


def test_a_tuned_interval_widens_away_from_what_was_measured() -> None:
    tuning = Tuning(tpot_spread=0.1, drift=0.1, anchors=(8.0,))
    near, far = (latency(SETUP, LENGTHS, n, tuning).tpot_s for n in (8, 64))
    assert near.high / near.mid == pytest.approx(exp(1.2816 * 0.1))
    assert far.high / far.mid > near.high / near.mid


@pytest.mark.parametrize(
    ("lengths", "load", "key"),
    [
        (Lengths(1024, 256), 0, "concurrency"),
        (Lengths(0, 256), 1, "input_tokens"),
        (Lengths(16, 0.5), 1, "output_tokens"),
        (Lengths(16, float("nan")), 1, "output_tokens"),
    ],
)
def test_loads_and_lengths_below_one_are_refused(lengths: Lengths, load: float, key: str) -> None:
    with pytest.raises(SpecError) as refused:
        latency(SETUP, lengths, load)
    assert (refused.value.slug, refused.value.params["key"]) == ("plan_number_too_small", key)


def test_a_device_of_unknown_bandwidth_is_refused() -> None:
    with pytest.raises(SpecError, match="device_bandwidth_unknown"):
        latency(replace(SETUP, device=device("910b")), LENGTHS, 1)


def _ordered(interval: Interval) -> bool:
    return 0 < interval.low <= interval.mid <= interval.high < float("inf")


@given(
    loads=st.lists(st.floats(1, 2000), min_size=1, max_size=3),
    lengths=st.builds(Lengths, st.floats(1, 50_000), st.floats(1, 10_000)),
    name=st.sampled_from(["h100", "4090", "m4-max", "epyc-9654", "t4"]),
    engine=st.sampled_from(["vllm", "sglang", "llama.cpp"]),
    slots=st.sampled_from([None, 1, 8]),
)
def test_intervals_are_ordered_and_loads_never_speed_up_a_token(
    loads: list[float], lengths: Lengths, name: str, engine: str, slots: int | None
) -> None:
    setup = replace(SETUP, device=device(name), engine=engine, slots=slots)
    rows: list[Latency] = list(curve(setup, lengths, sorted(loads)))
    assert all(_ordered(part) for row in rows for part in (row.ttft_s, row.tpot_s, row.output_tokens_per_s))
    made = [parts_of(setup, lengths, load).step.seconds for load in sorted(loads)]
    assert made == sorted(made)
