"""Models of which some layers keep a state instead of a cache.

Sources: transformers, `modeling_qwen3_next.py`, `modeling_nemotron_h.py`, `modeling_granitemoehybrid.py`,
`modeling_jamba.py`, `modeling_lfm2.py`.
"""

from __future__ import annotations

import msgspec

from nilometer.plan.memory.kv import element_bytes
from nilometer.plan.model.recurrent import gated_delta_net, mamba1, mamba2, short_convolution
from nilometer.plan.model.shape import Attention, Block, Dense, Experts, Recurrent, Shape

from .assemble import assemble, check_experts, draft_layers, plain_attention
from .families import qwen_experts
from .fields import Fields

_FULL = 4.0
"""Of a state of Nemotron-H whose config says nothing (vLLM, `NemotronHForCausalLMConfig`)."""


def qwen(fields: Fields, name: str) -> Shape:
    """Qwen3-Next and Qwen3.5: three layers of gated delta net to one of gated attention."""
    layers = fields.layers()
    interval = fields.whole("full_attention_interval", default=4)
    kinds = fields.words("layer_types", layers) or tuple(
        "linear_attention" if (i + 1) % interval else "full_attention" for i in range(layers)
    )
    gate = fields.flag("attn_output_gate", default=True)
    attend = msgspec.structs.replace(plain_attention(fields, qk_norm=True), output_gate=gate)
    state = gated_delta_net(
        fields.whole("hidden_size"),
        key_heads=fields.whole("linear_num_key_heads"),
        value_heads=fields.whole("linear_num_value_heads"),
        key_dim=fields.whole("linear_key_head_dim"),
        value_dim=fields.whole("linear_value_head_dim"),
        kernel=fields.whole("linear_conv_kernel_dim"),
    )
    state = msgspec.structs.replace(state, state_bytes=_state_bytes(fields, "mamba_ssm_dtype"))
    blocks = [
        Block(mixer=state if kind == "linear_attention" else attend, feed_forward=_qwen_feed_forward(fields, i))
        for i, kind in enumerate(kinds)
    ]
    drafts = fields.whole("mtp_num_hidden_layers", "num_nextn_predict_layers", default=0, least=0)
    last = msgspec.structs.replace(blocks[-1], mixer=attend)
    return assemble(fields, blocks, name=name, extras=draft_layers(fields, drafts, last, tables=0))


def _state_bytes(fields: Fields, field: str) -> float | None:
    """Of an element of the state as the config has it; None = nothing is said."""
    said = fields.word(field)
    return None if said is None else element_bytes(said)


def _qwen_feed_forward(fields: Fields, layer: int) -> Dense | Experts:
    experts = qwen_experts(fields, layer)
    return check_experts(fields, experts) if experts else Dense(intermediate=fields.whole("intermediate_size"))


def nemotron(fields: Fields, name: str) -> Shape:
    """Nemotron-H: a letter a layer in `hybrid_override_pattern`: M mamba, * attention, - dense, E experts."""
    layers = fields.layers()
    pattern = fields.word("hybrid_override_pattern")
    if pattern is None:
        fields.whole("hybrid_override_pattern")
    pattern = (pattern or "").replace("|", "")
    if len(pattern) != layers:
        raise fields.differ("len(hybrid_override_pattern)", len(pattern), "num_hidden_layers", layers)
    blocks = [_nemotron_block(fields, letter) for letter in pattern]
    return assemble(fields, blocks, name=name)


def _nemotron_block(fields: Fields, letter: str) -> Block:
    if letter == "M":
        said = _state_bytes(fields, "mamba_ssm_cache_dtype")
        state = msgspec.structs.replace(_mamba2(fields), state_bytes=_FULL if said is None else said)
        return Block(mixer=state, feed_forward=None, norms=1)
    if letter == "*":
        return Block(mixer=plain_attention(fields), feed_forward=None, norms=1)
    if letter == "-":
        dense = Dense(intermediate=fields.whole("intermediate_size"), gated=False, bias=fields.flag("mlp_bias"))
        return Block(mixer=None, feed_forward=dense, norms=1)
    if letter == "E":
        experts = Experts(
            experts=fields.whole("n_routed_experts"),
            per_token=fields.whole("num_experts_per_tok"),
            intermediate=fields.whole("moe_intermediate_size"),
            shared_intermediate=fields.whole("moe_shared_expert_intermediate_size", default=0, least=0),
            gated=False,
            router_bias=True,
        )
        return Block(mixer=None, feed_forward=check_experts(fields, experts), norms=1)
    raise fields.bad("hybrid_override_pattern", letter, "M, *, -, E")


