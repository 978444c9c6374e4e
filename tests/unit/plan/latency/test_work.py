"""By hand: a layer of Llama-3.1-8B has 2 x 4096^2 + 2 x 4096 x 1024 + 3 x 4096 x 14336 weights, its head 525 M."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.unit.plan.shapes import DEEPSEEK_V2_LITE, LLAMA_8B

from nilometer.plan.devices import device
from nilometer.plan.latency.work import Setup, decode_work, multiplied, prefill_work, weights_read
from nilometer.plan.memory.kv import cache_precision
from nilometer.plan.model.parallel import Parallel
from nilometer.plan.model.precision import precision_of
from nilometer.plan.model.shape import Attention, Block, Experts, Shape
from nilometer.sources.models.known import look_up, shape_of_row

BODY = 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336)
HEAD = 128_256 * 4096
SETUP = Setup(shape=LLAMA_8B, device=device("h100"), precision=precision_of("bf16"))

EXPERTS = Shape(
    name="experts",
    hidden=8,
    vocab=16,
    kinds=(
        Block(
            mixer=Attention(heads=2, kv_heads=1, head_dim=4),
            feed_forward=Experts(experts=64, per_token=8, intermediate=4),
        ),
    ),
    order=(0, 0),
    tied=False,
)
ONE_EXPERT = 3 * 8 * 4


def test_a_step_reads_every_weight_but_the_embedding() -> None:
    norms = 65 * 4096
    assert weights_read(SETUP, 1) == 2 * (BODY + HEAD + norms)
    assert weights_read(SETUP, 256) == weights_read(SETUP, 1)
    assert multiplied(SETUP) == BODY + HEAD


def test_a_decode_step_by_hand() -> None:
    work = decode_work(SETUP, 16, 2048)
    assert work.cache_bytes == 16 * 2048 * 131_072
    assert work.operations == 2 * 16 * (BODY + HEAD)
    assert work.attention_operations == 16 * 32 * 4 * 32 * 128 * 2048
    assert (work.reduces, work.sent_bytes) == (0, 0)


def test_a_prefill_by_hand() -> None:
    """2 P n, the head for the last token alone, and 4 L heads dim n (n / 2 + prior)."""
    work = prefill_work(SETUP, 1000, prior=500)
    assert work.operations == 2 * 1000 * BODY + 2 * HEAD
    assert work.attention_operations == 1000 * 32 * 4 * 32 * 128 * (500 + 500)


def test_tensor_ranks_divide_and_reduce_twice_a_layer() -> None:
    two = replace(SETUP, parallel=Parallel(tensor=2))
    assert multiplied(two) == (BODY + HEAD) / 2
    work = decode_work(two, 16, 2048)
    assert work.reduces == 64
    assert work.sent_bytes == 64 * 2 * (1 / 2) * 16 * 4096 * 2


@pytest.mark.parametrize(("batch", "share"), [(1, 1 / 8), (2, 1 - (7 / 8) ** 2), (32, 1 - (7 / 8) ** 32)])
def test_the_experts_that_a_batch_covers(batch: int, share: float) -> None:
    setup = replace(SETUP, shape=EXPERTS)
    rest = weights_read(setup, 10**6) - 2 * 2 * 64 * ONE_EXPERT
    assert weights_read(setup, batch) - rest == pytest.approx(2 * 2 * 64 * ONE_EXPERT * share)
    assert multiplied(setup, experts=True) == 2 * 8 * ONE_EXPERT


def test_ranks_that_share_experts_choose_for_all_their_tokens() -> None:
    """Eight copies of the attention, 4 tokens each: 32 tokens choose among the 64 experts, 8 of which a rank reads."""
    setup = replace(SETUP, shape=EXPERTS, parallel=Parallel(data=8, expert=8))
    every = 2 * 2 * 64 * ONE_EXPERT / 8
    rest = weights_read(setup, 10**6) - every
    assert weights_read(setup, 4) - rest == pytest.approx(every * (1 - (7 / 8) ** 32))
    work = decode_work(setup, 4, 100)
    assert work.reduces == 2 * 2
    assert work.sent_bytes == 2 * 2 * 8 * (7 / 8) * 4 * 8 * 2


def test_a_latent_decode_works_on_compressed_vectors() -> None:
    setup = replace(SETUP, shape=DEEPSEEK_V2_LITE)
    assert decode_work(setup, 1, 100).attention_operations == 27 * 2 * 16 * (2 * 512 + 64) * 100
    assert prefill_work(setup, 200).attention_operations == 200 * 27 * 2 * 16 * (128 + 64 + 128) * 100


def test_a_window_bounds_what_is_attended() -> None:
    block = Block(mixer=Attention(heads=2, kv_heads=1, head_dim=4, window=10), feed_forward=None)
    setup = replace(SETUP, shape=replace(EXPERTS, kinds=(block,)), cached=cache_precision("fp8"))
    assert decode_work(setup, 1, 1000).attention_operations == 2 * 4 * 2 * 4 * 10
    assert decode_work(setup, 1, 1000).cache_bytes == 2 * 2 * 4 * 10


@pytest.mark.parametrize("prior", [0, 4, 10, 500])
@pytest.mark.parametrize("tokens", [1, 6, 10, 40, 1000])
def test_a_prompt_looks_back_through_a_window(prior: int, tokens: int) -> None:
    """Counted token by token: the i-th sees what stands before it, at most the window (half a token for itself)."""
    block = Block(mixer=Attention(heads=2, kv_heads=1, head_dim=4, window=10), feed_forward=None)
    setup = replace(SETUP, shape=replace(EXPERTS, kinds=(block,)))
    seen = sum(min(prior + i + 0.5, 10) for i in range(tokens))
    assert prefill_work(setup, tokens, prior).attention_operations == pytest.approx(2 * 4 * 2 * 4 * seen)


def test_a_layer_of_one_part_is_reduced_once() -> None:
    """Nemotron-H: 23 mamba, 23 of experts and 6 of attention, each a layer of its own: 52 all-reduces, not 104."""
    shape = shape_of_row(look_up("nemotron-3-nano-30b-a3b").row)
    work = decode_work(replace(SETUP, shape=shape, parallel=Parallel(tensor=2)), 4, 100)
    assert work.reduces == 52
    assert work.sent_bytes == 52 * 2 * (1 / 2) * 4 * 2688 * 2
