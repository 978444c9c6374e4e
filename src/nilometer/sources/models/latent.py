"""Models with latent attention (MLA): DeepSeek V2 and V3, Kimi K2, GLM-5; with a sparse indexer or not.

Source: transformers, `modeling_deepseek_v3.py`; DeepSeek-V3.2-Exp, inference/model.py (indexer).
"""

from __future__ import annotations

from collections.abc import Mapping

from nilometer.plan.model.shape import Block, Dense, Latent, Shape

from .assemble import assemble, check_experts, draft_layers
from .families import DRAFT_TABLES, deepseek_experts
from .fields import Fields

_INDEXED: Mapping[str, tuple[int, int]] = {"deepseek_v32": (64, 128), "glm_moe_dsa": (32, 128)}
"""Heads and width of the indexer, where the config does not say."""


def read(fields: Fields, family: str, name: str) -> Shape:
    """The shape of a model of this sort."""
    layers = fields.layers()
    mixer = _latent(fields, family)
    blocks = []
    for i in range(layers):
        experts = deepseek_experts(fields, i)
        dense = None if experts else Dense(intermediate=fields.whole("intermediate_size"))
        blocks.append(Block(mixer=mixer, feed_forward=dense or (experts and check_experts(fields, experts))))
    drafts = fields.whole("num_nextn_predict_layers", default=0, least=0)
    return assemble(fields, blocks, name=name, extras=draft_layers(fields, drafts, blocks[-1], tables=DRAFT_TABLES))


def _latent(fields: Fields, family: str) -> Latent:
    heads, width = _INDEXED.get(family, (0, 0))
    return Latent(
        heads=fields.whole("num_attention_heads"),
        kv_rank=fields.whole("kv_lora_rank"),
        rope_dim=fields.whole("qk_rope_head_dim"),
        nope_dim=fields.whole("qk_nope_head_dim"),
        value_dim=fields.whole("v_head_dim"),
        query_rank=fields.maybe("q_lora_rank", least=0) or None,
        index_heads=fields.whole("index_n_heads", default=heads, least=0),
        index_dim=fields.whole("index_head_dim", default=width, least=0),
    )
