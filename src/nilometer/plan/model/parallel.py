"""How a model is spread over devices."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from nilometer.core.errors import SpecError


class Parallel(msgspec.Struct, frozen=True, kw_only=True):
    """`tensor` x `pipeline` devices hold one copy of the model, `data` such copies serve side by side.

    `expert`: over how many devices the experts are dealt out whole, rather than each being cut.
    """

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    expert: int = 1

    @property
    def devices(self) -> int:
        """All of them."""
        return self.tensor * self.pipeline * self.data


def stage_layers(layers: int, pipeline: int) -> Sequence[int]:
    """Layers of each pipeline stage as vLLM deals them: the rest goes to the stages before the last, from behind.

    SpecError where there are fewer layers than stages. Source: vLLM, `get_pp_indices`.
    """
    if pipeline < 1 or layers < pipeline:
        raise SpecError("pipeline_too_long", pipeline=pipeline, layers=layers)
    parts = [layers // pipeline] * pipeline
    for behind in range(2, layers % pipeline + 2):
        parts[-behind] += 1
    return tuple(parts)


def stage_bounds(layers: int, pipeline: int) -> tuple[tuple[int, int], ...]:
    """(first, one past the last) layer of each stage."""
    bounds, start = [], 0
    for count in stage_layers(layers, pipeline):
        bounds.append((start, start + count))
        start += count
    return tuple(bounds)
