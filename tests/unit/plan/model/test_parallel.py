"""How layers are dealt to the stages of a pipeline, as vLLM deals them."""

from __future__ import annotations

import pytest

from nilometer.core.errors import SpecError
from nilometer.plan.model.parallel import Parallel, stage_bounds, stage_layers


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