def _mamba2(fields: Fields) -> Recurrent:
    hidden = fields.whole("hidden_size")
    heads = fields.whole("mamba_num_heads", "mamba_n_heads")
    dim = fields.maybe("mamba_head_dim", "mamba_d_head")
    if dim is None:
        dim = fields.whole("mamba_expand", default=2) * hidden // heads
    return mamba2(
        hidden,
        heads=heads,
        head_dim=dim,
        groups=fields.whole("n_groups", "mamba_n_groups"),
        state=fields.whole("ssm_state_size", "mamba_d_state"),
        kernel=fields.whole("conv_kernel", "mamba_d_conv", default=4),
        bias=fields.flag("mamba_proj_bias", default=fields.flag("use_bias")),
        convolution_bias=fields.flag("mamba_conv_bias", default=fields.flag("use_conv_bias", default=True)),
    )


def granite(fields: Fields, name: str) -> Shape:
    """Granite 4: mamba and attention layers, each with experts and a shared part, or with that part alone."""
    layers = fields.layers()
    kinds = fields.words("layer_types", layers) or ("attention",) * layers
    shared = fields.whole("shared_intermediate_size", default=0, least=0)
    part: Dense | Experts = Dense(intermediate=shared or fields.whole("intermediate_size"))
    if fields.maybe("num_local_experts", least=0):
        experts = Experts(
            experts=fields.whole("num_local_experts"),
            per_token=fields.whole("num_experts_per_tok"),
            intermediate=fields.whole("intermediate_size"),
            shared_intermediate=shared,
        )
        part = check_experts(fields, experts)
    attend = plain_attention(fields)
    state = _mamba2(fields) if "mamba" in kinds else None
    blocks = [Block(mixer=state if kind == "mamba" else attend, feed_forward=part) for kind in kinds]
    return assemble(fields, blocks, name=name, tied=True)


def jamba(fields: Fields, name: str) -> Shape:
    """Jamba: one attention layer a period, experts in every second layer."""
    hidden = fields.whole("hidden_size")
    every, at = fields.whole("attn_layer_period"), fields.whole("attn_layer_offset", least=0)
    sparse, first = fields.whole("expert_layer_period"), fields.whole("expert_layer_offset", least=0)
    rank = fields.get("mamba_dt_rank")
    state = mamba1(
        hidden,
        inner=fields.whole("mamba_expand") * hidden,
        state=fields.whole("mamba_d_state"),
        kernel=fields.whole("mamba_d_conv"),
        rank=-(-hidden // 16) if rank in {None, "auto"} else fields.whole("mamba_dt_rank"),
        bias=fields.flag("mamba_proj_bias"),
        convolution_bias=fields.flag("mamba_conv_bias", default=True),
        norms=True,
    )
    width = fields.whole("intermediate_size")
    experts = check_experts(
        fields,
        Experts(experts=fields.whole("num_experts"), per_token=fields.whole("num_experts_per_tok"), intermediate=width),
    )
    attend = plain_attention(fields)
    blocks = [
        Block(
            mixer=attend if i % every == at else state,
            feed_forward=experts if i % sparse == first and experts.experts > 1 else Dense(intermediate=width),
        )
        for i in range(fields.layers())
    ]
    return assemble(fields, blocks, name=name)


def lfm2(fields: Fields, name: str) -> Shape:
    """LFM2: short convolutions and attention; the feed-forward width is rounded as its code does."""
    hidden, layers = fields.whole("hidden_size"), fields.layers()
    kinds = fields.words("layer_types", layers)
    if kinds is None:
        full = fields.numbers("full_attn_idxs") or ()
        kinds = tuple("full_attention" if i in full else "conv" for i in range(layers))
    state = short_convolution(
        hidden, kernel=fields.whole("conv_L_cache", default=3), bias=fields.flag("conv_bias", default=False)
    )
    attend: Attention = plain_attention(fields, qk_norm=True)
    part = Dense(intermediate=_lfm2_width(fields))
    blocks = [Block(mixer=state if kind == "conv" else attend, feed_forward=part) for kind in kinds]
    return assemble(fields, blocks, name=name, tied=True)


def _lfm2_width(fields: Fields) -> int:
    width = fields.whole("block_ff_dim", "intermediate_size")
    if not fields.flag("block_auto_adjust_ff_dim", default=True):
        return width
    whole = fields.whole("block_multiple_of", default=256)
    factor = fields.get("block_ffn_dim_multiplier")
    scale = float(factor) if isinstance(factor, int | float) and not isinstance(factor, bool) else 1.0
    if not 0 < scale < 100:
        raise fields.bad("block_ffn_dim_multiplier", scale, "0..100")
    return whole * -(-int(scale * (2 * width // 3)) // whole)
