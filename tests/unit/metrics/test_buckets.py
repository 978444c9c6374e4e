"""Percentiles of buckets: by hand, against Prometheus' rule, and bounds where the buckets tell no more."""

from __future__ import annotations

import math

import pytest

from nilometer.metrics.buckets import Bound, Histogram, histogram_of
from nilometer.metrics.page_lines import PARTS
from nilometer.metrics.pages import read

INF = math.inf
QUEUE = Histogram(count=10, total=6.0, cumulative=[(0.1, 2), (0.5, 6), (1.0, 9), (INF, 10)])


def told(text: str) -> Histogram | None:
    page = read(text, {"s"})
    return histogram_of(page, "s", {part: page.series.get(f"s{part}", []) for part in PARTS})


@pytest.mark.parametrize(
    ("percent", "value"),
    [
        (60, 0.5),  # the 6th of 10 is the last of its bucket
        (50, 0.1 + 0.4 * 3 / 4),  # the 5th is the 3rd of the 4 in it
        (75, 0.5 + 0.5 * 1.5 / 3),
        (90, 1.0),
        (95, Bound(at_least=1.0, why="inf_bucket")),
        (20, Bound(at_least=0.0, at_most=0.1, why="first_bucket")),
    ],
)
def test_a_percentile(percent: float, value: float | Bound) -> None:
    found = QUEUE.percentile(percent)
    assert found == (value if isinstance(value, Bound) else pytest.approx(value))


def test_the_mean_is_exact_whatever_the_buckets() -> None:
    assert QUEUE.mean == 0.6
    assert Histogram(count=3).mean is None
    assert Histogram(count=0, total=0.0, cumulative=[(0.1, 0), (INF, 0)]).mean is None


def test_of_nothing_there_is_no_percentile() -> None:
    assert Histogram().percentile(50) is None
    assert Histogram(count=0, total=0.0, cumulative=[(0.1, 0), (INF, 0)]).percentile(95) is None


def test_a_first_bucket_that_ends_at_zero_holds_zeros() -> None:
    """SGLang's queue has one: most requests never wait."""
    waits = Histogram(count=10, total=0.2, cumulative=[(0.0, 8), (0.1, 10), (INF, 10)])
    assert waits.percentile(50) == 0.0
    assert waits.percentile(95) == pytest.approx(0.1 * 1.5 / 2)


def test_a_bucket_that_was_counted_late_does_not_go_back() -> None:
    """A page is written while requests end: a bucket may lag behind the one before."""
    assert Histogram(count=4, total=1.0, cumulative=[(0.1, 3), (0.2, 2), (INF, 4)]).percentile(50) == Bound(
        at_least=0.0, at_most=0.1, why="first_bucket"
    )


def test_engines_are_added_up_bucket_by_bucket() -> None:
    found = told(
        's_bucket{e="0",le="0.1"} 1\ns_bucket{e="0",le="0.5"} 3\ns_bucket{e="0",le="+Inf"} 4\n'
        's_bucket{e="1",le="0.1"} 2\ns_bucket{e="1",le="0.5"} 2\ns_bucket{e="1",le="+Inf"} 6\n'
        's_count{e="0"} 4\ns_count{e="1"} 6\ns_sum{e="0"} 1.5\ns_sum{e="1"} 8.5\n'
    )
    assert found == Histogram(count=10, total=10.0, cumulative=[(0.1, 3), (0.5, 5), (INF, 10)])


def test_of_unlike_buckets_those_remain_that_both_have() -> None:
    found = told(
        's_bucket{e="0",le="0.1"} 1\ns_bucket{e="0",le="0.5"} 3\ns_bucket{e="0",le="+Inf"} 4\n'
        's_bucket{e="1",le="0.5"} 2\ns_bucket{e="1",le="+Inf"} 2\n'
    )
    assert found == Histogram(count=6, cumulative=[(0.5, 5), (INF, 6)])


def test_a_summary_has_a_mean_and_no_buckets() -> None:
    found = told('s{quantile="0.5"} 0.3\ns_count 4\ns_sum 2\n')
    assert found is not None
    assert (found.count, found.mean, found.percentile(50)) == (4, 0.5, None)
    assert told("s 3\n") is None
    assert told('s_bucket{le="x"} 3\ns_bucket{le="nan"} 3\n') == Histogram(cumulative=[])
