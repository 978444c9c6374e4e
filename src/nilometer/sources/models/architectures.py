"""Which reader makes a shape of which `model_type`, and the architectures that are named otherwise."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nilometer.core.errors import DataError
from nilometer.plan.model.shape import Shape

from . import families, hybrids, latent
from .fields import Fields

_HYBRIDS: Mapping[str, Callable[[Fields, str], Shape]] = {
    **dict.fromkeys(("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"), hybrids.qwen),
    "nemotron_h": hybrids.nemotron,
    "granitemoehybrid": hybrids.granite,
    "jamba": hybrids.jamba,
    "lfm2": hybrids.lfm2,
}
_LATENT = ("deepseek_v2", "deepseek_v3", "deepseek_v32", "kimi_k2", "glm_moe_dsa", "glm4_moe_lite")
KINDS = (*families.FAMILIES, *_LATENT, *_HYBRIDS)
"""Every `model_type` that can be read."""

ALIASES: Mapping[str, str] = {
    "gemma3": "gemma3_text",
    "llama4": "llama4_text",
    "qwen3_5": "qwen3_5_text",
    "qwen3_5_moe": "qwen3_5_moe_text",
    "qwen3_vl_text": "qwen3",
    "qwen3_vl": "qwen3",
    "qwen3_vl_moe_text": "qwen3_moe",
    "qwen3_vl_moe": "qwen3_moe",
    "qwen2_5_vl_text": "qwen2",
    "mistral3": "mistral",
}
"""Other names of the same, and of models that hold one."""

ARCHITECTURES: Mapping[str, str] = {
    "LlamaForCausalLM": "llama",
    "MistralForCausalLM": "mistral",
    "MixtralForCausalLM": "mixtral",
    "Qwen2ForCausalLM": "qwen2",
    "Qwen2MoeForCausalLM": "qwen2_moe",
    "Qwen3ForCausalLM": "qwen3",
    "Qwen3MoeForCausalLM": "qwen3_moe",
    "GemmaForCausalLM": "gemma",
    "Gemma2ForCausalLM": "gemma2",
    "Gemma3ForCausalLM": "gemma3_text",
    "PhiForCausalLM": "phi",
    "Phi3ForCausalLM": "phi3",
    "DeepseekV2ForCausalLM": "deepseek_v2",
    "DeepseekV3ForCausalLM": "deepseek_v3",
    "GptOssForCausalLM": "gpt_oss",
}
"""For a config that states its architecture alone."""

_SHOWN = ("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "vocab_size")
_NESTED = ("text_config", "llm_config", "language_config", "thinker_config")


def language_part(fields: Fields) -> Fields:
    """The description of the language model: the object itself, or the one within it that describes the text part."""
    for name in _NESTED:
        inner = fields.inner(name)
        if inner is not None and inner.get("hidden_size") is not None:
            return inner.over(_outer(fields))
    return fields


def _outer(fields: Fields) -> Fields:
    return Fields({key: value for key, value in fields.values.items() if key != "model_type"}, fields.file)


def shape_of(fields: Fields, name: str) -> Shape:
    """The shape that a description gives.

    DataError `architecture_unknown`, and those of the reader: `model_field_missing`, `model_field_bad`,
    `model_fields_differ`.
    """
    part = language_part(fields)
    named = fields.get("architectures")
    first = named[0] if isinstance(named, list) and named and isinstance(named[0], str) else ""
    kind = part.word("model_type") or fields.word("model_type") or ARCHITECTURES.get(first, "")
    kind = ALIASES.get(kind, kind)
    if kind not in KINDS:
        read = ", ".join(f"{key}={part.values[key]}" for key in _SHOWN if isinstance(part.values.get(key), int))
        raise DataError("architecture_unknown", file=fields.file, name=(kind or first or "?")[:80], read=read or "-")
    if kind in families.FAMILIES:
        return families.read(part, families.FAMILIES[kind], name)
    return latent.read(part, kind, name) if kind in _LATENT else _HYBRIDS[kind](part, name)
