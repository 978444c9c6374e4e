"""Counts against ones worked out by hand from the published numbers of a model, and laws of the parts."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.plan.shapes import DEEPSEEK_V2_LITE, GEMMA3_12B, LLAMA_8B

from nilometer.plan.model.parameters import active_parameters, covered, parameters, parts
from nilometer.plan.model.shape import Attention, Block, Dense, Experts, Extra, Latent, Shape

_MLA = Latent(heads=128, kv_rank=512, rope_dim=64, nope_dim=128, value_dim=128, query_rank=1536)
DEEPSEEK_V3 = Shape(
    name="DeepSeek-V3",
    hidden=7168,
    vocab=129_280,
    kinds=(
        Block(mixer=_MLA, feed_forward=Dense(intermediate=18_432)),
        Block(
            mixer=_MLA,
            feed_forward=Experts(
                experts=256, per_token=8, intermediate=2048, shared_intermediate=2048, router_bias=True
            ),
        ),
    ),
    order=(0,) * 3 + (1,) * 58,
    tied=False,
)
_GPT_OSS = Experts(experts=32, per_token=4, intermediate=2880, bias=True, router_bias=True)
GPT_OSS_20B = Shape(
    name="gpt-oss-20b",
    hidden=2880,
    vocab=201_088,
    kinds=(
        Block(
            mixer=Attention(heads=64, kv_heads=8, head_dim=64, qkv_bias=True, out_bias=True, sinks=True),
            feed_forward=_GPT_OSS,
        ),
    ),
    order=(0,) * 24,
    tied=False,
    dtype="mxfp4_experts",
)


def test_llama_3_1_8b_by_hand() -> None:
    attention = 4096 * 4096 + 2 * 4096 * 1024 + 4096 * 4096
    layer = attention + 3 * 4096 * 14_336 + 2 * 4096
    total = 2 * 128_256 * 4096 + 32 * layer + 4096
    assert parameters(LLAMA_8B) == total == 8_030_261_248


def test_deepseek_v3_by_hand() -> None:
    query = 7168 * 1536 + 1536 + 1536 * 128 * (128 + 64)
    key_value = 7168 * (512 + 64) + 512 + 512 * 128 * (128 + 128)
    attention = query + key_value + 128 * 128 * 7168
    dense = 3 * 7168 * 18_432
    sparse = 7168 * 256 + 256 + 3 * 7168 * 2048 * (256 + 1)
    total = 2 * 129_280 * 7168 + 61 * (attention + 2 * 7168) + 3 * dense + 58 * sparse + 7168
    assert parameters(DEEPSEEK_V3) == total
    assert total == pytest.approx(671e9, rel=1e-3)
    active = total - 58 * 3 * 7168 * 2048 * (256 - 8)
    assert active_parameters(DEEPSEEK_V3) == pytest.approx(active)
    assert active == pytest.approx(37.5e9, rel=2e-3)


def test_gpt_oss_20b_with_its_biases_and_sinks() -> None:
    attention = 2 * 2880 * 4096 + 2 * 2880 * 512 + (4096 + 2 * 512) + 2880 + 64
    experts = 32 * (3 * 2880 * 2880 + 3 * 2880)
    layer = attention + experts + 32 * 2880 + 32 + 2 * 2880
    assert parameters(GPT_OSS_20B) == 2 * 201_088 * 2880 + 24 * layer + 2880 == 20_914_757_184


def test_a_tied_head_counts_once_and_is_read() -> None:
    tables = [part for part in parts(GEMMA3_12B) if part.what in {"embedding", "head"}]
    assert [(part.what, part.read, part.parameters) for part in tables] == [("embedding", "always", 262_208 * 3840)]


def test_a_tied_head_on_another_stage_is_a_copy() -> None:
    first, last = parts(GEMMA3_12B, 0, 24), parts(GEMMA3_12B, 24, 48)
    assert [part.read for part in first if part.what == "embedding"] == ["row"]
    assert [part.parameters for part in last if part.what == "head"] == [262_208 * 3840]
    both = sum(part.parameters for part in (*first, *last))
    assert both == parameters(GEMMA3_12B) + 262_208 * 3840


@pytest.mark.parametrize("shape", [LLAMA_8B, DEEPSEEK_V3, GPT_OSS_20B, DEEPSEEK_V2_LITE], ids=lambda shape: shape.name)
@given(cut=st.integers(1, 23))
def test_stages_add_up(shape: Shape, cut: int) -> None:
    halves = [sum(part.parameters for part in parts(shape, *span)) for span in ((0, cut), (cut, None))]
    assert sum(halves) == parameters(shape)


def test_biases_norms_and_gates_of_each_sort() -> None:
    mixer = Attention(heads=4, kv_heads=2, head_dim=8, qkv_bias=True, output_gate=True, wide_norm=True)
    block = Block(mixer=mixer, feed_forward=Dense(intermediate=64, gated=False, bias=True), norms=4, norm_bias=True)
    shape = Shape(
        name="s",
        hidden=16,
        vocab=10,
        kinds=(block,),
        order=(0,),
        tied=True,
        head_bias=True,
        final_norm_bias=True,
        extras=(
            Extra(name="vision", parameters=7, loaded=True),
            Extra(name="draft", parameters=11, loaded=False),
            Extra(name="audio", parameters=None, loaded=True),
        ),
    )
    found = {part.name: part.parameters for part in parts(shape)}
    assert found["attention.query"] == 16 * 32 * 2
    assert found["attention.bias"] == 64 + 32
    assert found["attention.norm"] == 32 + 16
    assert found["feed_forward.up"] == 16 * 64
    assert found["feed_forward.bias"] == 64 + 16
    assert found["norm"] == 4 * 2 * 16 + 2 * 16
    assert found["head.bias"] == 10
    assert found["vision"] == 7
    assert "draft" not in found
    assert "audio" not in found


def test_a_layer_may_lack_a_mixer_or_a_feed_forward() -> None:
    kinds = (
        Block(mixer=None, feed_forward=Dense(intermediate=32, gated=False), norms=1),
        Block(mixer=Attention(heads=2, kv_heads=1, head_dim=4), feed_forward=None, norms=1),
    )
    shape = Shape(name="s", hidden=8, vocab=2, kinds=kinds, order=(0, 1), tied=True)
    assert parameters(shape) == 2 * 8 + (2 * 8 * 32 + 8) + (8 * 8 * 2 + 2 * 8 * 4 + 8) + 8


def test_two_matrices_an_expert_and_a_gate_of_the_shared() -> None:
    experts = Experts(experts=4, per_token=1, intermediate=6, gated=False, shared_intermediate=10, shared_gate=True)
    shape = Shape(name="s", hidden=8, vocab=2, kinds=(Block(mixer=None, feed_forward=experts),), order=(0,), tied=True)
    found = {part.name: part.parameters for part in parts(shape)}
    assert found["experts.up"] == found["experts.down"] == 4 * 8 * 6
    assert found["shared.up"] == found["shared.down"] == 8 * 10
    assert found["shared.gate"] == 8


@given(tokens=st.integers(1, 4096))
def test_more_tokens_make_use_of_no_fewer_experts(tokens: int) -> None:
    less, more = active_parameters(DEEPSEEK_V3, tokens), active_parameters(DEEPSEEK_V3, tokens + 1)
    assert less <= more <= parameters(DEEPSEEK_V3)


def test_the_share_of_experts_read() -> None:
    part = next(part for part in parts(DEEPSEEK_V3) if part.name == "experts.up")
    assert covered(part, 1) == pytest.approx(8 / 256)
    assert covered(part, 32) == pytest.approx(1 - (31 / 32) ** 32)
    assert covered(msgspec.structs.replace(part, read="always"), 1) == 1
