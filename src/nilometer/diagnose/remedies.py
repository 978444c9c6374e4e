"""THE table of remedies: for each cause what to do, in order; and the flags by which each engine does it.

Order: what costs nothing (a cap on the load, a setting) first, then fewer bits, then speculation, then more devices.
`{n}` in a flag is what the remedy computed; a flag without a value is to be set by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from . import gain_models as models
from .case import Case
from .gain import Gain
from .params import slots_at


class Advice(NamedTuple):
    """One remedy of a cause. `to`: what its flags set; where `must` and that is None there is nothing to set."""

    slug: str
    gain: Callable[[Case], Gain | None] = lambda _case: None
    to: Callable[[Case], int | None] = lambda _case: None
    must: bool = False


def _decoding(case: Case) -> int | None:
    slots = slots_at(case)
    return None if slots is None else max(round(slots), 1)


_MORE_REPLICAS_TTFT = Advice("more_replicas", models.twice_the_copies_ttft)
_MORE_REPLICAS_TPOT = Advice("more_replicas", models.twice_the_copies_tpot)
_EIGHT_BIT_CACHE = Advice("kv_8bit", models.twice_held)

ADVICE: Mapping[str, tuple[Advice, ...]] = {
    "generator_limited": (Advice("more_workers"), Advice("other_machine")),
    "too_short": (Advice("longer_test"), Advice("more_runs")),
    "buffered_stream": (Advice("stream_through", models.unbuffered), Advice("measure_direct")),
    "rate_limit": (Advice("offer_less"), Advice("raise_quota"), Advice("count_refusals")),
    "failures": (Advice("no_retries"), Advice("count_failures")),
    "client_pool": (Advice("larger_pool", models.filled),),
    "static_batching": (
        Advice("continuous_batching", models.continuous),
        Advice("group_by_length"),
        Advice("smaller_batch"),
    ),
    "prefill_stalls": (
        Advice("chunked_prefill", models.chunked, models.chunk_to),
        Advice("route_long_prompts"),
        Advice("split_prefill"),
    ),
    "throttling": (Advice("more_power", models.unthrottled), Advice("raise_cpu_quota"), Advice("lock_clocks")),
    "growing_state": (Advice("restart_by_schedule", models.fresh), Advice("find_growth")),
    "noisy_neighbour": (Advice("isolate", models.undisturbed), Advice("measure_again")),
    "careful_admission": (Advice("admit_by_use", models.admitted), Advice("smaller_max_tokens", models.admitted)),
    "kv_reserved": (
        Advice("shorter_context", models.context_cut, models.context_to),
        Advice("share_kv", models.context_cut),
        _EIGHT_BIT_CACHE,
    ),
    "kv_capacity": (
        Advice("fewer_admitted", models.no_preemption, _decoding),
        Advice("more_kv_memory"),
        _EIGHT_BIT_CACHE,
        Advice("shorter_outputs"),
    ),
    "front_end": (
        Advice("more_front_ends", models.spread_front, models.processes_to),
        Advice("stream_less_often"),
        Advice("send_token_ids"),
    ),
    "prefill": (Advice("prefix_cache"), Advice("larger_chunks"), Advice("faster_arithmetic"), _MORE_REPLICAS_TTFT),
    "queue": (
        Advice("cap_load", models.capped),
        Advice("more_slots", models.more_slots, models.slots_to, must=True),
        Advice("shorter_outputs"),
        _MORE_REPLICAS_TTFT,
    ),
    "adapters": (Advice("more_adapters"), Advice("route_adapters"), Advice("merge_adapters")),
    "replica_imbalance": (Advice("route_by_load"), Advice("repair_replica", models.fast_replicas)),
    "poor_drafts": (Advice("drafts_off"), Advice("fewer_drafts"), Advice("better_drafts")),
    "interconnect": (Advice("fewer_ranks"), Advice("faster_link")),
    "decode_compute": (
        Advice("cap_load", models.capped_early),
        Advice("faster_arithmetic", models.faster_arithmetic),
        _MORE_REPLICAS_TPOT,
    ),
    "decode_bandwidth": (
        Advice("quantise_weights", models.half_the_weights),
        Advice("speculate"),
        Advice("larger_batch", models.twice_the_load),
        Advice("tensor_parallel", models.half_the_weights),
    ),
    "cold_start": (Advice("warm_up"), Advice("probe_tokens"), Advice("keep_warm")),
    "prefix_flattered": (Advice("salt_prompts"), Advice("replay_traffic")),
    "short_answers": (Advice("hold_length"), Advice("equal_answers")),
    "unreal_lengths": (Advice("real_lengths"),),
    "grouped_tokens": (Advice("read_tpot"),),
}

ENGINES: Mapping[str, str] = {"llama-server": "llama.cpp", "xllamacpp": "llama.cpp", "embedded": "llama.cpp"}
"""Engines that take another's flags."""

