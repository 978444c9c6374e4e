"""THE table of precisions: the bits a weight really takes, scales and zero points of its group included.

What a cached key or value takes is `kv`'s part; GGUF's mixed file types are `blocks`'.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from nilometer.core.errors import SpecError

from .blocks import MIXES, Mix, block_bits, mixed_bits
from .parameters import Part

PLAIN_BITS = 16.0
_SMALL = frozenset({"norm", "bias", "router", "extra"})


class Precision(msgspec.Struct, frozen=True, kw_only=True):
    """One row. Bits count the scales and zero points of a group of weights, spread over its weights."""

    name: str
    linear_bits: float
    """Of the matrices inside the layers."""
    table_bits: float
    """Of the embedding and the output head."""
    arithmetic: str
    """The key of `Device.flops` that multiplies with it."""
    source: str
    expert_bits: float | None = None
    """Of the routed experts, where they have another than the rest."""
    small_bits: float = PLAIN_BITS
    """Of norms, biases and routers."""
    tower_bits: float = PLAIN_BITS
    """Of what stands beside the language model."""
    mix: Mix | None = None
    """GGUF's file type: what a tensor takes is then up to its place in the model."""

    def __hash__(self) -> int:
        return hash((self.name, self.linear_bits, self.table_bits))


def _row(name: str, bits: float, arithmetic: str, source: str, table: float = PLAIN_BITS) -> Precision:
    return Precision(name=name, linear_bits=bits, table_bits=table, arithmetic=arithmetic, source=source)


def _gguf(name: str, mix: Mix) -> Precision:
    return Precision(
        name=name,
        linear_bits=block_bits(mix.base),
        table_bits=block_bits(mix.embedding or mix.base),
        arithmetic="int8",
        source="llama.cpp ggml-common.h, src/llama-quant.cpp",
        expert_bits=block_bits(mix.others["experts.up"][0][0]) if "experts.up" in mix.others else None,
        small_bits=32.0,
        mix=mix,
    )


PRECISIONS: Mapping[str, Precision] = {
    row.name: row
    for row in (
        Precision(
            name="fp32",
            linear_bits=32,
            table_bits=32,
            arithmetic="fp32",
            source="IEEE 754",
            small_bits=32,
            tower_bits=32,
        ),
        _row("bf16", 16, "fp16", "8 bits of exponent, 7 of fraction"),
        _row("fp16", 16, "fp16", "IEEE 754"),
        _row("fp8", 8, "fp8", "compressed-tensors FP8: a scale per tensor or output channel"),
        _row("fp8_block", 8 + 32 / 128**2, "fp8", "DeepSeek-V3 config: weight_block_size [128, 128], 32-bit scales"),
        _row("int8", 8, "int8", "compressed-tensors W8A8: a scale per output channel"),
        _row("w8a16", 8 + 16 / 128, "fp16", "compressed-tensors W8A16: groups of 128, 16-bit scales"),
        _row("int4", 4 + (16 + 4) / 128, "fp16", "GPTQ and AWQ: groups of 128, a 16-bit scale and a 4-bit zero point"),
        _row("int4_g32", 4 + (16 + 4) / 32, "fp16", "GPTQ and AWQ in groups of 32"),
        _row("w4a16", 4 + 16 / 128, "fp16", "compressed-tensors W4A16: symmetric, groups of 128, 16-bit scales"),
        _row("nf4", 4 + 8 / 64 + 32 / (64 * 256), "fp16", "QLoRA (arXiv 2305.14314): blocks of 64, scales in 8 bits"),
        _row("mxfp4", 4 + 8 / 32, "fp4", "OCP Microscaling 1.0: blocks of 32 with an 8-bit scale"),
        _row("nvfp4", 4 + 8 / 16, "fp4", "NVFP4: blocks of 16 with an FP8 scale"),
        Precision(
            name="mxfp4_experts",
            linear_bits=16,
            table_bits=16,
            arithmetic="fp16",
            source="gpt-oss config: MXFP4 for the experts alone (modules_to_not_convert: attention, router, tables)",
            expert_bits=4 + 8 / 32,
        ),
        Precision(
            name="int4_experts",
            linear_bits=16,
            table_bits=16,
            arithmetic="fp16",
            source="Kimi-K2-Thinking config: int4 in groups of 32 for the routed experts alone",
            expert_bits=4 + 16 / 32,
        ),
        *(_gguf(name, mix) for name, mix in MIXES.items()),
    )
}

ALIASES: Mapping[str, str] = {
    "float32": "fp32",
    "f32": "fp32",
    "float16": "fp16",
    "f16": "fp16",
    "half": "fp16",
    "bfloat16": "bf16",
    "fp8_e4m3": "fp8",
    "fp8_dynamic": "fp8",
    "float8": "fp8",
    "w8a8": "int8",
    "awq": "int4",
    "gptq": "int4",
    "w4a16_asym": "int4",
    "q4": "int4",
    "q8": "int8",
}
"""Other words for rows."""


def precision_of(name: str) -> Precision:
    """The row of this name, whatever its case, `-` for `_` or not. SpecError `precision_unknown`."""
    word = name.strip().lower().replace("-", "_")
    found = PRECISIONS.get(ALIASES.get(word, word))
    if found is None:
        raise SpecError("precision_unknown", precision=name, known=", ".join(PRECISIONS))
    return found


def part_bits(part: Part, precision: Precision, *, tied: bool = False) -> float:
    """Bits one parameter of a part takes. `tied`: whether the model's embedding is its head as well."""
    if part.what == "extra":
        return precision.tower_bits
    if part.what in _SMALL:
        return precision.small_bits
    if precision.mix is not None:
        return mixed_bits(precision.mix, part.name, part.width, tied=tied)
    if part.what in {"embedding", "head"}:
        return precision.table_bits
    if part.what == "experts" and precision.expert_bits is not None:
        return precision.expert_bits
    return precision.linear_bits
