"""The shape of a model: its layers by kind, its vocabulary, what it ties; all that memory and time follow from.

Values only. Where a shape was read (a table, a config, a header) is `sources/models`' part; how many parameters it has
is `parameters`', what it caches `kv`'s.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec


class Attention(msgspec.Struct, frozen=True, kw_only=True, tag="attention"):
    """Softmax attention with a cached key and value per KV head: MHA (kv_heads = heads), GQA, MQA (kv_heads = 1)."""

    heads: int
    kv_heads: int
    head_dim: int
    """As stated; hidden / heads only where a config states none (it differs in Qwen3, Mistral-Nemo, Gemma, gpt-oss)."""
    window: int | None = None
    """The tokens a layer looks back; None = all."""
    qkv_bias: bool = False
    out_bias: bool = False
    qk_norm: bool = False
    """A norm of the width of a head on query and key."""
    wide_norm: bool = False
    """That norm is as wide as all heads together."""
    output_gate: bool = False
    """The query projection also makes a gate of the same width."""
    sinks: bool = False


class Latent(msgspec.Struct, frozen=True, kw_only=True, tag="latent"):
    """Multi-head latent attention (MLA): one compressed vector and one rotary key per token, shared by all heads."""

    heads: int
    kv_rank: int
    rope_dim: int
    nope_dim: int
    value_dim: int
    query_rank: int | None = None
    """None = queries are not compressed."""
    index_heads: int = 0
    index_dim: int = 0
    """A sparse indexer beside it: its heads and the width of its cached key; 0 = none."""


class Recurrent(msgspec.Struct, frozen=True, kw_only=True, tag="recurrent"):
    """A linear-attention or state-space layer: a state of fixed size per sequence, nothing per token."""

    kind: str
    parameters: int
    state_elements: int
    convolution_elements: int = 0
    """Of these, what is kept in the model's own precision: the inputs of a short convolution."""
    state_bytes: float | None = None
    """Of an element of the rest, where the model says so (`mamba_ssm_dtype`); None = as the engine chooses."""


Mixer = Attention | Latent | Recurrent


class Dense(msgspec.Struct, frozen=True, kw_only=True, tag="dense"):
    """A feed-forward layer; `gated` ones have three matrices, others two."""

    intermediate: int
    gated: bool = True
    bias: bool = False


class Experts(msgspec.Struct, frozen=True, kw_only=True, tag="experts"):
    """A mixture of experts: `per_token` of `experts` are read for a token, the shared part always."""

    experts: int
    per_token: int
    intermediate: int
    shared_intermediate: int = 0
    """The width of the shared experts together; 0 = none."""
    shared_gate: bool = False
    gated: bool = True
    """Three matrices an expert; else two."""
    bias: bool = False
    router_bias: bool = False


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of layer. `mixer` or `feed_forward` is None where the layer has none."""

    mixer: Mixer | None
    feed_forward: Dense | Experts | None
    norms: int = 2
    """Norm vectors of the hidden width."""
    norm_bias: bool = False


class Extra(msgspec.Struct, frozen=True, kw_only=True):
    """A part beside the language model, such as a vision tower or a draft layer; `parameters` None = not known."""

    name: str
    parameters: int | None
    loaded: bool
    """Whether an engine keeps it in memory while it serves text."""


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """A decoder. `order` names the kind of each layer: an index into `kinds` for layer 0, 1, ..."""

    name: str
    hidden: int
    vocab: int
    kinds: tuple[Block, ...]
    order: tuple[int, ...]
    tied: bool
    """The output head is the input embedding."""
    head_bias: bool = False
    final_norm_bias: bool = False
    max_context: int | None = None
    dtype: str = "bf16"
    """The precision the weights are published in: a name of `precision.PRECISIONS`."""
    extras: tuple[Extra, ...] = ()
    source: str = ""
    left_out: tuple[str, ...] = ()
    """Slugs of what the shape has and this one does not count."""

    @property
    def layers(self) -> int:
        """How many."""
        return len(self.order)

    def counted(self, start: int = 0, stop: int | None = None) -> tuple[tuple[Block, int], ...]:
        """Each kind among the layers `start` to `stop`, with how many of them there are."""
        return _counted(self.kinds, self.order, start, stop)


@lru_cache(maxsize=512)
def _counted(
    kinds: tuple[Block, ...], order: tuple[int, ...], start: int, stop: int | None
) -> tuple[tuple[Block, int], ...]:
    part = order[start:stop]
    return tuple((kind, n) for i, kind in enumerate(kinds) if (n := part.count(i)))
