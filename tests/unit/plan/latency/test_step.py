from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.unit.plan.shapes import DEEPSEEK_V2_LITE, LLAMA_8B

from nilometer.core.errors import SpecError
from nilometer.plan.devices import device, device_of
from nilometer.plan.latency.factors import FACTORS, factors
from nilometer.plan.latency.step import crossover_batch, decode_step, prefill_step, rate
from nilometer.plan.latency.work import Setup, multiplied, weights_read
from nilometer.plan.model.parallel import Parallel
from nilometer.plan.model.precision import precision_of
from nilometer.plan.model.shape import Shape

SETUP = Setup(shape=LLAMA_8B, device=device("h100"), precision=precision_of("bf16"))
GPU = FACTORS["gpu"]
BATCHES = st.integers(1, 512)
CONTEXTS = st.integers(1, 32_768)
SPLITS = st.sampled_from([Parallel(), Parallel(tensor=2), Parallel(pipeline=2), Parallel(data=8, expert=8)])
SHAPES = st.sampled_from([LLAMA_8B, DEEPSEEK_V2_LITE])


def test_one_token_of_one_request_by_hand() -> None:
    """15.01 GB of weights at 79.5 % of 3.35 TB/s, 128 KiB a token of cache at 79.7 %, 23 us for each of 32 layers."""
    step = decode_step(SETUP, 1, 1000)
    assert step.weights_s == pytest.approx(weights_read(SETUP, 1) / (3.35e12 * 0.795))
    assert step.cache_s == pytest.approx(131_072_000 / (3.35e12 * 0.797))
    assert step.overhead_s == pytest.approx(32 * 23e-6)
    assert step.seconds == pytest.approx(step.weights_s + step.cache_s + step.overhead_s)
    assert step.seconds == pytest.approx(6.42e-3, rel=0.01)
    walls = step.walls()
    assert max(walls, key=lambda wall: walls[wall]) == "bandwidth"


def test_a_long_prompt_is_bound_by_arithmetic() -> None:
    step = prefill_step(SETUP, 8192)
    assert step.compute_s > step.weights_s
    assert step.riding_s == step.compute_s + step.attention_s
    walls = step.walls()
    assert max(walls, key=lambda wall: walls[wall]) == "compute"


def test_two_ranks_wait_for_each_other_64_times() -> None:
    step = decode_step(replace(SETUP, parallel=Parallel(tensor=2)), 1, 1000)
    assert step.waits_s == pytest.approx(64 * 26e-6)
    assert step.sending_s == pytest.approx(64 * 4096 * 2 / (0.7 * 450e9))
    assert step.weights_s == pytest.approx(decode_step(SETUP, 1, 1000).weights_s / 2, rel=0.001)


def test_a_token_passes_all_stages_of_a_pipeline() -> None:
    whole, staged = decode_step(SETUP, 16, 100), decode_step(replace(SETUP, parallel=Parallel(pipeline=4)), 64, 100)
    assert staged.seconds == pytest.approx(whole.seconds + 3 * 10e-6 + staged.sending_s)


def test_the_crossover_is_where_operations_take_as_long_as_reading() -> None:
    """BW e_w x 2 B P = C e_c x bytes: B = C e_c bytes / (2 P BW e_w), here 178.3."""
    exact = 989e12 * GPU.batch * weights_read(SETUP, 1) / (2 * multiplied(SETUP) * 3.35e12 * GPU.weights)
    assert crossover_batch(SETUP, 1000) == int(exact) + 1


def test_without_arithmetic_there_is_no_crossover() -> None:
    assert crossover_batch(replace(SETUP, device=device("epyc-9654")), 100) is None


def test_a_device_without_a_precision_computes_in_fp16() -> None:
    assert rate(device("a100"), "fp8") == 312e12
    assert rate(device("h100"), "fp8") == 1978e12
    assert rate(device("epyc-9654"), "fp16") is None


def test_the_first_vllm_had_the_device_wait_for_the_host() -> None:
    assert factors("vllm", "gpu", "0.5.4").sequence_s > 0
    assert factors("vllm", "gpu", "0.6.0").sequence_s == 0
    assert factors("vllm", "gpu").sequence_s == 0


def test_the_host_shows_only_where_it_is_slower() -> None:
    fast = replace(SETUP, device=device_of(1e15, 1e18))
    step = decode_step(fast, 1000, 1)
    assert step.seconds == step.host_s == pytest.approx(1000 * GPU.token_s)
    assert step.walls()["overhead"] > 0.9 * step.host_s


def test_a_processor_reads_and_computes_in_turn_and_serves_a_pair_by_other_kernels() -> None:
    setup = replace(SETUP, device=device_of(50e9, 200e9, kind="cpu"), engine="llama.cpp")
    one, two = decode_step(setup, 1, 100), decode_step(setup, 2, 100)
    assert one.seconds == pytest.approx(one.weights_s + one.compute_s + one.cache_s + one.attention_s)
    assert two.weights_s == pytest.approx(one.weights_s * 5 * (2 / 4) ** 0.5)
    for many in (4, 16):
        assert decode_step(setup, many, 100).weights_s == pytest.approx(one.weights_s * 5)


def test_every_row_says_where_it_is_from_and_an_unknown_engine_is_refused() -> None:
    assert all(row.source for row in FACTORS.values())
    with pytest.raises(SpecError, match="plan_engine_unknown"):
        factors("steam", "gpu")


@given(batch=BATCHES, context=CONTEXTS, shape=SHAPES, split=SPLITS, more=st.floats(1, 100))
def test_more_bandwidth_or_arithmetic_is_never_slower(
    batch: int, context: int, shape: Shape, split: Parallel, more: float
) -> None:
    setup = replace(SETUP, shape=shape, parallel=split, device=device_of(1e12, 1e14))
    wider = replace(setup, device=device_of(more * 1e12, 1e14))
    faster = replace(setup, device=device_of(1e12, more * 1e14))
    for better in (wider, faster):
        assert decode_step(better, batch, context).seconds <= decode_step(setup, batch, context).seconds
        assert prefill_step(better, context).seconds <= prefill_step(setup, context).seconds


@given(batch=BATCHES, context=CONTEXTS, shape=SHAPES, split=SPLITS)
def test_a_larger_batch_makes_no_fewer_tokens(batch: int, context: int, shape: Shape, split: Parallel) -> None:
    setup = replace(SETUP, shape=shape, parallel=split)
    one, more = (decode_step(setup, n, context).seconds / n for n in (batch, batch + split.pipeline))
    assert more <= one * (1 + 1e-9)


@given(context=CONTEXTS, fewer=st.sampled_from(["fp8", "int4", "w4a16", "q8_0"]))
def test_fewer_bits_are_never_slower_where_reading_is_the_wall(context: int, fewer: str) -> None:
    wide = decode_step(SETUP, 1, context)
    narrow = decode_step(replace(SETUP, precision=precision_of(fewer)), 1, context)
    assert wide.weights_s > wide.compute_s
    assert narrow.seconds <= wide.seconds
