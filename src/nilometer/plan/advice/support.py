"""THE table of flags and of what computes in what: how an engine is told, and what a device does with a precision.

Flags are as the engines' own documentation has them in December 2026; `{n}`, `{k}`, `{model}` are filled in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from ..devices import Device
from ..model.precision import Precision

Computes = Literal["native", "weight_only", "unproven", "no"]
"""How weights of a precision are multiplied: in it; unpacked to 16 bits; by no documented kernel; not at all."""

_GENERATIONS = {
    "volta": r"^V100",
    "turing": r"^T4",
    "ampere": r"^(A100|A800|A30|A40|A10|A2$|RTX-A\d|RTX-3\d)",
    "ada": r"^(L40|L20|L4|L2|RTX-4\d|RTX-\d000-Ada)",
    "hopper": r"^(G?H[1-8]00|H20)",
    "blackwell": r"^(G?B[23]00|RTX-5\d|RTX-PRO-6000|DGX-Spark)",
    "cdna3": r"^MI3",
    "cdna2": r"^MI2",
    "cdna1": r"^MI1",
}

_KERNELS: Mapping[str, Mapping[Computes, str]] = {
    "fp8": {"native": "ada hopper blackwell cdna3", "weight_only": "turing ampere"},
    "int8": {"native": "turing ampere ada hopper"},
    "int4": {"weight_only": "volta turing ampere ada hopper blackwell"},
    "nvfp4": {"native": "blackwell"},
}
"""vLLM docs: features/quantization/llm_compressor/fp8 (0.32: FP8 W8A8 from Ada on, W8A16 by Marlin from Turing on),
quantization/supported_hardware (0.6.4: INT8 W8A8 Turing to Hopper, not AMD; GPTQ from Volta on)."""

_OFFERED: Mapping[str, Sequence[str]] = {
    "vllm": ("fp8", "int8", "int4", "nvfp4"),
    "sglang": ("fp8", "int8", "int4", "nvfp4"),
    "tensorrt-llm": ("fp8", "int8", "int4", "nvfp4"),
    "tgi": ("fp8", "int4"),
    "llama.cpp": ("q8_0", "q6_k", "q5_k_m", "q4_k_m"),
}
"""The tiers of an engine, most bits first."""

CACHE_TIER: Mapping[str, str] = {
    "vllm": "fp8",
    "sglang": "fp8",
    "tensorrt-llm": "fp8",
    "tgi": "fp8",
    "llama.cpp": "q8_0",
}
"""The precision of cached keys and values that is offered in place of 16 bits."""

FLAGS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "vllm": {
        "weights_fp8": ("--quantization fp8",),
        "kv_8bit": ("--kv-cache-dtype fp8",),
        "speculate_ngram": (
            '--speculative-config \'{{"method":"ngram","num_speculative_tokens":{k},"prompt_lookup_max":4}}\'',
        ),
        "speculate_head": (
            '--speculative-config \'{{"method":"eagle3","model":"{model}","num_speculative_tokens":{k}}}\'',
        ),
        "speculate_draft": (
            '--speculative-config \'{{"method":"draft_model","model":"{model}","num_speculative_tokens":{k}}}\'',
        ),
        "tensor": ("--tensor-parallel-size {n}",),
        "pipeline": ("--pipeline-parallel-size {n}",),
        "data": ("--data-parallel-size {n}",),
        "context": ("--max-model-len {n}",),
        "requests": ("--max-num-seqs {n}",),
    },
    "sglang": {
        "weights_fp8": ("--quantization fp8",),
        "weights_int8": ("--quantization w8a8_int8",),
        "kv_8bit": ("--kv-cache-dtype fp8_e4m3",),
        "speculate_ngram": ("--speculative-algorithm NGRAM", "--speculative-num-draft-tokens {k1}"),
        "speculate_head": (
            "--speculative-algorithm EAGLE3",
            "--speculative-draft-model-path {model}",
            "--speculative-num-steps {k}",
            "--speculative-eagle-topk 1",
            "--speculative-num-draft-tokens {k1}",
        ),
        "speculate_draft": (
            "--speculative-algorithm STANDALONE",
            "--speculative-draft-model-path {model}",
            "--speculative-num-steps {k}",
            "--speculative-eagle-topk 1",
            "--speculative-num-draft-tokens {k1}",
        ),
        "tensor": ("--tp-size {n}",),
        "pipeline": ("--pp-size {n}",),
        "data": ("--dp-size {n}",),
        "context": ("--context-length {n}",),
        "requests": ("--max-running-requests {n}",),
    },
    "tgi": {
        "weights_fp8": ("--quantize fp8",),
        "weights_int4": ("--quantize awq",),
        "kv_8bit": ("--kv-cache-dtype fp8_e4m3fn",),
        "speculate_ngram": ("--speculate {k}",),
        "tensor": ("--num-shard {n}",),
        "context": ("--max-total-tokens {n}",),
        "requests": ("--max-concurrent-requests {n}",),
    },
    "tensorrt-llm": {
        "kv_8bit": ("kv_cache_config.dtype: fp8",),
        "speculate_ngram": ("speculative_config.decoding_type: NGram", "speculative_config.max_draft_len: {k}"),
        "speculate_head": (
            "speculative_config.decoding_type: Eagle3",
            "speculative_config.max_draft_len: {k}",
            "speculative_config.speculative_model: {model}",
        ),
        "speculate_draft": (
            "speculative_config.decoding_type: DraftTarget",
            "speculative_config.max_draft_len: {k}",
            "speculative_config.speculative_model: {model}",
        ),
        "tensor": ("--tp_size {n}",),
        "pipeline": ("--pp_size {n}",),
        "context": ("--max_seq_len {n}",),
        "requests": ("--max_batch_size {n}",),
    },
    "llama.cpp": {
        "weights_gguf": ("llama-quantize MODEL.gguf {name}.gguf {name}",),
        "kv_8bit": ("-ctk q8_0", "-ctv q8_0", "-fa on"),
        "speculate_ngram": ("--spec-type ngram-simple",),
        "speculate_head": ("--spec-type draft-eagle3", "-md {model}", "--spec-draft-n-max {k}"),
        "speculate_draft": ("--spec-type draft-simple", "-md {model}", "--spec-draft-n-max {k}"),
        "pipeline": ("-sm layer", "-ngl all"),
        "context": ("-c {n}",),
        "requests": ("-np {n}",),
    },
}
"""Engine -> what is changed -> its flags. Nothing = no flag: quantised weights are read as their files say, copies are
servers of their own behind a balancer. TensorRT-LLM's dotted ones are keys of its YAML (--extra_llm_api_options)."""


def generation(device: Device) -> str | None:
    """Of the vendor's designs; None = none that the table of kernels speaks of."""
    return next((name for name, pattern in _GENERATIONS.items() if re.match(pattern, device.name)), None)


def computes(device: Device, precision: Precision, engine: str) -> Computes:
    """What an engine's kernels do with weights of a precision on a device."""
    if engine == "llama.cpp" or precision.linear_bits >= 16:
        return "native"
    kernels, own = _KERNELS.get(precision.name), generation(device)
    if kernels is None or own is None:
        return "unproven"
    found = next((how for how, names in kernels.items() if own in names.split()), None)
    if found is not None:
        return found
    return "unproven" if own.startswith("cdna") and precision.name != "nvfp4" else "no"


def tiers(engine: str) -> Sequence[str]:
    """Precisions of weights that an engine is offered, most bits first; empty for one that is not known."""
    return _OFFERED.get(engine, ())


def flags(engine: str, change: str, **filled: object) -> tuple[str, ...]:
    """An engine's flags for a change, filled in; empty where it has none."""
    rows = FLAGS.get(engine, {}).get(change, ())
    filled = {"model": "MODEL", **filled}
    return tuple(row.format(**filled) for row in rows)
