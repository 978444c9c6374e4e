"""The server's side in a Summary: of the window alone, below what the answers told, and thin for long runs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from msgspec.structs import replace
from tests.unit.archive.samples import make_summary

from nilometer.core.run import Phases
from nilometer.core.summary import Window
from nilometer.core.telemetry import Look
from nilometer.experiment.server_side import MOST_PAGES, NOT_SEEN, ServerSide, thinned, with_server
from nilometer.metrics.server_figures import Slots

S = 1_000_000_000
PHASES = Phases(started_wall_ns=1, start_ns=90 * S, measured_ns=100 * S, stop_ns=120 * S, end_ns=121 * S)
SUMMARY = make_summary()


def look(second: int, hits: int = 0) -> Look:
    text = (
        f"vllm:num_requests_running {second}\nvllm:prefix_cache_queries_total {2 * hits}\n"
        f"vllm:prefix_cache_hits_total {hits}\n"
    )
    return Look(second * S, second * S + 5_000_000, text)


def test_pages_count_within_the_window_that_was_chosen() -> None:
    """The window begins 2 s after the warm-up and ends 5 s after it: pages of the seconds 102 to 104."""
    summary = replace(SUMMARY, window=Window(start_s=2.0, end_s=5.0, rule="auto"), server={})
    looks = [*map(look, range(91, 104)), Look(103 * S + 7, 103 * S + 9, fault="http_503"), look(104), look(105)]
    told = with_server(summary, ServerSide(looks, Slots(total=4)), PHASES)
    assert (told.server["pages"], told.server["covered_s"], told.server["running_mean"]) == (3, 2, 103)
    assert told.server["slots"] == 4
    assert told.memory == summary.memory  # the page tells no KV use


def test_what_the_answers_told_stands_before_the_page() -> None:
    summary = replace(SUMMARY, window=Window(start_s=0.0, end_s=9.0, rule="auto"), server={"prefix_hit_ratio": 0.125})
    looks = [look(101, 10), look(102, 20), look(103, 30)]
    assert with_server(summary, ServerSide(looks), PHASES).server["prefix_hit_ratio"] == 0.125
    bare = replace(summary, server={})
    assert with_server(bare, ServerSide(looks), PHASES).server["prefix_hit_ratio"] == 0.5


def test_nothing_was_seen_of_a_run_that_was_cut_off() -> None:
    assert with_server(SUMMARY, NOT_SEEN, PHASES) == SUMMARY


def test_of_many_pages_the_first_and_the_last_are_among_those_judged() -> None:
    assert thinned(range(MOST_PAGES)) == range(MOST_PAGES)
    some = thinned(range(10_000))
    assert len(some) == len(set(some)) == MOST_PAGES
    assert (some[0], some[-1]) == (0, 9_999)
    assert max(b - a for a, b in pairwise(some)) <= 18


def test_the_pages_of_hours_are_read_as_they_are_taken() -> None:
    class Hours:
        def __iter__(self) -> Iterator[Look]:
            return (look(second) for second in range(100, 3_700))

    summary = replace(SUMMARY, window=Window(start_s=0.0, end_s=3_600.0, rule="auto"), server={})
    assert with_server(summary, ServerSide(Hours()), PHASES).server["pages"] == MOST_PAGES
