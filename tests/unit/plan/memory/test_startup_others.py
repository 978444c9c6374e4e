from __future__ import annotations

import pytest
from tests.unit.plan.shapes import LLAMA_8B, dense

from nilometer.plan.memory.startup import GIB, Rank, Settings, Term
from nilometer.plan.memory.startup_others import (
    llamacpp_build,
    llamacpp_terms,
    sglang_fraction,
    sglang_terms,
    tensorrt_terms,
    tgi_terms,
)
from nilometer.plan.versions import parse_version

RANK = Rank(shape=LLAMA_8B, weights_bytes=15 * GIB)
CPU_RANK = Rank(shape=LLAMA_8B, weights_bytes=15 * GIB, on_cpu=True)
MIB = 2**20


def left_gib(terms: tuple[Term, ...], visible_gib: float) -> float:
    return visible_gib - sum(term.bytes.mid for term in terms) / GIB


@pytest.mark.parametrize(
    ("visible_gib", "tensor", "version", "expected"),
    [
        (79.2, 1, (0, 5), round(1 - (512 + 12_288 + 512 + 128) / (79.2 * 1024), 3)),
        (79.2, 1, (0, 4, 1), 0.88),
        (79.2, 2, (0, 4, 1), 0.87),
        (79.2, 8, (0, 4, 1), 0.81),
        (23.5, 1, (0, 5), round(1 - (512 + 3072 + 48 + 128) / (23.5 * 1024), 3)),
        (23.5, 4, (0, 5), round(1 - (512 + 3072 + 160 + 512) / (23.5 * 1024), 3)),
    ],
)
def test_the_share_that_sglang_keeps(
    visible_gib: float, tensor: int, version: tuple[int, ...], expected: float
) -> None:
    """512 MiB + 1.5 MiB a chunked token + 2 MiB a graph's sequence + ranks / 8 GiB, at least 10 GiB on big devices."""
    rank = Rank(shape=LLAMA_8B, weights_bytes=0, tensor=tensor)
    assert sglang_fraction(visible_gib * GIB, rank, Settings(), version) == expected
    assert sglang_fraction(visible_gib * GIB, rank, Settings(utilisation=0.7), version) == 0.7


def test_sglang_sets_ten_gib_aside_on_a_large_device_however_small_its_chunk() -> None:
    share = sglang_fraction(79.2 * GIB, RANK, Settings(batched_tokens=2048), (0, 5))
    assert share == round(1 - 10 / 79.2, 3)


def test_sglang_s_pool_is_its_share_of_the_free_less_the_weights() -> None:
    """0.88 x (79.2 - 0.5) - 15."""
    terms = sglang_terms(RANK, 79.2 * GIB, Settings(utilisation=0.88), (0, 5))
    assert left_gib(terms, 79.2) == pytest.approx(0.88 * 78.7 - 15)


def test_sglang_on_four_cards_as_logged() -> None:
    """vllm#21348: Qwen3-235B in FP8, fraction 0.93: 16.46 GiB beside 55.0 GiB of weights."""
    shape = dense(94, 4096, 12288, 151_936, heads=64, kv_heads=4)
    rank = Rank(shape=shape, weights_bytes=55.0 * GIB, tensor=4)
    terms = sglang_terms(rank, 79.19 * GIB, Settings(utilisation=0.93), (0, 4, 9))
    assert left_gib(terms, 79.19) == pytest.approx(16.46, abs=0.4)


def test_tensorrt_llm_takes_a_share_of_what_is_free() -> None:
    """Free: 80 - 15 - 0.5 - forward 2 x 8,192 x 59,392 - logits 4 x 2,048 x 128,256; nine tenths of it."""
    terms = tensorrt_terms(RANK, 80 * GIB, Settings(), (1, 0))
    free = 80 - 15 - 0.5 - 2 * 8192 * 59_392 / GIB - 4 * 2048 * 128_256 / GIB
    assert left_gib(terms, 80) == pytest.approx(0.9 * free)
    assert left_gib(tensorrt_terms(RANK, 80 * GIB, Settings(utilisation=0.5), (1, 0)), 80) == pytest.approx(free / 2)
    full = tensorrt_terms(RANK, 10 * GIB, Settings(), (1, 0))
    assert left_gib(full, 10) < 0


def test_tgi_leaves_a_tenth_of_the_device() -> None:
    terms = tgi_terms(RANK, 80 * GIB, Settings(), (3, 0))
    assert left_gib(terms, 80) == pytest.approx(72 - 15 - 0.5 - 2 * 4096 * 59_392 / GIB)


@pytest.mark.parametrize(
    ("vocab", "hidden", "logged_mib"), [(128_256, 4096, 258.5), (151_936, 2048, 300.75), (152_064, 3584, 304.0)]
)
def test_llama_cpp_s_compute_buffer_is_the_logits_of_a_micro_batch(vocab: int, hidden: int, logged_mib: float) -> None:
    """Logged for Llama-3-8B, Qwen2.5-3B and Qwen2.5-7B with -ub 512."""
    shape = dense(32, hidden, 2 * hidden, vocab, heads=32, kv_heads=8)
    terms = llamacpp_terms(Rank(shape=shape, weights_bytes=0), 0, Settings(), (4700,))
    buffer = next(term for term in terms if term.name == "compute_buffer")
    assert buffer.bytes.mid / MIB == pytest.approx(logged_mib)
    assert buffer.bytes.low < buffer.bytes.mid < buffer.bytes.high
    half = llamacpp_terms(Rank(shape=shape, weights_bytes=0), 0, Settings(ubatch=256), (4700,))
    assert half[1].bytes.mid == buffer.bytes.mid / 2


def test_newer_builds_make_room_for_the_logits_of_one_token_a_slot() -> None:
    """4 x 512 x (3 x 14,336 + 4 x 4,096) and a mask of 2 x 512 x 4,096; between the builds either may be."""
    settings = Settings(context=4096, slots=4)
    lean = llamacpp_terms(RANK, 0, settings, (10_434,))[1].bytes
    assert lean.mid == 4 * 512 * 59_392 + 2 * 512 * 4096
    assert llamacpp_terms(RANK, 0, settings, (9_000,))[1].bytes.mid / MIB == pytest.approx(258.5)
    between = llamacpp_terms(RANK, 0, settings, (9_800,))[1].bytes
    assert between.low < lean.mid < between.mid


@pytest.mark.parametrize(
    ("told", "build"),
    [("b7079", 7079), ("0.10434.0", 10_434), ("2026.10.11549", 11_549), ("4621 (6eecde3c)", 4621), ("0.1.0-dev", None)],
)
def test_a_build_is_read_from_what_calls_itself_by_it(told: str, build: int | None) -> None:
    assert llamacpp_build(parse_version(told)) == (None if build is None else (build,))


def test_a_gpu_has_a_context_and_a_cpu_has_none() -> None:
    names = [[term.name for term in llamacpp_terms(rank, 0, Settings(), (10_434,))] for rank in (RANK, CPU_RANK)]
    assert names == [["weights", "compute_buffer", "context"], ["weights", "compute_buffer"]]


@pytest.mark.parametrize("visible", [0.0, 1.0, 2.0**20, GIB])
def test_a_device_without_room_for_what_sglang_sets_aside_keeps_nothing(visible: float) -> None:
    rank = Rank(shape=LLAMA_8B, weights_bytes=16e9)
    assert sglang_fraction(visible, rank, Settings(), (0, 5)) == 0
    assert all(term.bytes.low >= 0 for term in sglang_terms(rank, visible, Settings(batched_tokens=10**9), (0, 5)))
