from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.plan.shapes import DEEPSEEK_V2_LITE, GEMMA3_12B, LLAMA_8B, QWEN35_35B

from nilometer.plan.memory import pool
from nilometer.plan.memory.kv import CacheLayers, cache, cache_precision, need_bytes, raw_cache
from nilometer.plan.memory.pool import Group, blocks_needed, vllm_layout, vllm_pool

GIB = 2**30
BF16, FP8 = cache_precision(), cache_precision("fp8")


def test_layers_alike_share_blocks_of_sixteen_tokens() -> None:
    """58.11 GiB of Llama-3.1-8B: 29,754 blocks of 2 MiB; 512 for 8,192 tokens."""
    layout = vllm_layout(cache(LLAMA_8B), BF16)
    held = vllm_pool([layout], [58.11 * GIB], 8192)
    assert (layout.kind, layout.block_bytes) == ("uniform", 2 * 2**20)
    assert held.blocks == int(58.11 * 512) == 29_752
    assert held.tokens == 29_752 * 16
    assert held.concurrency == 29_752 / 512
    assert held.requests == 58


def test_windows_make_groups_that_draw_from_the_same_blocks() -> None:
    """Gemma-3-12B: 5 groups of 8 windowed layers and 1 of 8 others; 3,077 blocks for 8,192 tokens, as the log has it.

    A block is 8 places x 16 tokens x 8 KiB = 1 MiB, so 47.72 GiB are 48,865; a window needs 512 + 1 with T = 8,192.
    """
    layout = vllm_layout(cache(GEMMA3_12B), BF16)
    assert layout.block_bytes == 2**20
    assert sorted((group.count, group.window or 0) for group in layout.groups) == [(1, 0), (5, 1024)]
    assert blocks_needed(layout, 8192, 8192) == 512 + 5 * 513 == 3077
    held = vllm_pool([layout], [47.72 * GIB], 8192)
    assert held.blocks == 48_865
    assert held.tokens == 48_865 // 6 * 16 == 130_304
    assert held.concurrency == pytest.approx(15.88, abs=0.005)


def test_a_long_context_saves_by_its_windows() -> None:
    """At 131,072 tokens a window holds 1,023 + 8,192 of them: 576 + 1 blocks instead of 8,192."""
    layout = vllm_layout(cache(GEMMA3_12B), BF16)
    assert blocks_needed(layout, 131_072, 8192) == 8192 + 5 * 577
    assert blocks_needed(layout, 131_072) == 8192 + 5 * 65


def test_kinds_of_nearly_one_size_are_padded_not_split() -> None:
    """13 and 12 layers: one group each of 13 places; 20 and 12: groups of 12."""
    window, rest = raw_cache(12, 8, 64, 128)[0], raw_cache(13, 8, 64)[0]
    close = vllm_layout((window, rest), BF16)
    assert (close.places, [group.count for group in close.groups]) == (13, [1, 1])
    apart = vllm_layout((window, raw_cache(20, 8, 64)[0]), BF16)
    assert (apart.places, [group.count for group in apart.groups]) == (12, [1, 2])


def test_before_0_10_every_layer_is_kept_whole() -> None:
    old = vllm_layout(cache(GEMMA3_12B), BF16, version=(0, 9, 2))
    assert (old.kind, old.block_bytes) == ("uniform", 48 * 16 * 8192)


def test_one_window_on_all_layers_is_uniform() -> None:
    """A window of 4,096 with 2,048 tokens under way: (4,095 + 2,048) / 16, rounded up, and one."""
    layout = vllm_layout(raw_cache(32, 8, 128, 4096), BF16)
    assert layout.kind == "uniform"
    assert blocks_needed(layout, 32_768, 2048) == 384 + 1


def test_a_recurrent_state_raises_the_block_of_attention() -> None:
    """Qwen3.5-35B with fp8: state 2,097,152 + 49,152 = 2,146,304 bytes = 2,096 tokens of 1 KiB, already 16 x 131.

    5.98 GiB are 299 blocks of ten places; 131,072 tokens need 63, three groups of states 2 each: 69 (club-3090#612).
    """
    layout = vllm_layout(cache(QWEN35_35B), FP8, version=(0, 24))
    assert (layout.kind, layout.block, layout.places) == ("states", 2096, 10)
    assert Group(count=3, block=2096, state_blocks=2) in layout.groups
    held = vllm_pool([layout], [5.98 * GIB], 131_072, version=(0, 24))
    assert held.blocks == 299
    assert held.concurrency == 299 / 69
    assert held.tokens == 567_978


