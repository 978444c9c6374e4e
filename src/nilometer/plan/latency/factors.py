"""THE table of efficiencies: how much of a device's rates an engine really gets, and what a step costs besides.

Each row says where it is from. They are priors: one measurement of one's own says more (`calibrate`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import sqrt

import msgspec

from nilometer.core.errors import SpecError

from ..versions import parse_version

PUBLISHED = (
    "fit to 3,257 published serving measurements of vLLM, SGLang and TensorRT-LLM on H100, H200, B200: "
    "aiconfigurator silicon_sample.csv, half of its configurations"
)
FIRST_VLLM = (
    "vLLM blog, September 2024, v0.6.0: before it the GPU worked 38 % of the time, the host the rest, "
    "for Llama-3-8B on one H100"
)
LLAMACPP_GPU = "llama.cpp discussion 4167: 7B at F16, Q8_0, Q4_0 on M-series chips"
LLAMACPP_CPU = "SmolLM2-135M on llama.cpp, 2 cores of an AMD EPYC, 1 to 16 slots, December 2026"


class Factors(msgspec.Struct, frozen=True, kw_only=True):
    """One row. Shares are of the device's stated rates, seconds are added."""

    name: str
    weights: float
    """Of the bandwidth, when weights are read."""
    cache: float
    """Of the bandwidth, when cached keys and values are read."""
    prefill: float
    """Of the arithmetic, on the many tokens of a prompt."""
    batch: float
    """Of the arithmetic, on the few tokens of a decode step."""
    experts: float = 1.0
    """What is left of these two where a token's experts are multiplied: many small matrices."""
    fp4: float = 1.0
    """What is left of them in 4-bit arithmetic."""
    overlaps: bool = True
    """Whether reading hides behind computing: then the longer of the two counts, else both do."""
    batched_weights: float = 1.0
    """How much longer weights take as soon as a step has two sequences, where another kernel serves a single one."""
    batched_from: float = 1.0
    """So many sequences pay that whole; fewer the root of their share of it: such kernels work on blocks of rows."""
    layer_s: float = 0.0
    """Launches and gaps of a layer."""
    expert_layer_s: float = 0.0
    """What routing adds to a layer of experts."""
    reduce_s: float = 0.0
    """One all-reduce of a few tokens, or one exchange of tokens between experts."""
    hop_s: float = 10e-6
    """From one pipeline stage to the next."""
    link: float = 0.7
    """Of the link's rate."""
    sequence_s: float = 0.0
    """The host's part of a step for each sequence, the device waiting."""
    token_s: float = 0.0
    """The same beside a device that works: only what is longer than its step shows. No row of TensorRT-LLM's published
    table of throughput is above 43,000 tokens a second for one engine."""
    arithmetic: str | None = None
    """What it multiplies in, whatever the precision of the weights; None = in the precision's own."""
    request_s: float = 0.0
    """What a request costs before its prefill."""
    together: float = 0.1
    """Of the other requests' prefills, the share that a request waits for before its own first token."""
    together_busy: float = 0.0
    """What is added to that share where the engine does nothing but prefill, in proportion."""
    partners: float | None = None
    """Where a prompt holds up all that decode: n requests come to end and begin at once, each waiting for the share
    (n - 1) / (n - 1 + partners) of the others' prefills. None = `together` says it, whatever n."""
    tpot_spread: float
    """Standard deviation of ln(measured / predicted)."""
    ttft_spread: float
    full_spread: float = 0.3
    """The same of the throughput of an engine that is full."""
    source: str

    def weights_penalty(self, sequences: float) -> float:
        """How much longer the weights of a step of so many sequences take than those of a step of one."""
        if sequences <= 1:
            return 1.0
        return max(1.0, self.batched_weights * min(1.0, sqrt(sequences / self.batched_from)))


_GPU = Factors(
    name="gpu",
    weights=0.795,
    cache=0.797,
    prefill=0.48,
    batch=0.48,
    layer_s=23e-6,
    expert_layer_s=26e-6,
    reduce_s=26e-6,
    experts=0.5,
    fp4=0.65,
    token_s=20e-6,
    together=0.05,
    together_busy=0.2,
    request_s=0.010,
    tpot_spread=0.27,
    ttft_spread=0.8,
    full_spread=0.16,
    source=PUBLISHED,
)

_ROWS = (
    _GPU,
    msgspec.structs.replace(_GPU, name="sglang", together=0.2),
    msgspec.structs.replace(_GPU, name="vllm before 0.6", sequence_s=70e-6, source=FIRST_VLLM),
    Factors(
        name="llama.cpp",
        arithmetic="fp16",
        weights=0.65,
        cache=0.6,
        prefill=0.5,
        batch=0.2,
        layer_s=10e-6,
        expert_layer_s=26e-6,
        reduce_s=26e-6,
        partners=4.0,
        request_s=0.010,
        tpot_spread=0.4,
        ttft_spread=0.6,
        source=LLAMACPP_GPU,
    ),
    Factors(
        name="llama.cpp cpu",
        arithmetic="fp16",
        weights=0.8,
        cache=0.5,
        prefill=0.9,
        batch=0.42,
        overlaps=False,
        batched_weights=5.0,
        batched_from=4.0,
        request_s=0.002,
        partners=4.0,
        tpot_spread=0.5,
        ttft_spread=0.6,
        source=LLAMACPP_CPU,
    ),
)

FACTORS: Mapping[str, Factors] = {row.name: row for row in _ROWS}

ENGINES = ("vllm", "sglang", "tensorrt-llm", "tgi", "llama.cpp")


@lru_cache(maxsize=64)
def factors(engine: str, device_kind: str, version: str | None = None) -> Factors:
    """The row of an engine on a kind of device; SpecError `plan_engine_unknown`."""
    if engine not in ENGINES:
        raise SpecError("plan_engine_unknown", engine=engine, known=", ".join(ENGINES))
    if device_kind == "cpu":
        return FACTORS["llama.cpp cpu"]
    if engine == "vllm" and (0,) < (parse_version(version) or (1,)) < (0, 6):
        return FACTORS["vllm before 0.6"]
    return FACTORS.get(engine, _GPU)
