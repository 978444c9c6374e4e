"""The table of dialects: each engine is known by its names, and says what it says."""

from __future__ import annotations

import pytest

from nilometer.metrics.engine_pages import DIALECTS, FAMILIES, dialect_of
from nilometer.metrics.pages import read
from nilometer.metrics.server_figures import KvUsage, ServerFigures, Speculation, figures

SGLANG = """\
# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{dp_rank="0",engine_type="unified",model_name="m",tp_rank="0"} 5.0
sglang:num_running_reqs{dp_rank="0",engine_type="unified",model_name="m",tp_rank="1"} 5.0
sglang:num_running_reqs{dp_rank="1",engine_type="unified",model_name="m",tp_rank="0"} 7.0
sglang:num_queue_reqs{dp_rank="0",model_name="m",tp_rank="0"} 3.0
sglang:num_queue_reqs{dp_rank="1",model_name="m",tp_rank="0"} 0.0
sglang:token_usage{dp_rank="0",model_name="m",tp_rank="0"} 0.91
sglang:token_usage{dp_rank="0",model_name="m",tp_rank="1"} 0.91
sglang:token_usage{dp_rank="1",model_name="m",tp_rank="0"} 0.28
sglang:max_total_num_tokens{dp_rank="0",model_name="m",tp_rank="0"} 20480.0
sglang:max_total_num_tokens{dp_rank="0",model_name="m",tp_rank="1"} 20480.0
sglang:max_total_num_tokens{dp_rank="1",model_name="m",tp_rank="0"} 20480.0
sglang:num_retracted_reqs{dp_rank="0",model_name="m",tp_rank="0"} 2.0
# TYPE sglang:num_retracted_requests_total counter
sglang:num_retracted_requests_total{dp_rank="0",model_name="m",tp_rank="0"} 9.0
# TYPE sglang:prompt_tokens_total counter
sglang:prompt_tokens_total{model_name="m"} 8000.0
sglang:cached_tokens_total{model_name="m",cache_source="device"} 2000.0
sglang:generation_tokens_total{model_name="m"} 7000.0
sglang:time_to_first_token_seconds_bucket{is_streaming="true",le="0.1",model_name="m"} 2.0
sglang:time_to_first_token_seconds_bucket{is_streaming="true",le="+Inf",model_name="m"} 2.0
sglang:time_to_first_token_seconds_count{is_streaming="true",model_name="m"} 2.0
sglang:time_to_first_token_seconds_sum{is_streaming="true",model_name="m"} 0.1
sglang:time_to_first_token_seconds_bucket{is_streaming="false",le="0.1",model_name="m"} 0.0
sglang:time_to_first_token_seconds_bucket{is_streaming="false",le="+Inf",model_name="m"} 1.0
sglang:time_to_first_token_seconds_count{is_streaming="false",model_name="m"} 1.0
sglang:time_to_first_token_seconds_sum{is_streaming="false",model_name="m"} 0.9
"""
TRITON = """\
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="context",version="1"} 1
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="scheduled",version="1"} 6
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="max",version="1"} 512
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="active",version="1"} 8
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="waiting",version="1"} 2
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="tokens_per",model="tensorrt_llm",version="1"} 64
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="used",model="tensorrt_llm",version="1"} 1600
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="free",model="tensorrt_llm",version="1"} 4800
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="max",model="tensorrt_llm",version="1"} 6400
"""
TRTLLM = """\
trtllm_request_success_total{engine_type="trtllm",finished_reason="stop",model_name="m"} 95
trtllm_request_success_total{engine_type="trtllm",finished_reason="length",model_name="m"} 5
trtllm_kv_cache_utilization{engine_type="trtllm",model_name="m"} 0.62
trtllm_kv_cache_hit_rate{engine_type="trtllm",model_name="m"} 0.38
trtllm_time_to_first_token_seconds_bucket{le="0.1"} 85
trtllm_time_to_first_token_seconds_bucket{le="0.5"} 100
trtllm_time_to_first_token_seconds_bucket{le="+Inf"} 100
trtllm_time_to_first_token_seconds_sum 5.2
trtllm_time_to_first_token_seconds_count 100
"""


