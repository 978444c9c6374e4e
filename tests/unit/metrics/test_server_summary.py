"""A server's pages over a window as the flat figures of a Summary: by hand from two or three small pages."""

from __future__ import annotations

from msgspec.structs import replace

from nilometer.metrics.engine_pages import FAMILIES
from nilometer.metrics.page_engines import adapter_waits, loads
from nilometer.metrics.pages import Page, read
from nilometer.metrics.server_figures import Slots
from nilometer.metrics.server_summary import told
from nilometer.metrics.server_watch import Seen, Watch, watch

S = 1_000_000_000


def page(*lines: str) -> Page:
    return read("\n".join(lines) + "\n", FAMILIES)


def watched(*pages: Page) -> Watch:
    """A page a second, each answered within 20 ms."""
    found = watch([Seen(i * S, i * S + 20_000_000, one) for i, one in enumerate(pages)], 0, len(pages) * S)
    assert found is not None
    return found


def vllm(running: int, waiting: int, kv: float, tokens: int, queued: tuple[float, int] = (0, 0)) -> Page:
    return page(
        f"vllm:num_requests_running {running}",
        f"vllm:num_requests_waiting {waiting}",
        f"vllm:kv_cache_usage_perc {kv}",
        f"vllm:generation_tokens_total {tokens}",
        f"vllm:num_preemptions_total {tokens // 100}",
        f"vllm:request_queue_time_seconds_sum {queued[0]}",
        f"vllm:request_queue_time_seconds_count {queued[1]}",
        f'vllm:request_queue_time_seconds_bucket{{le="+Inf"}} {queued[1]}',
    )


def test_gauges_are_of_every_page_and_counts_between_the_ends() -> None:
    found = told(
        watched(vllm(4, 0, 0.25, 100, (1.0, 10)), vllm(8, 3, 0.5, 200, (2.0, 12)), vllm(6, 3, 1.0, 400, (5.0, 18)))
    )
    assert found["pages"] == 3
    assert found["covered_s"] == 2
    assert (found["restarts"], found["engines"]) == (0, 1)
    assert (found["running_mean"], found["running_max"]) == (6, 8)
    assert (found["waiting_mean"], found["waiting_max"], found["waiting_above_zero"]) == (2, 3, 2 / 3)
    assert (found["kv_usage_mean"], found["kv_usage_max"]) == (7 / 12, 1)
    assert found["waiting_with_room"] == 1 / 3  # the second page alone: 3 waiting, half of the cache free
    assert (found["generation_tokens"], found["preemptions"]) == (300, 3)
    assert found["queue_mean_s"] == 0.5  # 4 s of 8 requests


def test_what_no_page_tells_is_not_there() -> None:
    found = told(watched(vllm(1, 0, 0.1, 0), vllm(1, 0, 0.1, 10)))
    assert found.keys().isdisjoint(
        {"slots", "context_tokens", "acceptance_ratio", "ttft_mean_s", "running_spread", "adapters_waiting", "failed"}
    )
    assert "queue_mean_s" not in found  # none ended in between


def test_a_page_of_no_known_engine_tells_nothing() -> None:
    assert told(watched(page("process_cpu_seconds_total 1"), page("process_cpu_seconds_total 2"))) == {}


def test_replicas_on_one_page_are_spread_by_the_requests_each_holds() -> None:
    """Engine 0 has 6 and 10 requests, engine 1 has 2 and 2: 16 over 4."""

    def two(running: int, waiting: int) -> Page:
        return page(
            f'vllm:num_requests_running{{engine="0"}} {running}',
            'vllm:num_requests_running{engine="1"} 2',
            f'vllm:num_requests_waiting{{engine="0"}} {waiting}',
            'vllm:num_requests_waiting{engine="1"} 0',
            "vllm:prefix_cache_queries_total 0",
        )

    found = told(watched(two(4, 2), two(4, 6)))
    assert found["running_spread"] == 4
    assert found["engines"] == 2
    assert loads(two(4, 2)) == {(("engine", "0"),): 6, (("engine", "1"),): 2}
    assert loads(vllm(4, 2, 0.1, 0)) == {}


def test_an_idle_replica_has_no_ratio() -> None:
    one = page('vllm:num_requests_running{engine="0"} 3', 'vllm:num_requests_running{engine="1"} 0')
    assert "running_spread" not in told(watched(one, one))


def test_ranks_of_one_engine_are_the_same_requests() -> None:
    one = page(
        'sglang:num_running_reqs{dp_rank="0",tp_rank="0"} 3',
        'sglang:num_running_reqs{dp_rank="0",tp_rank="1"} 3',
        'sglang:num_running_reqs{dp_rank="1",tp_rank="0"} 1',
    )
    assert loads(one) == {(("dp_rank", "0"),): 3, (("dp_rank", "1"),): 1}
    assert told(watched(one, one))["running_spread"] == 3


def adapters(*told: tuple[str, int]) -> Page:
    rows = [
        f'vllm:lora_requests_info{{max_lora="1",running_lora_adapters="a",waiting_lora_adapters="{names}"}} {at}'
        for names, at in told
    ]
    return page("vllm:num_requests_running 1", *rows)


def test_an_adapter_waits_where_the_latest_word_names_one() -> None:
    """What was told before stays on the page: 100 s is older than 103 s, wherever it stands."""
    waits, done, none = adapters(("b", 101)), adapters(("b", 101), ("", 103)), adapters()
    again = adapters(("", 103), ("b,c", 104))
    assert [adapter_waits(one) for one in (waits, done, none, again)] == [True, False, None, True]
    assert told(watched(waits, done, again, again))["adapters_waiting"] == 3 / 4


def test_slots_are_told_beside_the_page() -> None:
    """llama.cpp's mean of busy slots is since its start: 2 over 100 calls, then 3 over 200, so 4 over those between."""

    def llama(calls: int, busy: float, tokens: int) -> Page:
        return page(
            "llamacpp:requests_processing 4",
            "llamacpp:requests_deferred 1",
            f"llamacpp:n_decode_total {calls}",
            f"llamacpp:n_busy_slots_per_decode {busy}",
            f"llamacpp:tokens_predicted_total {tokens}",
            "llamacpp:prompt_tokens_total 7",
            "llamacpp:prompt_tokens_cached_total 21",
        )

    seen = watched(llama(100, 2, 150), llama(200, 3, 500))
    seen = replace(seen, figures=replace(seen.figures, slots=Slots(total=4, context_tokens=256)))
    found = told(seen)
    assert (found["slots"], found["context_tokens"], found["busy_slots_mean"]) == (4, 256, 4)
    assert found["tokens_per_decode"] == 3.5
    assert "waiting_with_room" not in found  # it tells no KV use
    assert found["cached_tokens"] == 0  # nothing in between
    assert "prefix_hit_ratio" not in found


def test_speculation_by_its_counts() -> None:
    """Of 50 drafts with 200 tokens 100 were taken: half, and 1 + 2 tokens a step."""

    def spec(drafts: int, drafted: int, accepted: int) -> Page:
        return page(
            "vllm:num_requests_running 1",
            f"vllm:spec_decode_num_drafts_total {drafts}",
            f"vllm:spec_decode_num_draft_tokens_total {drafted}",
            f"vllm:spec_decode_num_accepted_tokens_total {accepted}",
        )

    found = told(watched(spec(10, 40, 40), spec(60, 240, 140)))
    assert (found["draft_tokens"], found["acceptance_ratio"], found["acceptance_length"]) == (200, 0.5, 3)
