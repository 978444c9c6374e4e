"""In what precision a model is published: by its `quantization_config`, or by a word in its name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from nilometer.plan.model.blocks import MIXES

from .fields import Fields

_GGUF = "|".join(sorted(MIXES, key=len, reverse=True))
_WORDS = (
    (_GGUF, None),
    (r"mxfp4", "mxfp4"),
    (r"nvfp4|fp4", "nvfp4"),
    (r"w4a16(?:-asym)?", "w4a16"),
    (r"w8a8", "int8"),
    (r"w8a16|gptq-int8|gptq-8bit", "w8a16"),
    (r"fp8(?:-dynamic|-block|-static|-kv)?", "fp8"),
    (r"bnb-4bit|nf4", "nf4"),
    (r"awq(?:-int4|-4bit|-marlin)?|gptq(?:-int4|-4bit)?|int4|4bit|autoround", "int4"),
    (r"int8|8bit", "int8"),
    (r"bf16|bfloat16", "bf16"),
    (r"fp16|float16|f16", "fp16"),
    (r"fp32|float32|f32", "fp32"),
)
"""Words in a name and the precision they stand for; None = the word itself."""


def published_precision(fields: Fields) -> str | None:
    """By `quantization_config`: a name of `precision.PRECISIONS`; None where there is none.

    DataError `model_field_bad` for a method or width that is not in that table.
    """
    found = fields.inner("quantization_config")
    if found is None:
        return None
    method = (found.word("quant_method", "quant_algo") or "").lower()
    reader = _METHODS.get(method)
    if reader is None:
        raise fields.bad("quantization_config.quant_method", method, ", ".join(_METHODS))
    return reader(found)


def _fp8(found: Fields) -> str:
    return "fp8" if found.get("weight_block_size") is None else "fp8_block"


def _integers(found: Fields) -> str:
    bits = found.whole("bits", "w_bit", "wbits", default=4, most=16)
    group = found.maybe("group_size", "q_group_size", least=-1) or 128
    if bits == 4:
        return "int4_g32" if group == 32 else "int4"
    if bits == 8:
        return "w8a16"
    raise found.bad("bits", bits, "4, 8")


def _bitsandbytes(found: Fields) -> str:
    if found.flag("load_in_8bit"):
        return "int8"
    return "nf4"


def _compressed(found: Fields) -> str:
    """compressed-tensors: the scheme of the first group of layers, whether the activations are rounded as well."""
    groups = found.inner("config_groups")
    first = next(iter(groups.values.values()), None) if groups is not None else None
    weights = first.get("weights") if isinstance(first, dict) else None
    if not isinstance(weights, dict):
        raise found.bad("config_groups", weights, "{...}")
    scheme = Fields(weights, found.file)
    bits, kind = scheme.whole("num_bits", most=16), scheme.word("type") or "int"
    both = isinstance(first, dict) and first.get("input_activations") is not None
    if kind == "float":
        if bits == 8:
            return "fp8_block" if scheme.word("strategy") == "block" else "fp8"
        return "nvfp4" if (scheme.maybe("group_size", least=-1) or 16) == 16 else "mxfp4"
    if bits == 8:
        return "int8" if both else "w8a16"
    if bits == 4:
        experts = found.words("ignore") or ()
        alone = any("self_attn" in one or "shared_experts" in one for one in experts)
        return "int4_experts" if alone else "w4a16"
    raise scheme.bad("num_bits", bits, "4, 8")


_METHODS: Mapping[str, Callable[[Fields], str]] = {
    "fp8": _fp8,
    "fbgemm_fp8": lambda _: "fp8",
    "awq": _integers,
    "gptq": _integers,
    "auto-round": _integers,
    "compressed-tensors": _compressed,
    "mxfp4": lambda _: "mxfp4_experts",
    "bitsandbytes": _bitsandbytes,
    "modelopt": lambda found: "fp8" if "FP8" in str(found.get("quant_algo")) else "nvfp4",
    "nvfp4": lambda _: "nvfp4",
}


def split_precision(name: str) -> tuple[str, str | None]:
    """A name without the word for its precision, and what that word means; None where it has none."""
    for pattern, precision in _WORDS:
        found = re.search(rf"(?i)[-_.:/](?:quantized[-_.])?({pattern})(?![a-z0-9_])(?:\.gguf$)?", name)
        if found:
            return name[: found.start()] + name[found.end() :], (precision or found[1]).lower()
    return name, None