def told(text: str, before: str | None = None) -> ServerFigures:
    return figures(read(text, FAMILIES), None if before is None else read(before, FAMILIES))


def test_sglang_counts_each_replica_once_whatever_its_ranks() -> None:
    found = told(SGLANG)
    assert (found.engine, found.engines, found.running, found.waiting) == ("sglang", 2, 12, 3)
    assert found.kv_usage == KvUsage(max=0.91, per_engine=[0.91, 0.28])
    assert found.kv_capacity_tokens == 40_960
    assert (found.preemptions, found.prefix_hit_ratio) == (9, 0.25)
    assert (found.prompt_tokens, found.generation_tokens) == (8000, 7000)


def test_sglang_has_no_first_token_of_a_request_that_was_not_streamed() -> None:
    ttft = told(SGLANG).latencies["ttft"]
    assert (ttft.count, ttft.mean_s) == (2, 0.05)


def test_sglang_tells_its_speculation_as_two_gauges() -> None:
    spec = "sglang:spec_accept_length 2.6\nsglang:spec_accept_rate 0.4\n"
    assert told(SGLANG + spec).spec == Speculation(acceptance_ratio=0.4, acceptance_length=2.6)
    assert told(SGLANG + "sglang:spec_accept_length 0\n").spec is None


def test_triton_tells_blocks_and_no_share_in_its_older_backend() -> None:
    found = told(TRITON)
    assert (found.engine, found.dialect, found.running, found.waiting) == ("tensorrt-llm", "triton", 6, 2)
    assert found.kv_usage == KvUsage(max=0.25, per_engine=[0.25])
    assert found.kv_capacity_tokens == 409_600
    share = 'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="fraction"} 0.3\n'
    assert told(TRITON + share).kv_usage == KvUsage(max=0.3, per_engine=[0.3])


@pytest.mark.parametrize("text", [TRTLLM, TRTLLM.replace("trtllm_", "trtllm:")])
def test_tensorrt_llm_by_itself_and_behind_dynamo(text: str) -> None:
    found = told(text)
    assert (found.engine, found.dialect, found.ok) == ("tensorrt-llm", "trtllm", 100)
    assert found.finished == {"stop": 95, "length": 5}
    assert found.kv_usage == KvUsage(max=0.62, per_engine=[0.62])
    assert found.prefix_hit_ratio == 0.38
    assert found.latencies["ttft"].mean_s == pytest.approx(0.052)


@pytest.mark.parametrize(
    ("names", "dialect"),
    [
        ("vllm:gpu_cache_usage_perc vllm:num_requests_swapped", "v0"),
        ("vllm:gpu_cache_usage_perc", "v0"),
        ("vllm:gpu_cache_usage_perc vllm:gpu_prefix_cache_queries", "v1"),
        ("vllm:kv_cache_usage_perc vllm:gpu_cache_usage_perc", "v1"),
        ("vllm:inter_token_latency_seconds", "v1"),
        ("vllm:prompt_tokens", None),
    ],
)
def test_the_ages_of_vllm(names: str, dialect: str | None) -> None:
    found = dialect_of(frozenset(names.split()))
    assert found is not None
    assert (found.engine, found.name) == ("vllm", dialect)


def test_of_two_names_for_one_thing_the_new_one_holds_and_neither_is_added() -> None:
    found = told(
        "vllm:kv_cache_usage_perc 0.5\nvllm:gpu_cache_usage_perc 0.5\n"
        "vllm:prefix_cache_queries_total 10\nvllm:gpu_prefix_cache_queries_total 10\n"
        "vllm:prefix_cache_hits_total 4\nvllm:gpu_prefix_cache_hits_total 4\n"
    )
    assert (found.kv_usage, found.prefix_hit_ratio) == (KvUsage(max=0.5, per_engine=[0.5]), 0.4)


