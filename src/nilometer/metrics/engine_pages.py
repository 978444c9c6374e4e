"""THE table of engines by their metrics pages: which family holds what, in common terms.

Each dialect is known by the names that are present. Of several families for one thing the first that is there holds:
engines rename (`gpu_cache_usage_perc`, `kv_cache_usage_perc`) and show both for a while. What a dialect has no family
for is unknown. A new engine is one more row; nothing is read here.

Names as the engines' sources and reference pages write them: vLLM `vllm/engine/metrics.py` (V0) and
`vllm/v1/metrics/loggers.py` (V1), SGLang `srt/metrics/collector.py`, TGI's metrics reference, llama.cpp
`tools/server/server-context.cpp`, TensorRT-LLM `tensorrt_llm/metrics/collector.py`, the Triton backend's metrics.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

Gap = Literal["gap between tokens", "mean of a request"]


class Family(NamedTuple):
    """A family of a page: only the series with the labels `where` and without those of `but`.

    `part` picks `_sum` or `_count` of a histogram as a figure of its own.
    """

    name: str
    where: tuple[tuple[str, str], ...] = ()
    but: tuple[tuple[str, str], ...] = ()
    part: str = ""

    @property
    def key(self) -> str:
        return self.name + self.part


Families = tuple[Family, ...]


class Dialect(NamedTuple):
    """How one engine, or one age of it, writes its page.

    `marks`: it is this one if any of these is there. `gauges` are read as they stand, `counters` only grow since the
    start, `ratios` are shares of 1. `engine_labels` tell replicas on one page apart; series that differ only in a
    label of `ranks` repeat the same thing.
    """

    engine: str
    name: str | None
    marks: tuple[str, ...]
    gauges: Mapping[str, Families] = {}
    ratios: Mapping[str, Families] = {}
    counters: Mapping[str, Families] = {}
    histograms: Mapping[str, Families] = {}
    by_label: Mapping[str, tuple[Families, str]] = {}
    """Counters told apart by a label: finish reasons."""
    blocks: tuple[Family, str, str] | None = None
    """An info series whose labels hold the number of KV blocks and the tokens of one."""
    block_gauges: tuple[Family, Family] | None = None
    """The same as two gauges."""
    waiting_adapters: tuple[Family, str] | None = None
    """An info series that is told anew when it changes, its value the time; its label names the adapters that wait."""

    @property
    def families(self) -> frozenset[str]:
        """Every family that it reads."""
        rows = [self.gauges, self.ratios, self.counters, self.histograms]
        found = {family.name for table in rows for families in table.values() for family in families}
        found |= {family.name for families, _ in self.by_label.values() for family in families}
        found |= {family.name for family in self.block_gauges or ()}
        found |= {told[0].name for told in (self.blocks, self.waiting_adapters) if told}
        return frozenset(found | set(self.marks))


ENGINE_LABELS = ("instance", "pod", "engine", "dp_rank")
RANK_LABELS = ("tp_rank", "pp_rank", "moe_ep_rank")


def _f(*names: str) -> Families:
    return tuple(Family(name) for name in names)


_VLLM_COMMON = {
    "prompt_tokens": _f("vllm:prompt_tokens"),
    "generation_tokens": _f("vllm:generation_tokens"),
    "preemptions": _f("vllm:num_preemptions"),
    "prefix_queries": _f("vllm:prefix_cache_queries", "vllm:gpu_prefix_cache_queries"),
    "prefix_hits": _f("vllm:prefix_cache_hits", "vllm:gpu_prefix_cache_hits"),
    "spec_drafts": _f("vllm:spec_decode_num_drafts"),
    "spec_draft_tokens": _f("vllm:spec_decode_num_draft_tokens"),
    "spec_accepted": _f("vllm:spec_decode_num_accepted_tokens"),
    "requests": _f("vllm:request_success"),  # aborted ones are among them
}
_VLLM_HISTOGRAMS = {
    "ttft": _f("vllm:time_to_first_token_seconds"),
    "inter_token": _f("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"),
    "request_tpot": _f("vllm:request_time_per_output_token_seconds"),
    "queue": _f("vllm:request_queue_time_seconds"),
    "prefill": _f("vllm:request_prefill_time_seconds"),
    "decode": _f("vllm:request_decode_time_seconds"),
    "e2e": _f("vllm:e2e_request_latency_seconds"),
    "step_tokens": _f("vllm:iteration_tokens_total"),
}
_VLLM_GAUGES = {
    "running": _f("vllm:num_requests_running"),
    "waiting": _f("vllm:num_requests_waiting"),
    "swapped": _f("vllm:num_requests_swapped"),
}
_VLLM_KV = _f("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")
_VLLM_FINISHED = {"finished": (_f("vllm:request_success"), "finished_reason")}
_VLLM_BLOCKS = (Family("vllm:cache_config_info"), "num_gpu_blocks", "block_size")
_V0_HIT_RATE = "vllm:gpu_prefix_cache_hit_rate"

VLLM_V1 = Dialect(
    "vllm",
    "v1",
    (
        "vllm:kv_cache_usage_perc",
        "vllm:inter_token_latency_seconds",
        "vllm:request_time_per_output_token_seconds",
        "vllm:prefix_cache_queries",
        "vllm:gpu_prefix_cache_queries",
        "vllm:num_requests_waiting_by_reason",
        "vllm:engine_sleep_state",
    ),
    _VLLM_GAUGES,
    {"kv_usage": _VLLM_KV},
    _VLLM_COMMON,
    _VLLM_HISTOGRAMS,
    _VLLM_FINISHED,
    _VLLM_BLOCKS,
    waiting_adapters=(Family("vllm:lora_requests_info"), "waiting_lora_adapters"),
)
VLLM_V0 = VLLM_V1._replace(
    name="v0",
    marks=("vllm:num_requests_swapped", "vllm:cpu_cache_usage_perc", _V0_HIT_RATE, "vllm:gpu_cache_usage_perc"),
    ratios={"kv_usage": _VLLM_KV, "prefix_hit_ratio": _f(_V0_HIT_RATE)},
)
VLLM_ANY = VLLM_V1._replace(
    name=None, marks=tuple(sorted({f.name for table in (_VLLM_COMMON, _VLLM_HISTOGRAMS, _VLLM_GAUGES)
                                   for families in table.values() for f in families}))
)  # fmt: skip
"""A page, or a part of one, without any name that tells the age."""

SGLANG = Dialect(
    "sglang",
    "sglang",
    ("sglang:num_running_reqs", "sglang:num_queue_reqs", "sglang:token_usage", "sglang:prompt_tokens"),
    {
        "running": _f("sglang:num_running_reqs"),
        "waiting": _f("sglang:num_queue_reqs"),
        "kv_capacity_tokens": _f("sglang:max_total_num_tokens"),
    },
    {
        "kv_usage": _f("sglang:token_usage"),
        "prefix_hit_ratio": _f("sglang:cache_hit_rate"),
        "spec_acceptance_ratio": _f("sglang:spec_accept_rate"),
        "spec_acceptance_length": _f("sglang:spec_accept_length"),
    },
    {
        "prompt_tokens": _f("sglang:prompt_tokens"),
        "generation_tokens": _f("sglang:generation_tokens"),
        "preemptions": _f("sglang:num_retracted_requests"),
        "prefix_queries": _f("sglang:prompt_tokens"),
        "prefix_hits": _f("sglang:cached_tokens"),
        "requests": _f("sglang:num_requests"),
        "failed": _f("sglang:num_aborted_requests"),
    },
    {
        # Of a request that was not streamed the first token comes with the last.
        "ttft": (Family("sglang:time_to_first_token_seconds", but=(("is_streaming", "false"),)),),
        # The older name counts tokens as well, not requests: a page shows about as many as tokens were generated.
        "inter_token": _f("sglang:inter_token_latency_seconds", "sglang:time_per_output_token_seconds"),
        "request_tpot": _f("sglang:request_time_per_output_token_seconds"),
        "queue": _f("sglang:queue_time_seconds"),
        "e2e": _f("sglang:e2e_request_latency_seconds"),
    },
)
TGI = Dialect(
    "tgi",
    "tgi",
    ("tgi_queue_size", "tgi_batch_current_size", "tgi_request_count", "tgi_request_duration"),
    {"running": _f("tgi_batch_current_size"), "waiting": _f("tgi_queue_size")},
    {},
    {
        "prompt_tokens": (Family("tgi_request_input_length", part="_sum"),),
        "generation_tokens": (Family("tgi_request_generated_tokens", part="_sum"),),
        "requests": _f("tgi_request_count"),
        "ok": _f("tgi_request_success"),
        "failed": _f("tgi_request_failure"),
    },
    {
        "request_tpot": _f("tgi_request_mean_time_per_token_duration"),
        "queue": _f("tgi_request_queue_duration"),
        "e2e": _f("tgi_request_duration"),
    },
)
LLAMACPP = Dialect(
    "llama.cpp",
    "llama.cpp",
    ("llamacpp:tokens_predicted", "llamacpp:requests_processing", "llamacpp:prompt_tokens"),
    {"running": _f("llamacpp:requests_processing"), "waiting": _f("llamacpp:requests_deferred")},
    {"kv_usage": _f("llamacpp:kv_cache_usage_ratio"), "busy_slots": _f("llamacpp:n_busy_slots_per_decode")},
    # `prompt_tokens_seconds` and `predicted_tokens_seconds` are speeds, since the page was last asked for: not read.
    {
        "prompt_tokens": _f("llamacpp:prompt_tokens"),
        "cached_tokens": _f("llamacpp:prompt_tokens_cached"),
        "generation_tokens": _f("llamacpp:tokens_predicted"),
        "prompt_seconds": _f("llamacpp:prompt_seconds"),
        "decode_seconds": _f("llamacpp:tokens_predicted_seconds"),
        "decode_calls": _f("llamacpp:n_decode"),
        "spec_drafts": _f("llamacpp:spec_decode_num_drafts"),
        "spec_draft_tokens": _f("llamacpp:spec_decode_num_draft_tokens"),
        "spec_accepted": _f("llamacpp:spec_decode_num_accepted_tokens"),
    },
)


def _t(name: str) -> Families:
    return _f(f"trtllm_{name}", f"trtllm:{name}")


TRTLLM = Dialect(
    "tensorrt-llm",
    "trtllm",
    tuple(
        f"trtllm{sign}{name}"
        for sign in "_:"
        for name in ("request_success", "num_requests_running", "kv_cache_utilization", "time_to_first_token_seconds")
    ),
    {"running": _t("num_requests_running"), "waiting": _t("num_requests_waiting")},
    {"kv_usage": _t("kv_cache_utilization"), "prefix_hit_ratio": _t("kv_cache_hit_rate")},
    {
        "prompt_tokens": _t("prompt_tokens"),
        "generation_tokens": _t("generation_tokens"),
        "ok": _t("request_success"),
    },
    {
        "ttft": _t("time_to_first_token_seconds"),
        "request_tpot": _t("time_per_output_token_seconds"),
        "queue": _t("request_queue_time_seconds"),
        "prefill": _t("request_prefill_time_seconds"),
        "decode": _t("request_decode_time_seconds"),
        "e2e": _t("e2e_request_latency_seconds"),
    },
    {"finished": (_t("request_success"), "finished_reason")},
    block_gauges=(Family("trtllm_kv_cache_max_blocks"), Family("trtllm_kv_cache_tokens_per_block")),
)


def _requests(kind: str) -> Family:
    return Family("nv_trt_llm_request_metrics", (("request_type", kind),))


def _blocks(kind: str) -> Family:
    return Family("nv_trt_llm_kv_cache_block_metrics", (("kv_cache_block_type", kind),))


TRITON = Dialect(
    "tensorrt-llm",
    "triton",
    ("nv_trt_llm_request_metrics", "nv_trt_llm_kv_cache_block_metrics"),
    # `active` are all that were taken in; `scheduled` those in the step that runs.
    {
        "running": (_requests("scheduled"),),
        "waiting": (_requests("waiting"),),
        "kv_used": (_blocks("used"),),
        "kv_held": (_blocks("max"),),
    },
    {"kv_usage": (_blocks("fraction"),)},
    {
        "prompt_tokens": (Family("nv_llm_input_token_len", part="_sum"),),
        "generation_tokens": (Family("nv_llm_output_token_len", part="_sum"),),
    },
    block_gauges=(_blocks("max"), _blocks("tokens_per")),
)

DIALECTS = (VLLM_V1, VLLM_V0, VLLM_ANY, SGLANG, TGI, LLAMACPP, TRTLLM, TRITON)
"""In the order they are tried: a page may hold the marks of two."""

FAMILIES: frozenset[str] = frozenset().union(*(dialect.families for dialect in DIALECTS))
"""All that any of them reads."""

KINDS: Mapping[str, Gap] = {"inter_token": "gap between tokens", "request_tpot": "mean of a request"}
"""What a time per token is, where it is told: the gaps, or the mean of each request."""


def dialect_of(names: frozenset[str]) -> Dialect | None:
    """The dialect of a page by the families on it; None where no engine is known that writes them."""
    return next((dialect for dialect in DIALECTS if not names.isdisjoint(dialect.marks)), None)
