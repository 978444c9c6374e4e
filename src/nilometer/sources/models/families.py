"""THE table of decoder families: attention and a feed-forward part in each layer, by what their configs leave unsaid.

Source of each row: transformers, `modeling_*.py` and `configuration_*.py` of its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from nilometer.plan.model.shape import Attention, Block, Dense, Experts, Extra, Shape

from .assemble import assemble, check_experts, draft_layers, head_dim, kv_heads
from .fields import Fields

Sparse = Callable[[Fields, int], Experts | None]
"""The experts of a layer; None where it has none."""
Said = bool | str
"""Yes, no, or the field that says it."""
DRAFT_TABLES = 2
"""Most files hold the embedding and the head once more with a draft layer; `draft_tables` of `known.csv` says else."""


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """One row: what its models have in common."""

    norms: int = 2
    norm_bias: bool = False
    qkv_bias: Said = "attention_bias"
    out_bias: Said = "attention_bias"
    qk_norm: Said = False
    wide_norm: bool = False
    sinks: bool = False
    gated: bool = True
    mlp_bias: Said = "mlp_bias"
    tied: bool = False
    head_bias: bool = False
    every: int | None = None
    """Of so many layers the last looks at all tokens, the others at a window, where no list says so; 0 = none does."""
    window: str | None = "sliding_window"
    """The field of the window; None = it never has one."""
    sparse: Sparse | None = None
    positions: int | None = None
    """Learned positions: how many rows more than the longest context; None = it has none."""
    names: Mapping[str, str] = {}
    defaults: Mapping[str, object] = {}


def read(fields: Fields, family: Family, name: str) -> Shape:
    """The shape of a model of a family. DataError `model_field_missing`, `model_field_bad`, `model_fields_differ`."""
    fields = fields.told(family.names, family.defaults)
    layers = fields.layers()
    attend = _attention(fields, family)
    blocks = [
        Block(
            mixer=msgspec.structs.replace(attend, window=window),
            feed_forward=_feed_forward(fields, family, i),
            norms=family.norms,
            norm_bias=family.norm_bias,
        )
        for i, window in enumerate(windows(fields, family, layers))
    ]
    return assemble(
        fields,
        blocks,
        name=name,
        tied=family.tied,
        head_bias=family.head_bias,
        final_norm_bias=family.norm_bias,
        extras=(*_positions(fields, family), *_drafts(fields, blocks[-1])),
    )


def _said(fields: Fields, told: Said) -> bool:
    return told if isinstance(told, bool) else fields.flag(told)


def _attention(fields: Fields, family: Family) -> Attention:
    heads = fields.whole("num_attention_heads")
    return Attention(
        heads=heads,
        kv_heads=kv_heads(fields, heads),
        head_dim=head_dim(fields, heads),
        qkv_bias=_said(fields, family.qkv_bias),
        out_bias=_said(fields, family.out_bias),
        qk_norm=_said(fields, family.qk_norm),
        wide_norm=family.wide_norm,
        sinks=family.sinks,
    )


def _feed_forward(fields: Fields, family: Family, layer: int) -> Dense | Experts:
    experts = family.sparse(fields, layer) if family.sparse else None
    if experts is not None:
        return check_experts(fields, experts)
    wide = fields.maybe("intermediate_size_mlp", "intermediate_size")
    if wide is None and "intermediate_size" in family.names:
        wide = 4 * fields.whole("hidden_size")
    return Dense(
        intermediate=wide or fields.whole("intermediate_size"),
        gated=family.gated,
        bias=_said(fields, family.mlp_bias),
    )


def windows(fields: Fields, family: Family, layers: int) -> Sequence[int | None]:
    """What each layer looks back: by the list of the config, else by the family's pattern."""
    wide = None if family.window is None else fields.maybe(family.window, least=0)
    longest = fields.maybe("max_position_embeddings")
    if not wide or not fields.flag("use_sliding_window", default=True) or (longest and wide >= longest):
        wide = None
    kinds = fields.words("layer_types", layers)
    if kinds is not None:
        return [wide if kind in {"sliding_attention", "chunked_attention"} else None for kind in kinds]
    ropes = fields.numbers("no_rope_layers")
    if ropes and family.window == "attention_chunk_size":
        if len(ropes) != layers:
            raise fields.differ("len(no_rope_layers)", len(ropes), "num_hidden_layers", layers)
        return [wide if rope else None for rope in ropes]
    every = fields.maybe("sliding_window_pattern", "_sliding_window_pattern", least=0)
    every = family.every if every is None else every
    from_layer = fields.whole("max_window_layers", default=0, least=0)
    if every is None:
        return [wide if i >= from_layer else None for i in range(layers)]
    return [wide if every == 0 or (i + 1) % every else None for i in range(layers)]


