"""THE table of what lower precision costs in quality, as it was published: a loss, on which models, by whom.

The risk follows from the loss by one rule; where no figure was found none is given and the row says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

Risk = Literal["none", "small", "medium", "high", "unknown"]
Measure = Literal["accuracy", "perplexity"]

_SMALL, _MEDIUM, _HIGH = 0.1, 1.5, 5.0
"""Per cent of loss from which a risk is called so; below the first there is none worth the word."""


class Quality(msgspec.Struct, frozen=True, kw_only=True):
    """One row. A loss is in per cent of the unquantised model's figure: accuracy lost, or perplexity added."""

    risk: Risk
    measure: Measure | None = None
    loss_low: float | None = None
    loss_high: float | None = None
    """Over the models that were measured; None = no figure was found."""
    on: str = ""
    """What was measured."""
    source: str = ""
    caution: str = ""
    """A slug: what the figure hides."""


def risk_of(loss_high: float) -> Risk:
    """The word for the worst loss that was published, in per cent."""
    if loss_high < _SMALL:
        return "none"
    if loss_high < _MEDIUM:
        return "small"
    return "medium" if loss_high < _HIGH else "high"


def _row(low: float, high: float, measure: Measure, on: str, source: str, caution: str = "") -> Quality:
    return Quality(
        risk=risk_of(high), measure=measure, loss_low=low, loss_high=high, on=on, source=source, caution=caution
    )


_STUDY = "Kurtic et al., ACL 2025 (arXiv 2411.02355), over 500,000 evaluations of the Llama-3.1 family"
_LLAMACPP = "llama.cpp tools/perplexity/README.md, Llama 3 8B scoreboard (f364eb6f), without an importance matrix"
_LLAMACPP_70B = f"{_LLAMACPP}; Llama 2 70B in its old numbers"
_ON_8B, _ON_8B_70B = "Llama-3-8B", "Llama-3-8B, Llama-2-7B, Llama-2-70B"

PLAIN = Quality(risk="none", on="the published weights", source="nothing is quantised")

WEIGHTS: Mapping[str, Quality] = {
    "fp32": PLAIN,
    "bf16": PLAIN,
    "fp16": PLAIN,
    "fp8": _row(
        0.0,
        1.3,
        "accuracy",
        "Llama-3.1 8B to 405B, Llama-3-8B",
        f"{_STUDY}: effectively lossless; cards of neuralmagic/Meta-Llama-3.1-405B-FP8 (98.7 % recovered) and "
        "Meta-Llama-3-8B-Instruct-FP8 (99.28 %)",
        caution="fp8_uncalibrated",
    ),
    "int8": _row(1.0, 3.0, "accuracy", "Llama-3.1 8B to 405B", f"{_STUDY}: 1 to 3 % when well tuned", "int8_tuned"),
    "int4": _row(
        2.4,
        2.7,
        "perplexity",
        "Llama-2-7B, Llama-2-70B",
        f"AWQ (arXiv 2306.00978): 5.47 to 5.60, 3.32 to 3.41, groups of 128; {_STUDY}: W4A16 rivals 8 bits",
        caution="int4_method",
    ),
    "nvfp4": _row(
        1.0,
        2.7,
        "accuracy",
        "Nemotron 3 Nano",
        "NVIDIA's figures as quoted at fleek.sh/blog/nvfp4-quantization: MMLU-Pro 78.3 to 77.4, AIME25 89.1 to 86.7",
        caution="hard_tasks_lose_more",
    ),
    "q8_0": _row(0.04, 0.07, "perplexity", "Llama-3-8B, Llama-2-7B", _LLAMACPP),
    "q6_k": _row(0.16, 0.35, "perplexity", _ON_8B_70B, _LLAMACPP_70B),
    "q5_k_m": _row(0.4, 0.91, "perplexity", "Llama-3-8B, Llama-2-70B", _LLAMACPP_70B),
    "q4_k_m": _row(1.2, 2.8, "perplexity", _ON_8B_70B, _LLAMACPP_70B, caution="answers_change"),
    "q4_k_s": _row(1.57, 4.3, "perplexity", "Llama-3-8B, Llama-2-70B", _LLAMACPP_70B, caution="answers_change"),
    "q4_0": _row(3.61, 7.5, "perplexity", "Llama-3-8B, Llama-2-70B", _LLAMACPP_70B, caution="answers_change"),
    "q3_k_m": _row(4.72, 10.5, "perplexity", "Llama-3-8B, Llama-2-70B", _LLAMACPP_70B, caution="answers_change"),
    "q2_k": _row(8.82, 56.5, "perplexity", _ON_8B_70B, _LLAMACPP_70B, caution="answers_change"),
}
"""By precision of the weights."""

CACHE: Mapping[str, Quality] = {
    "auto": PLAIN,
    "fp16": PLAIN,
    "bf16": PLAIN,
    "f16": PLAIN,
    "fp8": Quality(
        risk="small",
        source="no figure found; vLLM docs/features/quantization/quantized_kvcache.md: with the default scales of 1.0 "
        "quality can suffer, calibrated ones are advised; SGLang's docs: minimal",
        caution="kv_scales",
    ),
    "q8_0": _row(
        0.03,
        0.07,
        "perplexity",
        "Llama-3-8B",
        "llama.cpp PR 7412: 6.2322 to 6.2344; ollama PR 6279: +0.0043 on Qwen2.5-Coder-7B",
        caution="kv_some_models",
    ),
}
"""By precision of the cached keys and values."""


def weights_quality(precision: str) -> Quality:
    """Of weights in a precision; risk `unknown` where nothing is in the table."""
    return WEIGHTS.get(precision, Quality(risk="unknown"))


def cache_quality(precision: str) -> Quality:
    """The same of the cache."""
    return CACHE.get(precision, Quality(risk="unknown"))