def test_without_prefix_caching_a_state_has_no_checkpoint() -> None:
    plain = vllm_layout(cache(QWEN35_35B), FP8, version=(0, 24), prefix_caching=False)
    assert blocks_needed(plain, 131_072) == 63 + 3


def test_pages_of_attention_layers_of_two_widths_match() -> None:
    """The narrower keeps twice the tokens in a page of the same bytes."""
    wide, narrow = raw_cache(4, 8, 256)[0], raw_cache(20, 8, 128, 1024)[0]
    layout = vllm_layout((wide, narrow), BF16)
    assert sorted(group.block for group in layout.groups) == [16, 32]
    assert layout.page_bytes == 16 * 2 * 8 * 256 * 2


def test_the_stage_with_the_fewest_blocks_decides() -> None:
    whole = vllm_layout(cache(LLAMA_8B), BF16)
    quarter = pool.stage_layout(whole, 1 / 4)
    held = vllm_pool([quarter] * 2, [10 * GIB, 9 * GIB], 8192)
    assert held.blocks == 9 * GIB // (16 * 32_768)
    windows = pool.stage_layout(vllm_layout(cache(GEMMA3_12B), BF16), 3 / 8)
    assert windows.places == 3


def test_the_latent_cache_in_blocks() -> None:
    layout = vllm_layout(cache(DEEPSEEK_V2_LITE), BF16, 2)
    assert layout.block_bytes == 16 * 31_104


def test_a_flat_pool_counts_tokens_and_whole_requests() -> None:
    held = pool.flat_pool(raw_cache(32, 8, 128), BF16, 10 * GIB, 2048)
    assert held.tokens == 10 * GIB // 131_072 == 81_920
    assert (held.concurrency, held.requests) == (40.0, 40)
    assert pool.flat_pool((), BF16, GIB, 100).tokens == 0


def test_an_empty_pool_holds_nothing() -> None:
    held = vllm_pool([vllm_layout(cache(LLAMA_8B), BF16)], [-5.0], 8192)
    assert (held.blocks, held.tokens, held.requests) == (0, 0, 0)


parts = st.lists(
    st.builds(
        CacheLayers,
        count=st.integers(1, 60),
        heads=st.sampled_from([1, 2, 8]),
        key_dim=st.just(128),
        value_dim=st.just(128),
        window=st.sampled_from([None, 128, 1024, 4096]),
    ),
    min_size=1,
    max_size=3,
)


@given(cached=parts, size=st.floats(0, 1e12), context=st.integers(1, 200_000), batched=st.integers(1, 16_384))
def test_the_greatest_concurrency_is_the_greatest(
    cached: list[CacheLayers], size: float, context: int, batched: int
) -> None:
    layout = vllm_layout(tuple(cached), BF16)
    held = vllm_pool([layout], [size], context, batched_tokens=batched)
    each = blocks_needed(layout, context, batched) * layout.block_bytes
    assert held.requests * each <= size
    assert size < (held.requests + 1) * each or held.blocks == held.requests * blocks_needed(layout, context, batched)
    assert held.blocks is not None
    assert held.blocks < (held.requests + 1) * blocks_needed(layout, context, batched)


@given(cached=parts, tokens=st.integers(1, 100_000))
def test_blocks_hold_what_is_needed_and_more_tokens_never_need_fewer(cached: list[CacheLayers], tokens: int) -> None:
    layout = vllm_layout(tuple(cached), BF16)
    assert blocks_needed(layout, tokens) * layout.block_bytes >= need_bytes(tuple(cached), BF16, tokens)
    assert blocks_needed(layout, tokens + 1) >= blocks_needed(layout, tokens)


def test_a_stage_whose_layers_keep_nothing_sets_no_limit() -> None:
    one = vllm_layout(cache(LLAMA_8B), cache_precision("bf16"))
    empty = pool.stage_layout(one, 0.0)
    whole = vllm_pool([one], [1e9], 1024)
    assert vllm_pool([one, empty], [1e9, 0.0], 1024).blocks == whole.blocks
    assert vllm_pool([empty], [1e9], 1024).blocks == 0
