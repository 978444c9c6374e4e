from __future__ import annotations

import pytest
from tests.unit.plan.questions import LLAMA_1B
from tests.unit.plan.shapes import DEEPSEEK_V2_LITE, GEMMA3_12B, LLAMA_8B

from nilometer.plan.advice.drafters import NGRAM, Drafter, draft_model, head
from nilometer.plan.model.parameters import parameters
from nilometer.plan.model.precision import precision_of
from nilometer.plan.model.shape import Dense


def test_looking_back_needs_no_memory_and_hardly_any_time() -> None:
    assert (NGRAM.weights_bytes, NGRAM.kv_bytes_per_token, NGRAM.shape, NGRAM.heads) == (0, 0, None, None)
    assert NGRAM.share <= 0.01


def test_a_head_is_one_layer_of_the_model() -> None:
    """Queries and output 4096 x 4096 each, keys and values 4096 x 1024, three of 4096 x 14336, norms; 16 bits."""
    made = head(LLAMA_8B)
    layer = 2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14_336
    assert made.weights_bytes == pytest.approx(2 * (layer + 3 * 4096))
    assert made.kv_bytes_per_token == 131_072 / 32
    assert made.shape is not None
    assert made.shape.layers == 1


def test_the_head_of_a_mixture_is_as_wide_as_a_tokens_experts() -> None:
    made = head(DEEPSEEK_V2_LITE).shape
    assert made is not None
    wide = made.kinds[0].feed_forward
    assert isinstance(wide, Dense)
    assert wide.intermediate == 6 * 1408 + 2816


def test_the_head_of_a_model_of_several_kinds_is_of_its_last() -> None:
    made = head(GEMMA3_12B).shape
    assert made is not None
    assert made.kinds == (GEMMA3_12B.kinds[1],)
    assert not made.tied


def test_a_draft_model_brings_all_of_its_weights() -> None:
    made = draft_model(LLAMA_1B)
    assert made.weights_bytes == 2 * parameters(LLAMA_1B)
    assert made.kv_bytes_per_token == 2 * 16 * 8 * 64 * 2
    assert made.heads == 32
    assert draft_model(LLAMA_1B, precision_of("int4")).weights_bytes < 0.6 * made.weights_bytes


@pytest.mark.parametrize("drafter", [NGRAM, head(LLAMA_8B), draft_model(LLAMA_1B)], ids=lambda one: one.method)
def test_every_range_says_where_it_was_seen(drafter: Drafter) -> None:
    assert 0 < drafter.acceptance.low < drafter.acceptance.mid < drafter.acceptance.high < 1
    assert drafter.acceptance_source
    assert drafter.cost_source
