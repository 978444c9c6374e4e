"""How layers are dealt to the stages of a pipeline, heads and experts to ranks, as vLLM deals them."""

from __future__ import annotations

import pytest
from tests.unit.plan.shapes import dense

from nilometer.core.errors import SpecError
from nilometer.plan.model.parallel import Parallel, check_experts, stage_bounds, stage_layers, undealt_heads


def test_devices_are_counted() -> None:
    assert Parallel(tensor=4, pipeline=2, data=3).devices == 24


def test_stages_are_dealt_as_vllm_deals_them() -> None:
    assert stage_layers(32, 4) == (8, 8, 8, 8)
    assert stage_layers(61, 4) == (15, 15, 16, 15)
    assert stage_layers(63, 4) == (16, 16, 16, 15)
    assert stage_bounds(5, 2) == ((0, 3), (3, 5))


@pytest.mark.parametrize("stages", [5, 0])
def test_no_stage_is_without_a_layer(stages: int) -> None:
    with pytest.raises(SpecError) as refused:
        stage_layers(4, stages)
    assert refused.value.slug == "pipeline_too_long"


@pytest.mark.parametrize(
    ("heads", "kv_heads", "tensor", "bad"),
    [
        (32, 8, 8, None),
        (32, 8, 16, None),
        (32, 8, 5, 32),
        (28, 4, 7, 4),
        (9, 3, 3, None),
        (24, 12, 8, 12),
        (71, 1, 71, None),
    ],
)
def test_heads_that_ranks_cannot_share_out(heads: int, kv_heads: int, tensor: int, bad: int | None) -> None:
    """Query heads evenly; KV heads evenly, or a whole number of ranks to each (vLLM asserts both at start)."""
    shape = dense(2, 64, 64, 64, heads=heads, kv_heads=kv_heads)
    assert undealt_heads(shape, tensor) == bad


@pytest.mark.parametrize("split", [(1, 1, 8), (8, 1, 3), (8, 1, 16), (2, 4, 16), (6, 1, 4), (2, 3, 4)])
def test_experts_are_dealt_to_devices_that_there_are(split: tuple[int, int, int]) -> None:
    tensor, data, expert = split
    with pytest.raises(SpecError, match="expert_not_dividing"):
        check_experts(Parallel(tensor=tensor, data=data, expert=expert))


@pytest.mark.parametrize("split", [(1, 1, 1), (8, 1, 8), (8, 1, 4), (1, 8, 8), (2, 4, 8), (4, 2, 8)])
def test_experts_that_go_into_the_devices(split: tuple[int, int, int]) -> None:
    tensor, data, expert = split
    made = Parallel(tensor=tensor, data=data, expert=expert)
    check_experts(made)
    assert made.sharing == max(1, expert // tensor)
