"""What drafts tokens for a model: nothing but its own text, a head on its layers, or a small model beside it.

Acceptance is the chance that a drafted token is kept after kept ones. Each range says where it was seen: text decides
it more than the method, so one's own figure is always worth more.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from ..interval import Interval
from ..memory.kv import bytes_per_token, cache, cache_precision
from ..model.parameters import parts
from ..model.precision import Precision, part_bits, precision_of
from ..model.shape import Attention, Block, Dense, Experts, Latent, Shape
from ..model.weights import weight_bytes

Method = Literal["ngram", "head", "draft"]


class Drafter(msgspec.Struct, frozen=True, kw_only=True):
    """One. Without a shape a draft costs `share` of a step of the model."""

    method: Method
    acceptance: Interval
    acceptance_source: str
    cost_source: str
    shape: Shape | None = None
    precision: Precision | None = None
    share: float = 0.0
    weights_bytes: float = 0.0
    """What it needs in memory beside the model."""
    kv_bytes_per_token: float = 0.0

    @property
    def heads(self) -> int | None:
        """Attention heads, which tensor ranks must divide."""
        mixers = [] if self.shape is None else [block.mixer for block in self.shape.kinds]
        return next((mixer.heads for mixer in mixers if isinstance(mixer, Attention | Latent)), None)


NGRAM = Drafter(
    method="ngram",
    share=0.01,
    acceptance=Interval(0.08, 0.3, 0.97),
    acceptance_source=(
        "low and high: SmolLM2-135M on llama.cpp, ngram-simple, 8 drafted, per round of all rounds (96 tokens of free "
        "text: 8 kept of 36; of repetitive text: 84 of 84), December 2026; middle: set between them, not measured"
    ),
    cost_source="no model runs; 1 % of a step for the search is set, not measured",
)
"""Looks up in the text so far what followed the last words before."""

HEAD_ACCEPTANCE = Interval(0.52, 0.6, 0.77)
HEAD_ACCEPTANCE_SOURCE = (
    "EAGLE-3: gpt-oss-120b on vLLM 0.17, places kept 0.58, 0.31, 0.16 (aimosprite/inference-bench-results); head of a "
    "Qwen3.5 MoE, 0.71, 0.43, 0.26 (Ichigec/a1-agents-eagle3-speculator); high: what SGLang's 373 against 158 tokens/s "
    "for Llama-3.1-8B on an H100 stands for"
)
DRAFT_ACCEPTANCE = Interval(0.4, 0.65, 0.88)
DRAFT_ACCEPTANCE_SOURCE = (
    "high: Llama-3-8B for Llama-3-70B on llama.cpp, 58.7 % of 8 drafted kept (devquasar.com); low: creative text 40 to "
    "50 % (gigagpu.com); middle: set between them, not measured"
)


def head(shape: Shape, precision: Precision | None = None) -> Drafter:
    """An EAGLE-like head: one layer as wide as the model's, and the output head read for each draft.

    Of a mixture of experts the layer is taken as dense, as wide as the experts of a token. A head with a vocabulary
    of its own, smaller, costs less. Source: EAGLE (2401.15077), llama.cpp docs/speculative.md.
    """
    own = precision or precision_of("bf16")
    layer = msgspec.structs.replace(
        shape, name=f"head of {shape.name}", kinds=(_layer(shape),), order=(0,), tied=False, extras=()
    )
    return Drafter(
        method="head",
        shape=layer,
        precision=own,
        acceptance=HEAD_ACCEPTANCE,
        acceptance_source=HEAD_ACCEPTANCE_SOURCE,
        cost_source="one layer of the model's width and its output head, by the roofline",
        weights_bytes=_layer_bytes(layer, own),
        kv_bytes_per_token=bytes_per_token(cache(layer), cache_precision(dtype=own.name)),
    )


def _layer(shape: Shape) -> Block:
    last = next(
        (block for block in reversed(shape.kinds) if isinstance(block.mixer, Attention | Latent)), shape.kinds[-1]
    )
    wide = last.feed_forward
    if isinstance(wide, Experts):
        wide = Dense(intermediate=wide.per_token * wide.intermediate + wide.shared_intermediate, gated=wide.gated)
    return msgspec.structs.replace(last, feed_forward=wide)


def _layer_bytes(shape: Shape, precision: Precision) -> float:
    """Without embedding and output head: the model's own serve."""
    own = (part for part in parts(shape) if part.what not in {"embedding", "head"})
    return sum(part.parameters * part_bits(part, precision) / 8 for part in own)


def draft_model(shape: Shape, precision: Precision | None = None) -> Drafter:
    """A small model with the same tokenizer."""
    own = precision or precision_of(shape.dtype)
    return Drafter(
        method="draft",
        shape=shape,
        precision=own,
        acceptance=DRAFT_ACCEPTANCE,
        acceptance_source=DRAFT_ACCEPTANCE_SOURCE,
        cost_source="its decode step, by the roofline",
        weights_bytes=weight_bytes(shape, own),
        kv_bytes_per_token=bytes_per_token(cache(shape), cache_precision(dtype=own.name)),
    )