FLAGS: Mapping[str, Mapping[str, str]] = {
    "more_slots": {
        "vllm": "--max-num-seqs {n}",
        "sglang": "--max-running-requests {n}",
        "llama.cpp": "--parallel {n}",
        "tgi": "--max-batch-total-tokens",
        "ollama": "OLLAMA_NUM_PARALLEL={n}",
    },
    "fewer_admitted": {
        "vllm": "--max-num-seqs {n}",
        "sglang": "--max-running-requests {n}",
        "tgi": "--max-batch-total-tokens",
    },
    "continuous_batching": {"llama.cpp": "--cont-batching"},
    "chunked_prefill": {
        "vllm": "--enable-chunked-prefill --max-num-batched-tokens {n}",
        "sglang": "--chunked-prefill-size {n}",
        "llama.cpp": "--batch-size {n} --ubatch-size {n}",
        "tgi": "--max-batch-prefill-tokens {n}",
    },
    "admit_by_use": {"sglang": "--schedule-conservativeness 0.3"},
    "shorter_context": {
        "vllm": "--max-model-len {n}",
        "sglang": "--context-length {n}",
        "tgi": "--max-total-tokens {n}",
        "ollama": "OLLAMA_CONTEXT_LENGTH={n}",
    },
    "share_kv": {"llama.cpp": "--kv-unified"},
    "kv_8bit": {
        "vllm": "--kv-cache-dtype fp8",
        "sglang": "--kv-cache-dtype fp8_e4m3",
        "llama.cpp": "--flash-attn on --cache-type-k q8_0 --cache-type-v q8_0",
        "tgi": "--kv-cache-dtype fp8_e4m3fn",
        "ollama": "OLLAMA_FLASH_ATTENTION=1 OLLAMA_KV_CACHE_TYPE=q8_0",
    },
    "more_kv_memory": {
        "vllm": "--gpu-memory-utilization",
        "sglang": "--mem-fraction-static",
        "tgi": "--cuda-memory-fraction",
    },
    "more_front_ends": {
        "vllm": "--api-server-count {n}",
        "sglang": "--tokenizer-worker-num {n}",
        "llama.cpp": "--threads-http {n}",
        "tgi": "--validation-workers {n}",
    },
    "stream_less_often": {"vllm": "--stream-interval 4", "sglang": "--stream-interval 4"},
    "prefix_cache": {
        "vllm": "--enable-prefix-caching",
        "llama.cpp": "--cache-prompt",
        "tgi": "USE_PREFIX_CACHING=1",
    },
    "larger_chunks": {
        "vllm": "--max-num-batched-tokens 8192",
        "sglang": "--chunked-prefill-size 8192",
        "llama.cpp": "--batch-size 2048 --ubatch-size 2048",
        "tgi": "--max-batch-prefill-tokens 8192",
    },
    "faster_arithmetic": {
        "vllm": "--quantization fp8",
        "sglang": "--quantization fp8",
        "tgi": "--quantize fp8",
    },
    "quantise_weights": {
        "vllm": "--quantization fp8",
        "sglang": "--quantization fp8",
        "tgi": "--quantize fp8",
    },
    "speculate": {
        "vllm": """--speculative-config '{"method":"ngram","num_speculative_tokens":4,"prompt_lookup_max":4}'""",
        "sglang": "--speculative-algorithm NGRAM",
        "llama.cpp": "--spec-type ngram-simple",
        "tgi": "--speculate 2",
    },
    "fewer_drafts": {"sglang": "--speculative-num-draft-tokens", "llama.cpp": "--spec-draft-n-max"},
    "tensor_parallel": {
        "vllm": "--tensor-parallel-size 2",
        "sglang": "--tp-size 2",
        "tgi": "--num-shard 2",
    },
    "more_replicas": {"vllm": "--data-parallel-size 2", "sglang": "--dp-size 2"},
    "more_adapters": {"vllm": "--max-loras", "sglang": "--max-loras-per-batch"},
    "warm_up": {"llama.cpp": "--warmup"},
    "keep_warm": {"ollama": "OLLAMA_KEEP_ALIVE=-1"},
}
"""By remedy and engine; an engine that is not named has no flag for it, or has it on already."""
