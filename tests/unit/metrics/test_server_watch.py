"""A stretch of pages: counts between its ends, gauges throughout, restarts within."""

from __future__ import annotations

from nilometer.metrics.engine_pages import FAMILIES
from nilometer.metrics.pages import read
from nilometer.metrics.server_watch import Gauge, Seen, watch

S = 1_000_000_000


def seen(*rows: tuple[float, int, int]) -> list[Seen]:
    """(second, tokens so far, waiting): each page took 20 ms to come."""
    return [
        Seen(
            round(at * S),
            round(at * S) + 20_000_000,
            read(
                f"vllm:kv_cache_usage_perc 0.{waiting}\nvllm:num_requests_waiting {waiting}\n"
                f"vllm:generation_tokens_total {tokens}\n",
                FAMILIES,
            ),
        )
        for at, tokens, waiting in rows
    ]


def test_counts_are_those_between_the_ends_and_gauges_those_of_every_page() -> None:
    found = watch(seen((0, 900, 9), (1, 1000, 0), (2, 1100, 4), (3, 1400, 2), (4, 9999, 9)), S, 4 * S)
    assert found is not None
    assert (found.pages, found.covered_s, found.restarts) == (3, 2.0, 0)
    assert (found.figures.generation_tokens, found.figures.generation_tps) == (400, 200.0)
    assert found.waiting == Gauge(n=3, mean=2.0, max=4, above_zero=2 / 3)
    assert found.kv_usage is not None
    assert found.kv_usage.max == 0.4
    assert found.running is None


def test_a_page_that_came_after_the_end_is_outside() -> None:
    pages = seen((1, 0, 0), (2, 5, 0), (2.99, 7, 0))
    found = watch(pages, S, 3 * S)
    assert found is not None
    assert (found.pages, found.figures.generation_tokens) == (2, 5)
    assert watch(pages, 2 * S, 3 * S) is None
    assert watch([], 0, S) is None


def test_a_restart_is_seen_though_it_has_counted_past_where_it_was() -> None:
    """Between the ends alone 100 -> 300 looks like growth."""
    found = watch(seen((1, 100, 0), (2, 20, 3), (3, 300, 0)), S, 4 * S)
    assert found is not None
    assert (found.restarts, found.covered_s, found.figures.generation_tokens) == (1, 1.0, 280)
    assert found.waiting == Gauge(n=3, mean=1.0, max=3, above_zero=1 / 3)
    late = watch(seen((1, 100, 0), (2, 300, 0), (3, 20, 0)), S, 4 * S)
    assert late is not None
    assert (late.restarts, late.covered_s, late.figures.generation_tps) == (1, 0.0, None)
