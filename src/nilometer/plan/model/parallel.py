"""How a model is spread over devices."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from nilometer.core.errors import SpecError

from .shape import Attention, Latent, Shape


class Parallel(msgspec.Struct, frozen=True, kw_only=True):
    """`tensor` x `pipeline` devices hold one copy of the model, `data` such copies serve side by side.

    `expert`: over how many devices the experts are dealt out whole, rather than each being cut.
    """

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    expert: int = 1

    @property
    def sharing(self) -> int:
        """How many copies of the attention share one set of experts: these can only be started together."""
        return max(1, self.expert // self.tensor)

    @property
    def devices(self) -> int:
        """All of them."""
        return self.tensor * self.pipeline * self.data


def undealt_heads(shape: Shape, tensor: int) -> int | None:
    """The heads of a layer that so many tensor ranks cannot share out; None = they can, in every layer.

    Query heads go evenly to the ranks; KV heads do, or there are whole groups of ranks to a head, each with a copy.
    Source: vLLM, `QKVParallelLinear`, and the asserts of its attention layers.
    """
    for block in shape.kinds:
        mixer = block.mixer
        if isinstance(mixer, Attention | Latent) and mixer.heads % tensor:
            return mixer.heads
        if isinstance(mixer, Attention) and mixer.kv_heads % tensor and tensor % mixer.kv_heads:
            return mixer.kv_heads
    return None


def check_experts(parallel: Parallel) -> None:
    """Whole experts are dealt to the devices of the tensor ranks, or of these and of other copies' ranks.

    SpecError `expert_not_dividing` for more ranks than there are devices, or a number that does not go into them.
    """
    tensor, expert = parallel.tensor, parallel.expert
    if (tensor * parallel.data) % expert or (expert % tensor and tensor % expert):
        raise SpecError("expert_not_dividing", expert=expert, tensor=tensor, data=parallel.data)


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