def _positions(fields: Fields, family: Family) -> tuple[Extra, ...]:
    if family.positions is None:
        return ()
    rows = fields.whole("max_position_embeddings") + family.positions
    return (Extra(name="positions", parameters=rows * fields.whole("hidden_size"), loaded=True),)


def _drafts(fields: Fields, last: Block) -> tuple[Extra, ...]:
    count = fields.whole("num_nextn_predict_layers", default=0, least=0)
    return draft_layers(fields, count, last, tables=DRAFT_TABLES)


def mixtral_experts(fields: Fields, _layer: int) -> Experts:
    """Of Mixtral, Phi-3.5-MoE: all layers, as wide as `intermediate_size`."""
    return Experts(
        experts=fields.whole("num_local_experts", "num_experts"),
        per_token=fields.whole("num_experts_per_tok"),
        intermediate=fields.whole("moe_intermediate_size", "intermediate_size"),
    )


def qwen_experts(fields: Fields, layer: int) -> Experts | None:
    """Of Qwen2-MoE and Qwen3-MoE: every `decoder_sparse_step`-th layer but `mlp_only_layers`."""
    if not fields.maybe("num_experts", least=0):
        return None
    step = fields.whole("decoder_sparse_step", default=1)
    if layer in (fields.numbers("mlp_only_layers") or ()) or (layer + 1) % step:
        return None
    shared = fields.whole("shared_expert_intermediate_size", default=0, least=0)
    return Experts(
        experts=fields.whole("num_experts"),
        per_token=fields.whole("num_experts_per_tok"),
        intermediate=fields.whole("moe_intermediate_size"),
        shared_intermediate=shared,
        shared_gate=shared > 0,
    )


def deepseek_experts(fields: Fields, layer: int) -> Experts | None:
    """Of DeepSeek, Kimi and GLM: dense layers first, shared experts beside the routed ones."""
    if not fields.maybe("n_routed_experts", least=0):
        return None
    kinds = fields.words("mlp_layer_types", fields.layers())
    first = fields.whole("first_k_dense_replace", default=0, least=0)
    step = fields.whole("moe_layer_freq", default=1)
    if (kinds is not None and kinds[layer] == "dense") or (kinds is None and (layer < first or layer % step)):
        return None
    width = fields.whole("moe_intermediate_size")
    return Experts(
        experts=fields.whole("n_routed_experts"),
        per_token=fields.whole("num_experts_per_tok"),
        intermediate=width,
        shared_intermediate=width * fields.whole("n_shared_experts", default=0, least=0),
        router_bias=fields.word("topk_method") in {None, "noaux_tc"},
    )


def gpt_oss_experts(fields: Fields, _layer: int) -> Experts:
    """Biases on the experts and on the router."""
    return Experts(
        experts=fields.whole("num_local_experts"),
        per_token=fields.whole("num_experts_per_tok", "experts_per_token"),
        intermediate=fields.whole("intermediate_size"),
        bias=True,
        router_bias=True,
    )


def minimax_experts(fields: Fields, _layer: int) -> Experts:
    """Of MiniMax-M2: a bias for routing."""
    return Experts(
        experts=fields.whole("num_local_experts"),
        per_token=fields.whole("num_experts_per_tok"),
        intermediate=fields.whole("intermediate_size"),
        router_bias=fields.flag("use_routing_bias", default=True),
    )


def llama4_experts(fields: Fields, layer: int) -> Experts | None:
    """Every `interleave_moe_layer_step`-th layer, with one shared expert as wide as the others."""
    listed = fields.numbers("moe_layers")
    step = fields.whole("interleave_moe_layer_step", default=1)
    if (layer not in listed) if listed is not None else (layer + 1) % step:
        return None
    width = fields.whole("intermediate_size")
    return Experts(
        experts=fields.whole("num_local_experts"),
        per_token=fields.whole("num_experts_per_tok"),
        intermediate=width,
        shared_intermediate=width,
    )


