from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.plan.shapes import DEEPSEEK_V2_LITE, GEMMA3_12B, LLAMA_8B, QWEN3_235B_ATTENTION, QWEN35_35B, raw_cache

from nilometer.core.errors import SpecError
from nilometer.plan.memory import kv
from nilometer.plan.memory.kv import CacheLayers, cache, cache_precision
from nilometer.plan.model.parallel import stage_bounds
from nilometer.plan.model.shape import Block, Latent, Shape

BF16, FP8 = cache_precision(), cache_precision("fp8")


def test_the_worked_example_is_exact() -> None:
    """2 x 32 layers x 8 KV heads x 128 x 2 bytes = 128 KiB a token; 16 requests x 2,048 tokens = 4 GiB."""
    raw = raw_cache(32, 8, 128)
    assert kv.bytes_per_token(raw, cache_precision("fp16")) == 131_072
    assert kv.need_bytes(raw, cache_precision("fp16"), 2048, 16) == 4_294_967_296
    assert kv.bytes_per_token(cache(LLAMA_8B), BF16) == 131_072


@pytest.mark.parametrize(
    ("tensor", "expected"),
    [(1, 94 * 2 * 4 * 128 * 2), (2, 94 * 2 * 2 * 128 * 2), (4, 94 * 2 * 128 * 2), (8, 94 * 2 * 128 * 2)],
)
def test_ranks_beyond_the_kv_heads_hold_copies(tensor: int, expected: int) -> None:
    """Qwen3-235B on four ranks, SGLang's log: 367,404 tokens in twice 8.23 GiB (vllm#21348)."""
    assert kv.bytes_per_token(cache(QWEN3_235B_ATTENTION), BF16, tensor) == expected
    if tensor == 4:
        assert expected == pytest.approx(16.46 * 2**30 / 367_404, rel=1e-3)


@pytest.mark.parametrize("tensor", [1, 2, 8])
def test_the_latent_vector_is_whole_on_every_rank(tensor: int) -> None:
    """27 layers x (512 + 64) x 2 bytes = 31,104, as vLLM's log has it."""
    assert kv.bytes_per_token(cache(DEEPSEEK_V2_LITE), BF16, tensor) == 31_104


def test_the_key_of_an_indexer_is_kept_beside_in_eight_bits() -> None:
    mixer = Latent(heads=128, kv_rank=512, rope_dim=64, nope_dim=128, value_dim=128, index_heads=64, index_dim=128)
    shape = Shape(
        name="sparse", hidden=8, vocab=8, kinds=(Block(mixer=mixer, feed_forward=None),), order=(0,) * 61, tied=False
    )
    assert kv.bytes_per_token(cache(shape), BF16) == 61 * (576 * 2 + 128 + 4)
    assert kv.bytes_per_token(cache(shape), FP8) == 61 * (576 + 128 + 4)


def test_keys_and_values_may_differ_in_precision() -> None:
    """llama.cpp -ctk q8_0 -ctv q4_0: 34 and 18 bytes for 32 elements."""
    mixed = cache_precision("q8_0", "q4_0")
    assert kv.bytes_per_token(raw_cache(32, 8, 128), mixed) == 32 * 8 * 128 * (34 + 18) / 32


def test_auto_is_what_the_model_computes_in() -> None:
    assert cache_precision("auto", dtype="fp8").key == 2
    assert cache_precision("auto", dtype="float32").key == 4
    assert cache_precision("auto", "auto", dtype="fp32").value == 4
    assert cache_precision("bfloat16").key == cache_precision("F16").key == 2


def test_a_window_holds_no_more_than_itself() -> None:
    """Gemma-3-12B: 40 layers of 1,024 and 8 of all; a layer caches 2 x 8 x 256 x 2 = 8 KiB a token."""
    parts = cache(GEMMA3_12B)
    assert sorted((part.count, part.window or 0) for part in parts) == [(8, 0), (40, 1024)]
    assert kv.need_bytes(parts, BF16, 512) == 48 * 512 * 8192
    assert kv.need_bytes(parts, BF16, 8192, 3) == 3 * (40 * 1024 + 8 * 8192) * 8192


