"""What came about between two pages: differences, restarts, engines that come and go."""

from __future__ import annotations

import pytest

from nilometer.metrics.engine_pages import FAMILIES, VLLM_V1
from nilometer.metrics.page_growth import engine_of, growth
from nilometer.metrics.pages import Page, read
from nilometer.metrics.server_figures import ServerFigures, figures


def page(**counted: tuple[float, ...]) -> Page:
    """Pages of a vLLM: per engine (tokens, requests waiting, TTFT up to 0.5 s, of all, its sum)."""
    rows = []
    for name, (tokens, waiting, low, count, total) in counted.items():
        labels = f'engine="{name.removeprefix("e")}",model_name="m"'
        rows += [
            f"vllm:kv_cache_usage_perc{{{labels}}} 0.5",
            f"vllm:num_requests_waiting{{{labels}}} {waiting}",
            f"vllm:generation_tokens_total{{{labels}}} {tokens}",
            f'vllm:time_to_first_token_seconds_bucket{{{labels},le="0.1"}} 0',
            f'vllm:time_to_first_token_seconds_bucket{{{labels},le="0.5"}} {low}',
            f'vllm:time_to_first_token_seconds_bucket{{{labels},le="+Inf"}} {count}',
            f"vllm:time_to_first_token_seconds_count{{{labels}}} {count}",
            f"vllm:time_to_first_token_seconds_sum{{{labels}}} {total}",
        ]
    return read("\n".join(rows), FAMILIES)


def told(before: Page, after: Page, elapsed_s: float | None = 10.0) -> ServerFigures:
    return figures(after, before, elapsed_s)


def test_counts_are_differences_and_gauges_are_those_of_the_later_page() -> None:
    found = told(page(e0=(1000, 9, 80, 100, 50.0)), page(e0=(1200, 2, 90, 110, 54.0)))
    assert (found.generation_tokens, found.generation_tps, found.waiting) == (200, 20.0, 2)
    ttft = found.latencies["ttft"]
    assert (ttft.count, ttft.mean_s) == (10, 0.4)
    assert ttft.p50_s == pytest.approx(0.1 + 0.4 * 5 / 10)
    assert (found.reset, found.appeared, found.vanished) == (False, 0, 0)


def test_without_the_time_between_there_is_no_rate() -> None:
    found = told(page(e0=(1000, 9, 80, 100, 50.0)), page(e0=(1200, 2, 90, 110, 54.0)), None)
    assert (found.generation_tokens, found.elapsed_s) == (200, None)
    assert {found.generation_tps, found.input_tps, found.requests_per_s, found.prompt_tps} == {None}


def test_an_engine_that_was_started_anew_counts_from_there_and_gives_no_rate() -> None:
    """Engine 1 counted 300 since its start; that a bucket of it is larger by now makes it no continuation."""
    before = page(e0=(1000, 0, 80, 100, 50.0), e1=(5000, 0, 1, 100, 60.0))
    after = page(e0=(1100, 0, 80, 100, 50.0), e1=(300, 0, 4, 10, 6.0))
    found = told(before, after)
    assert (found.reset, found.generation_tokens, found.generation_tps) == (True, 400, None)
    assert (found.latencies["ttft"].count, found.latencies["ttft"].mean_s) == (10, 0.6)
    assert growth(before, after, VLLM_V1).restarted == {(("engine", "1"),)}


def test_an_engine_that_came_is_taken_in_whole_and_one_that_went_is_left_out() -> None:
    before = page(e0=(1000, 0, 80, 100, 50.0), e1=(5000, 3, 1, 100, 60.0))
    after = page(e0=(1100, 0, 80, 100, 50.0), e2=(40, 1, 0, 2, 2.0))
    found = told(before, after)
    assert (found.generation_tokens, found.appeared, found.vanished, found.reset) == (140, 1, 1, False)
    assert (found.engines, found.waiting) == (2, 1)


def test_a_series_that_was_not_there_yet_counts_from_nothing() -> None:
    """prometheus-client shows a finish reason first when it has happened."""
    before = read('vllm:kv_cache_usage_perc 0\nvllm:request_success_total{finished_reason="stop"} 4\n', FAMILIES)
    after = read(
        'vllm:kv_cache_usage_perc 0\nvllm:request_success_total{finished_reason="stop"} 6\n'
        'vllm:request_success_total{finished_reason="abort"} 1\n',
        FAMILIES,
    )
    found = told(before, after)
    assert (found.finished, found.requests, found.requests_per_s) == ({"stop": 2, "abort": 1}, 3, 0.3)


def test_what_tells_an_engine_apart() -> None:
    assert engine_of({"model_name": "m", "le": "1"}) == ()
    assert engine_of({"dp_rank": "1", "instance": "a:1", "tp_rank": "3"}) == (("instance", "a:1"), ("dp_rank", "1"))