_GPT2_NAMES = {
    "hidden_size": "n_embd",
    "num_hidden_layers": "n_layer",
    "num_attention_heads": "n_head",
    "max_position_embeddings": "n_positions",
    "intermediate_size": "n_inner",
}
_PLAIN = Family(norm_bias=True, gated=False, mlp_bias=True, qkv_bias=True, out_bias=True, window=None)
_GEMMA = Family(tied=True, mlp_bias=False)
_but = msgspec.structs.replace

FAMILIES: Mapping[str, Family] = {
    "llama": Family(window=None),
    "mistral": Family(mlp_bias=False),
    "ministral3": Family(mlp_bias=False),
    "mixtral": Family(sparse=mixtral_experts),
    "qwen2": Family(qkv_bias=True, out_bias=False, mlp_bias=False, defaults={"use_sliding_window": False}),
    "qwen2_moe": Family(
        qkv_bias=True,
        out_bias=False,
        mlp_bias=False,
        sparse=qwen_experts,
        defaults={"use_sliding_window": False},
    ),
    "qwen3": Family(qk_norm=True, defaults={"use_sliding_window": False, "head_dim": 128}),
    "qwen3_moe": Family(qk_norm=True, sparse=qwen_experts, defaults={"use_sliding_window": False}),
    "gemma": _but(_GEMMA, window=None, defaults={"head_dim": 256}),
    "gemma2": _but(_GEMMA, norms=4, every=2, defaults={"head_dim": 256, "sliding_window": 4096}),
    "gemma3_text": _but(
        _GEMMA,
        norms=4,
        qk_norm=True,
        every=6,
        defaults={
            "vocab_size": 262_208,
            "num_attention_heads": 8,
            "num_key_value_heads": 4,
            "head_dim": 256,
            "max_position_embeddings": 131_072,
            "sliding_window": 4096,
        },
    ),
    "phi": _but(_PLAIN, norms=1, head_bias=True),
    "phi3": Family(mlp_bias=False),
    "phimoe": Family(norm_bias=True, head_bias=True, sparse=mixtral_experts),
    "glm": Family(qkv_bias="attention_bias", out_bias=False, mlp_bias=False),
    "glm4": Family(norms=4, out_bias=False, mlp_bias=False),
    "glm4_moe": Family(out_bias=False, qk_norm="use_qk_norm", mlp_bias=False, sparse=deepseek_experts),
    "chatglm": Family(
        qkv_bias="add_qkv_bias",
        out_bias=False,
        mlp_bias=False,
        window=None,
        names={
            "num_hidden_layers": "num_layers",
            "num_key_value_heads": "multi_query_group_num",
            "head_dim": "kv_channels",
            "intermediate_size": "ffn_hidden_size",
            "vocab_size": "padded_vocab_size",
            "max_position_embeddings": "seq_length",
        },
    ),
    "granite": Family(tied=True, window=None),
    "granitemoe": Family(tied=True, window=None, sparse=mixtral_experts),
    "olmo2": Family(wide_norm=True, mlp_bias=False),
    "olmo3": Family(wide_norm=True, mlp_bias=False, every=4),
    "olmoe": Family(wide_norm=True, mlp_bias=False, sparse=mixtral_experts),
    "cohere": Family(norms=1, tied=True, mlp_bias=False, window=None),
    "cohere2": Family(norms=1, tied=True, mlp_bias=False, every=4),
    "smollm3": Family(tied=True, defaults={"use_sliding_window": False}),
    "internlm2": Family(qkv_bias="bias", out_bias="bias", mlp_bias=False, window=None),
    "minimax_m2": Family(wide_norm=True, window=None, sparse=minimax_experts),
    "gpt_oss": Family(sinks=True, qkv_bias=True, out_bias=True, every=2, sparse=gpt_oss_experts),
    "llama4_text": Family(window="attention_chunk_size", every=4, sparse=llama4_experts),
    "seed_oss": Family(qkv_bias="attention_bias", out_bias="attention_out_bias", window=None),
    "gpt2": _but(_PLAIN, tied=True, positions=0, names=_GPT2_NAMES),
    "gpt_neox": _but(_PLAIN, window=None),
    "opt": _but(_PLAIN, tied=True, positions=2, names={"intermediate_size": "ffn_dim"}),
}
"""By `model_type` of the config (of its text part where it has several)."""