def test_a_recurrent_state_is_of_one_size() -> None:
    """32 heads x 128 x 128 in fp32 and 3 x 8,192 inputs of the convolution in bf16, in 30 of 40 layers."""
    parts = cache(QWEN35_35B)
    state = 30 * (32 * 128 * 128 * 4 + 3 * 8192 * 2)
    assert kv.state_bytes(parts, FP8) == state
    assert kv.state_bytes(parts, FP8, 2) == state / 2
    assert kv.bytes_per_token(parts, FP8) == 10 * 2 * 2 * 256
    assert kv.need_bytes(parts, FP8, 100, 2) == 2 * (state + 100 * 10_240)


@pytest.mark.parametrize(
    ("engine", "each"), [("vllm", 2.0), ("tensorrt-llm", 2.0), ("sglang", 4.0), ("llama.cpp", 4.0)]
)
def test_a_state_of_which_the_model_says_nothing_is_as_the_engine_keeps_it(engine: str, each: float) -> None:
    silent = kv.CacheLayers(count=1, state=1000)
    assert kv.layer_state_bytes(silent, kv.cache_precision("fp8", engine=engine)) == 1000 * each
    said = kv.CacheLayers(count=1, state=1000, state_bytes=4.0)
    assert kv.layer_state_bytes(said, kv.cache_precision("fp8", engine=engine)) == 4000


def test_the_stages_of_a_pipeline_cache_what_the_whole_does() -> None:
    parts = [cache(GEMMA3_12B, *span) for span in stage_bounds(48, 4)]
    assert sum(kv.bytes_per_token(part, BF16) for part in parts) == kv.bytes_per_token(cache(GEMMA3_12B), BF16)


@pytest.mark.parametrize(
    ("call", "slug"),
    [
        (lambda: kv.element_bytes("fp3"), "kv_precision_unknown"),
        (lambda: kv.need_bytes(raw_cache(1, 1, 1), BF16, -1), "plan_number_too_small"),
        (lambda: kv.need_bytes(raw_cache(1, 1, 1), BF16, 1, -1), "plan_number_too_small"),
    ],
)
def test_what_makes_no_sense_is_refused(call: object, slug: str) -> None:
    assert callable(call)
    with pytest.raises(SpecError) as refused:
        call()
    assert refused.value.slug == slug


layers = st.builds(
    CacheLayers,
    count=st.integers(1, 80),
    heads=st.sampled_from([1, 2, 4, 8, 16]),
    key_dim=st.sampled_from([64, 128, 256]),
    value_dim=st.sampled_from([64, 128, 256]),
    window=st.none(),
)


@given(part=layers, tokens=st.integers(0, 10**6), times=st.integers(1, 50))
def test_without_windows_the_need_is_linear_in_tokens_and_requests(part: CacheLayers, tokens: int, times: int) -> None:
    one = kv.need_bytes((part,), BF16, tokens)
    assert kv.need_bytes((part,), BF16, tokens * times) == one * times
    assert kv.need_bytes((part,), BF16, tokens, times) == one * times


@given(part=layers, tensor=st.sampled_from([1, 2, 4, 8, 16]))
def test_a_rank_holds_at_least_its_share(part: CacheLayers, tensor: int) -> None:
    assert kv.bytes_per_token((part,), BF16, tensor) * tensor >= kv.bytes_per_token((part,), BF16)


@given(part=layers, window=st.integers(1, 10_000), tokens=st.integers(0, 100_000))
def test_windows_never_hold_more_than_all_would(part: CacheLayers, window: int, tokens: int) -> None:
    windowed = CacheLayers(
        count=part.count, heads=part.heads, key_dim=part.key_dim, value_dim=part.value_dim, window=window
    )
    assert kv.need_bytes((windowed,), BF16, tokens) <= kv.need_bytes((part,), BF16, tokens)


def test_fewer_bits_never_hold_more() -> None:
    order = ["fp32", "bf16", "q8_0", "fp8", "q5_1", "q5_0", "q4_1", "nvfp4", "int4"]
    needs = [kv.need_bytes(cache(LLAMA_8B), cache_precision(name), 1000) for name in order]
    assert needs == sorted(needs, reverse=True)