def test_the_hit_rate_of_an_old_vllm_is_no_window_and_minus_one_is_none() -> None:
    page = "vllm:num_requests_swapped 0\nvllm:gpu_prefix_cache_hit_rate {}\n"
    assert told(page.format(0.3)).prefix_hit_ratio == 0.3
    assert told(page.format(-1)).prefix_hit_ratio is None
    assert told(page.format(0.3), page.format(0.2)).prefix_hit_ratio is None


def test_a_block_count_that_is_not_settled_is_no_capacity() -> None:
    page = 'vllm:kv_cache_usage_perc 0\nvllm:cache_config_info{{block_size="16",num_gpu_blocks="{}"}} 1\n'
    assert told(page.format("573")).kv_capacity_tokens == 9_168
    for word in ("None", "", "-1", "9" * 400, "²"):
        assert told(page.format(word)).kv_capacity_tokens is None


LLAMACPP = (
    "llamacpp:prompt_tokens_total {0}\nllamacpp:prompt_seconds_total {1}\nllamacpp:tokens_predicted_total {2}\n"
    "llamacpp:tokens_predicted_seconds_total {3}\nllamacpp:n_decode_total {4}\n"
    "llamacpp:n_busy_slots_per_decode {5}\nllamacpp:predicted_tokens_seconds 999\n"
)


def test_the_busy_slots_of_a_window_are_made_from_two_lifetime_means() -> None:
    """100 calls with 1 slot busy, then 100 with 3: the page says 2, the window is 3."""
    before, after = LLAMACPP.format(100, 1, 100, 10, 100, 1.0), LLAMACPP.format(500, 3, 400, 40, 200, 2.0)
    found = figures(read(after, FAMILIES), read(before, FAMILIES), 60.0)
    assert (found.busy_slots_mean, found.tokens_per_decode) == (3.0, 3.0)
    assert (found.prompt_tps, found.decode_tps_per_slot, found.generation_tps) == (200.0, 10.0, 5.0)
    assert told(after).busy_slots_mean == 2.0
    assert told(before, after).busy_slots_mean == 1.0  # started anew: its own mean is that since


def test_llama_cpp_counts_prompts_without_what_its_cache_held() -> None:
    page = LLAMACPP.format(300, 1, 100, 10, 100, 1.0) + "llamacpp:prompt_tokens_cached_total 100\n"
    found = told(page)
    assert (found.prompt_tokens, found.cached_tokens, found.prefix_hit_ratio) == (300, 100, 0.25)
    assert told(LLAMACPP.format(300, 1, 100, 10, 100, 1.0)).prefix_hit_ratio is None


def test_an_older_llama_cpp_tells_its_cache() -> None:
    page = LLAMACPP.format(1, 1, 1, 1, 1, 1.0) + "llamacpp:kv_cache_usage_ratio 0.75\n"
    assert told(page).kv_usage == KvUsage(max=0.75, per_engine=[0.75])


def test_counts_of_nothing_give_no_ratio() -> None:
    found = told(
        "vllm:kv_cache_usage_perc 0\nvllm:prefix_cache_queries_total 0\nvllm:prefix_cache_hits_total 0\n"
        "vllm:spec_decode_num_draft_tokens_total 0\nvllm:spec_decode_num_accepted_tokens_total 0\n"
        "vllm:time_to_first_token_seconds_count 0\nvllm:time_to_first_token_seconds_sum 0\n"
    )
    assert (found.prefix_hit_ratio, found.spec, found.kv_usage) == (None, None, KvUsage(max=0, per_engine=[0]))
    assert (found.latencies["ttft"].count, found.latencies["ttft"].mean_s) == (0, None)


def test_an_unknown_page_is_of_no_engine_and_its_names_are_told() -> None:
    found = told("go_goroutines 7\nenvoy_requests_total 3\n")
    assert (found.engine, found.dialect, found.engines, found.running) == (None, None, None, None)
    assert found.names == ["go_goroutines", "envoy_requests"]


def test_every_dialect_is_known_by_its_own_marks_alone() -> None:
    for dialect in DIALECTS:
        for mark in dialect.marks:
            found = dialect_of(frozenset([mark]))
            assert found is not None
            assert found.engine == dialect.engine
