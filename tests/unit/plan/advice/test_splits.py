from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.unit.plan.questions import CHAT, LLAMA_70B
from tests.unit.plan.shapes import DEEPSEEK_V2_LITE, QWEN35_35B, SMOL, dense

from nilometer.plan.advice.splits import kv_heads, machine_devices, machines, sizes, split, splits
from nilometer.plan.devices import device
from nilometer.plan.model.parallel import Parallel

QWEN_7B = dense(28, 3584, 18_944, 152_064, heads=28, kv_heads=4)


def test_one_device_first_then_tensor_ranks_then_machines() -> None:
    asked = replace(CHAT, shape=LLAMA_70B)
    assert [(one.tensor, one.pipeline) for one in splits(asked, 32)] == [
        (1, 1),
        (2, 1),
        (4, 1),
        (8, 1),
        (8, 2),
        (8, 4),
    ]
    assert [machines(asked, one) for one in splits(asked, 32)] == [1, 1, 1, 1, 2, 4]


def test_ranks_divide_the_heads_and_the_rest_are_stages() -> None:
    """28 heads: four ranks, so eight devices are two stages of four; nine heads: stages alone."""
    assert split(replace(CHAT, shape=QWEN_7B), 8) == Parallel(tensor=4, pipeline=2)
    assert split(replace(CHAT, shape=SMOL), 4) == Parallel(tensor=1, pipeline=4)


def test_llamacpp_deals_layers() -> None:
    assert split(replace(CHAT, engine="llama.cpp"), 4) == Parallel(tensor=1, pipeline=4)


def test_a_rack_whose_link_spans_more_has_more_ranks() -> None:
    rack = replace(CHAT, shape=LLAMA_70B, device=device("GB200-NVL72"))
    assert split(rack, 16) == Parallel(tensor=16)
    assert (machine_devices(rack.device), machine_devices(None)) == (72, 8)


def test_more_stages_than_layers_are_none() -> None:
    assert split(replace(CHAT, shape=SMOL), 32) is None
    assert len(splits(replace(CHAT, shape=SMOL), 64)) == 5


def test_heads_of_all_layers_count() -> None:
    assert kv_heads(DEEPSEEK_V2_LITE) is None
    assert kv_heads(QWEN35_35B) == 2


def test_copies_stay() -> None:
    assert {one.data for one in splits(replace(CHAT, parallel=Parallel(data=3)), 8)} == {3}


@given(devices=st.integers(1, 64), heads=st.integers(1, 64))
def test_a_split_is_of_whole_heads_and_all_devices(devices: int, heads: int) -> None:
    made = split(replace(CHAT, shape=dense(80, 512, 512, 1000, heads=heads, kv_heads=1)), devices)
    assert made is not None
    assert made.tensor * made.pipeline == devices
    assert heads % made.tensor == 0
    assert made.tensor <= 8


def test_sizes_are_powers_of_two() -> None:
    assert sizes(8) == (1, 2, 4, 8)
    assert sizes(6) == (1, 2, 4)
    assert sizes(1) == (1,)


@pytest.mark.parametrize("most", [0, 1])
def test_one_device_is_always_tried(most: int) -> None:
    assert splits(CHAT, most) == (Parallel(),)
