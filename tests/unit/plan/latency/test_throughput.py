from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.unit.plan.shapes import LLAMA_8B

from nilometer.core.errors import SpecError
from nilometer.plan.devices import device
from nilometer.plan.latency.factors import FACTORS
from nilometer.plan.latency.roofline import Lengths
from nilometer.plan.latency.step import decode_step, prefill_step
from nilometer.plan.latency.throughput import held_requests, max_throughput
from nilometer.plan.latency.work import Setup
from nilometer.plan.model.parallel import Parallel
from nilometer.plan.model.precision import precision_of

SETUP = Setup(shape=LLAMA_8B, device=device("h100"), precision=precision_of("bf16"), engine="tensorrt-llm")
LENGTHS = Lengths(1000, 1000)


def test_a_request_holds_its_prompt_and_half_its_answer() -> None:
    """128 KiB a token, 1,500 tokens: 196.6 MB a request, 50 of which 10 GB hold."""
    assert held_requests(SETUP, LENGTHS, 10e9) == int(10e9 / (1500 * 131_072)) == 50


def test_the_work_of_a_cycle_by_hand() -> None:
    """50 requests: 1,000 steps and 50 prefills (one of them at its own pace) make 50,000 tokens."""
    made = max_throughput(SETUP, LENGTHS, 10e9)
    step, prefill = decode_step(SETUP, 50, 1500), prefill_step(SETUP, 1000)
    seconds = 1000 * step.seconds + 50 * prefill.riding_s
    assert made.running == 50
    assert made.output_tokens_per_s.mid == pytest.approx(50_000 / seconds, rel=0.01)
    assert made.output_tokens_per_s.low < made.output_tokens_per_s.mid < made.output_tokens_per_s.high


def test_the_interval_is_that_of_a_full_engine() -> None:
    made = max_throughput(SETUP, LENGTHS, 10e9).output_tokens_per_s
    assert made.high / made.mid < 2.718 ** (1.2817 * FACTORS["gpu"].full_spread)


def test_more_cache_is_never_slower() -> None:
    rates = [max_throughput(SETUP, LENGTHS, size * 1e9).output_tokens_per_s.mid for size in (1, 5, 20, 60)]
    assert rates == sorted(rates)


def test_no_more_sequences_than_the_engine_takes() -> None:
    assert max_throughput(SETUP, Lengths(16, 16), 60e9, most=64).running == 64


def test_stages_hold_a_share_of_the_layers_each() -> None:
    staged = replace(SETUP, parallel=Parallel(pipeline=2))
    assert held_requests(staged, LENGTHS, 10e9) == int(10e9 / (1500 * 131_072 / 2))


def test_a_cache_that_holds_no_request_is_refused() -> None:
    with pytest.raises(SpecError, match="kv_holds_no_request"):
        max_throughput(SETUP, LENGTHS, 1e6)
