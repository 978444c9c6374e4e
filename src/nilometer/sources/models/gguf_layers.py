"""One layer of a GGUF file, made from the tensors it has."""

from __future__ import annotations

from collections.abc import Mapping

from nilometer.plan.model.shape import Attention, Block, Dense, Experts, Latent, Mixer, Recurrent

from .fields import Fields
from .gguf_header import Tensor

Tensors = Mapping[str, Tensor]
EVERY: Mapping[str, int] = {"gemma2": 2, "gemma3": 6, "gpt-oss": 2, "cohere2": 4, "llama4": 4, "olmo2": 4, "phi3": 0}
"""Of so many layers the last looks at all tokens; 0 = none does."""
_RECURRENT = ("ssm_", "shortconv.")
_HEAD_NORMS = ("attn_q_norm.weight", "attn_k_norm.weight", "attn_q_a_norm.weight", "attn_kv_a_norm.weight")


def layer(fields: Fields, tensors: Tensors, hidden: int, index: int, window: int | None) -> Block | None:
    """Its kind; None where it has neither a mixer nor a feed-forward part."""
    mixer = _mixer(fields, tensors, hidden, index, window)
    part = _feed_forward(fields, tensors, hidden)
    if mixer is None and part is None:
        return None
    own = [
        name
        for name, tensor in tensors.items()
        if name.endswith("norm.weight") and tensor.dims == (hidden,) and name not in _HEAD_NORMS
        if not name.startswith(_RECURRENT)
    ]
    biased = any(name.endswith("norm.bias") for name in tensors)
    return Block(mixer=mixer, feed_forward=part, norms=len(own), norm_bias=biased)


def _mixer(fields: Fields, tensors: Tensors, hidden: int, index: int, window: int | None) -> Mixer | None:
    if any(name.startswith(_RECURRENT) for name in tensors):
        both = "attn_output.weight" in tensors  # a state and a cache in one layer have no place in a shape
        return None if both else _recurrent(fields, tensors, hidden)
    if "attn_kv_a_mqa.weight" in tensors:
        return _latent(fields, index)
    if "attn_output.weight" in tensors:
        return _attention(fields, tensors, hidden, index, window)
    return None


def _of_layer(fields: Fields, field: str, index: int, default: int | None = None) -> int:
    """A number that some architectures state once and others for each layer."""
    found = fields.get(field)
    if isinstance(found, list):
        if index < len(found) and isinstance(found[index], int) and found[index] > 0:
            return int(found[index])
        raise fields.bad(field, found[index : index + 1], "1..")
    return fields.whole(field, default=default)


def _attention(fields: Fields, tensors: Tensors, hidden: int, index: int, window: int | None) -> Attention:
    heads = _of_layer(fields, "attention.head_count", index)
    kv_heads = _of_layer(fields, "attention.head_count_kv", index, heads)
    out = tensors["attn_output.weight"].dims
    dim = fields.whole("attention.key_length", default=max(1, (out[0] if out else hidden) // heads))
    if heads % kv_heads:
        raise fields.differ("attention.head_count", heads, "attention.head_count_kv", kv_heads)
    query = tensors.get("attn_q.weight")
    norm = tensors.get("attn_q_norm.weight")
    wide = norm is not None and norm.elements == heads * dim != dim
    return Attention(
        heads=heads,
        kv_heads=kv_heads,
        head_dim=dim,
        window=window,
        qkv_bias="attn_q.bias" in tensors or "attn_qkv.bias" in tensors,
        out_bias="attn_output.bias" in tensors,
        qk_norm=norm is not None and not wide,
        wide_norm=wide,
        output_gate=query is not None and query.dims[-1] == 2 * heads * dim,
        sinks="attn_sinks.weight" in tensors,
    )


def _latent(fields: Fields, index: int) -> Latent:
    """Its heads are as wide as `key_length_mla` says, in older files `key_length` (which then is no MQA width)."""
    rank = fields.whole("attention.kv_lora_rank")
    heads = _of_layer(fields, "attention.head_count", index)
    rope = fields.whole("rope.dimension_count")
    width = fields.whole("attention.key_length_mla", "attention.key_length")
    if width <= rope:
        raise fields.differ("attention.key_length", width, "rope.dimension_count", rope)
    return Latent(
        heads=heads,
        kv_rank=rank,
        rope_dim=rope,
        nope_dim=width - rope,
        value_dim=fields.whole("attention.value_length_mla", "attention.value_length"),
        query_rank=fields.maybe("attention.q_lora_rank", least=0) or None,
        index_heads=fields.whole("attention.indexer.head_count", default=0, least=0),
        index_dim=fields.whole("attention.indexer.key_length", default=0, least=0),
    )


def _recurrent(fields: Fields, tensors: Tensors, hidden: int) -> Recurrent:
    """All tensors that are neither norms of the hidden width nor a feed-forward part; the state by the metadata."""
    own = {
        name: tensor
        for name, tensor in tensors.items()
        if not name.startswith(("ffn_", "exp_probs"))
        and (name.startswith(_RECURRENT) or not name.endswith("norm.weight"))
    }
    count = sum(tensor.elements for tensor in own.values())
    if any(name.startswith("shortconv.") for name in tensors):
        window = hidden * (fields.whole("shortconv.l_cache", default=3) - 1)
        return Recurrent(kind="short_convolution", parameters=count, state_elements=window, convolution_elements=window)
    inner, state = fields.whole("ssm.inner_size"), fields.whole("ssm.state_size")
    groups = fields.whole("ssm.group_count", default=0, least=0)
    window = (inner + 2 * groups * state) * (fields.whole("ssm.conv_kernel") - 1)
    kind = "gated_delta_net" if "attn_gate.weight" in tensors else "mamba2" if groups else "mamba1"
    return Recurrent(kind=kind, parameters=count, state_elements=inner * state + window, convolution_elements=window)


def _feed_forward(fields: Fields, tensors: Tensors, hidden: int) -> Dense | Experts | None:
    down = tensors.get("ffn_down_exps.weight")
    if down is not None and len(down.dims) == 3:
        return _experts(fields, tensors, down)
    down, up = tensors.get("ffn_down.weight"), tensors.get("ffn_up.weight")
    if down is None or up is None or len(down.dims) != 2:
        return None
    width = down.dims[0]
    gated = "ffn_gate.weight" in tensors or up.elements == 2 * width * hidden
    return Dense(intermediate=width, gated=gated, bias="ffn_down.bias" in tensors)


def _experts(fields: Fields, tensors: Tensors, down: Tensor) -> Experts:
    width, _, count = down.dims
    shared = tensors.get("ffn_down_shexp.weight")
    per_token = fields.whole("expert_used_count")
    if per_token > count:
        raise fields.differ("expert_used_count", per_token, "expert_count", count)
    return Experts(
        experts=count,
        per_token=per_token,
        intermediate=width,
        shared_intermediate=shared.dims[0] if shared is not None else 0,
        shared_gate="ffn_gate_inp_shexp.weight" in tensors,
        gated="ffn_gate_exps.weight" in tensors or "ffn_gate_up_exps.weight" in tensors,
        bias="ffn_down_exps.bias" in tensors,
        router_bias="exp_probs_b.bias" in tensors or "ffn_gate_inp.bias" in tensors,
    )
