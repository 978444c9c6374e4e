"""Bytes per rank: by hand, and the laws of dealing them out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.plan.shapes import DEEPSEEK_V2_LITE, LLAMA_8B, QWEN3_235B_ATTENTION

from nilometer.core.errors import SpecError
from nilometer.plan.model.parallel import Parallel
from nilometer.plan.model.parameters import Part, parameters
from nilometer.plan.model.precision import PRECISIONS, precision_of
from nilometer.plan.model.shape import Attention, Block, Dense, Experts, Shape
from nilometer.plan.model.weights import rank_parameters, stage_weight_bytes, weight_bytes

from .test_parameters import DEEPSEEK_V3, GPT_OSS_20B

SHAPES = [LLAMA_8B, DEEPSEEK_V2_LITE, DEEPSEEK_V3, GPT_OSS_20B, QWEN3_235B_ATTENTION]


def test_llama_3_1_8b_by_hand() -> None:
    linear, tables, norms = 32 * 218_103_808, 2 * 128_256 * 4096, 65 * 4096
    assert weight_bytes(LLAMA_8B) == 2 * (linear + tables + norms) == 16_060_522_496
    assert weight_bytes(LLAMA_8B, "fp8") == linear + 2 * (tables + norms)
    assert weight_bytes(LLAMA_8B, "int4") == linear * 4.15625 / 8 + 2 * (tables + norms)
    halves = Parallel(tensor=2)
    assert weight_bytes(LLAMA_8B, "bf16", halves) == linear + tables + 2 * norms


def test_kv_heads_are_copied_where_ranks_are_more() -> None:
    pair = 2 * 32 * 4096 * 1024
    others = parameters(LLAMA_8B) - pair - 65 * 4096
    many = Parallel(tensor=16)
    assert weight_bytes(LLAMA_8B, "bf16", many) == 2 * (pair / 8 + others / 16 + 65 * 4096)


def test_stages_and_the_fullest_of_them() -> None:
    stages = stage_weight_bytes(LLAMA_8B, "bf16", Parallel(pipeline=4))
    layers, table = 8 * (218_103_808 + 2 * 4096), 128_256 * 4096
    assert stages == (2 * (layers + table), 2 * layers, 2 * layers, 2 * (layers + table + 4096))
    assert weight_bytes(LLAMA_8B, "bf16", Parallel(pipeline=4)) == stages[-1]
    with pytest.raises(SpecError, match="pipeline_too_long"):
        weight_bytes(LLAMA_8B, "bf16", Parallel(pipeline=33))


def test_gpt_oss_20b_as_it_is_published() -> None:
    """The files of openai/gpt-oss-20b on Hugging Face hold 13.76 GB of tensors."""
    assert weight_bytes(GPT_OSS_20B) == pytest.approx(13.76e9, rel=2e-3)


def test_deepseek_v3_in_blocks_of_fp8() -> None:
    tables, body = 2 * 129_280 * 7168, parameters(DEEPSEEK_V3) - 2 * 129_280 * 7168
    bytes_ = weight_bytes(DEEPSEEK_V3, "fp8_block")
    assert bytes_ == pytest.approx(body * (1 + 4 / 16_384) + 2 * tables, rel=1e-3)


def test_experts_dealt_out_whole() -> None:
    part = Part(name="experts.up", parameters=64 * 10, what="experts", split="experts", ways=64)
    assert rank_parameters(part, Parallel(tensor=4)) == 160
    assert rank_parameters(part, Parallel(tensor=4, expert=4)) == 160
    assert rank_parameters(part, Parallel(tensor=1, data=16, expert=16)) == 40
    assert rank_parameters(part, Parallel(tensor=1, expert=24)) == 30
    assert rank_parameters(part, Parallel(tensor=8, expert=4)) == 80


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
@given(tensor=st.sampled_from([1, 2, 4, 8, 16]), name=st.sampled_from(sorted(PRECISIONS)))
def test_a_rank_holds_no_less_than_its_share(shape: Shape, tensor: int, name: str) -> None:
    whole, one = weight_bytes(shape, name), weight_bytes(shape, name, Parallel(tensor=tensor))
    assert whole / tensor * (1 - 1e-12) <= one <= whole


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_more_bits_take_no_less(shape: Shape) -> None:
    plain = [row for row in PRECISIONS.values() if row.mix is None and row.expert_bits is None]
    ordered = sorted(plain, key=lambda row: (row.linear_bits, row.table_bits))
    sizes = [weight_bytes(shape, row) for row in ordered]
    assert sizes == sorted(sizes)
    assert weight_bytes(shape, "mxfp4") <= weight_bytes(shape, "mxfp4_experts") <= weight_bytes(shape, "bf16")


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    size = st.integers(1, 512)
    kv_heads, group = draw(st.integers(1, 8)), draw(st.integers(1, 4))
    mixer = Attention(heads=kv_heads * group, kv_heads=kv_heads, head_dim=draw(size), qk_norm=draw(st.booleans()))
    experts = draw(st.integers(1, 16))
    routed = Experts(experts=experts, per_token=draw(st.integers(1, experts)), intermediate=draw(size))
    kinds = (Block(mixer=mixer, feed_forward=Dense(intermediate=draw(size))), Block(mixer=mixer, feed_forward=routed))
    order = tuple(draw(st.lists(st.integers(0, 1), min_size=1, max_size=12)))
    return Shape(name="s", hidden=draw(size), vocab=draw(size), kinds=kinds, order=order, tied=draw(st.booleans()))


@given(shape=shapes(), pipeline=st.integers(1, 4), tensor=st.sampled_from([1, 2, 4]))
def test_stages_hold_the_whole(shape: Shape, pipeline: int, tensor: int) -> None:
    if pipeline > shape.layers:
        return
    split = Parallel(tensor=tensor, pipeline=pipeline)
    held = sum(stage_weight_bytes(shape, "bf16", split)) * tensor
    copied = 2 * shape.vocab * shape.hidden if shape.tied and pipeline > 1 else 0
    assert held >= (2 * parameters(shape) + copied) * (1 - 1e-12)


def test_a_precision_by_name_or_as_a_row() -> None:
    assert weight_bytes(LLAMA_8B, precision_of("int8")) == weight_bytes(LLAMA_8B, "w8a8")
