from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.plan.shapes import GEMMA3_12B, QWEN35_35B, SMOL

from nilometer.core.errors import SpecError
from nilometer.plan.memory.kv import cache, cache_precision, raw_cache
from nilometer.plan.memory.slots import MOST_SLOTS, Slots, llamacpp_cache_bytes, llamacpp_slots

F16 = cache_precision("f16")


@pytest.mark.parametrize(
    ("context", "slots", "unified", "version", "expected"),
    [
        (8192, 4, None, None, (4, False, 8192, 2048)),
        (1024, None, None, None, (4, True, 1024, 1024)),
        (1024, -1, None, (7079,), (4, True, 1024, 1024)),
        (1024, None, None, (4621,), (1, False, 1024, 1024)),
        (200_000, 3, True, None, (3, True, 200_192, 200_192)),
        (10_000, 3, None, None, (3, False, 10_752, 3584)),
        (1000, 2, None, None, (2, False, 1024, 512)),
    ],
)
def test_the_context_is_split_over_slots_or_shared(
    context: int, slots: int | None, unified: bool | None, version: tuple[int, ...] | None, expected: tuple[object, ...]
) -> None:
    """llama.cpp#23652: `-c 1024` makes four slots of 1,024 that share 1,024; with -np 4 each has 256."""
    found = llamacpp_slots(context, slots, unified=unified, version=version)
    assert (found.slots, found.unified, found.cells, found.slot_context) == expected


def test_what_all_slots_surely_have() -> None:
    assert llamacpp_slots(1024, 4).guaranteed == 256
    assert llamacpp_slots(1024).guaranteed == 256
    assert llamacpp_slots(1024).slot_context == 1024


def test_the_training_context_bounds_a_slot_and_stands_for_zero() -> None:
    assert llamacpp_slots(0, 2, trained=8192).slot_context == 4096
    assert llamacpp_slots(65_536, 2, trained=8192).slot_context == 8192


@pytest.mark.parametrize(
    ("context", "slots", "trained"), [(0, 1, None), (-5, 1, None), (512, 0, None), (512, -3, 8192)]
)
def test_impossible_numbers_are_refused(context: int, slots: int, trained: int | None) -> None:
    with pytest.raises(SpecError) as refused:
        llamacpp_slots(context, slots, trained=trained)
    assert refused.value.slug == "plan_number_too_small"


def test_the_cache_is_made_whole_at_start() -> None:
    """Qwen3-4B, 36 layers x 8 heads x 128: 144 KiB a token in f16; 8,192 cells are 1,152 MiB, split or shared."""
    raw = raw_cache(36, 8, 128)
    for slots in (llamacpp_slots(8192, 1), llamacpp_slots(8192, 4), llamacpp_slots(8192)):
        assert llamacpp_cache_bytes(raw, F16, slots) == 1152 * 2**20
    assert llamacpp_cache_bytes(raw, cache_precision("q8_0"), llamacpp_slots(8192, 1)) == 1152 * 2**20 * 17 / 32
    assert llamacpp_cache_bytes(cache(SMOL), F16, llamacpp_slots(1024, 2)) == 1024 * 23_040


def test_windows_keep_themselves_and_a_batch_for_each_slot() -> None:
    """Gemma-3, window 1,024, -ub 512: 1,536 cells a slot; four slots in one cache 4 x 1,024 + 512 = 4,608."""
    parts, layer = cache(GEMMA3_12B), 8192
    split = llamacpp_slots(32_768, 4)
    assert llamacpp_cache_bytes(parts, F16, split) == layer * (8 * 32_768 + 40 * 4 * 1536)
    shared = llamacpp_slots(32_768)
    assert llamacpp_cache_bytes(parts, F16, shared) == layer * (8 * 32_768 + 40 * 4608)
    assert llamacpp_cache_bytes(parts, F16, shared, full_windows=True) == layer * 48 * 32_768


def test_each_slot_keeps_a_state_of_its_own() -> None:
    """All of it in fp32 there: 30 x 548,864 x 4 bytes a slot."""
    parts = cache(QWEN35_35B)
    precise = cache_precision("f16", dtype="fp32")
    two, three = (llamacpp_cache_bytes(parts, precise, llamacpp_slots(6144, n)) for n in (2, 3))
    assert three - two == 30 * 548_864 * 4


@given(context=st.integers(1, 500_000), slots=st.integers(1, 64), unified=st.booleans())
def test_slots_together_never_have_less_than_asked_and_little_more(context: int, slots: int, unified: bool) -> None:
    found: Slots = llamacpp_slots(context, slots, unified=unified)
    assert context <= found.cells < context + 256 * (slots + 1)
    assert found.cells % 256 == 0
    assert found.guaranteed * slots <= found.cells


def test_more_slots_than_the_engine_takes_are_refused() -> None:
    assert llamacpp_slots(256, MOST_SLOTS).slot_context == 256
    with pytest.raises(SpecError) as refused:
        llamacpp_slots(1 << 20, MOST_SLOTS + 1)
    assert (refused.value.slug, refused.value.params["most"]) == ("plan_number_too_large", 256)
