from __future__ import annotations

import statistics

import numpy as np
import pytest

from nilometer.metrics.quantiles import distribution, is_marked, percentile


def test_nothing_gives_nothing() -> None:
    made = distribution(np.zeros(0, dtype=np.int64))
    assert (made.n, made.mean, made.p50, made.max, made.marked) == (0, None, None, None, [])
    assert percentile(np.zeros(0), 50) is None


def test_one_value_is_every_percentile_and_has_no_spread() -> None:
    made = distribution(np.array([7_000_000]))
    assert (made.min, made.p50, made.p99, made.max, made.mean, made.sd) == (7.0, 7.0, 7.0, 7.0, 7.0, None)


def test_mean_and_sample_deviation() -> None:
    made = distribution(np.array([2, 4, 4, 4, 5, 5, 7, 9], dtype=np.int64) * 1_000_000)
    assert made.mean == 5.0
    assert made.sd == pytest.approx(statistics.stdev([2, 4, 4, 4, 5, 5, 7, 9]))


def test_order_of_the_values_does_not_matter() -> None:
    values = np.random.default_rng(1).integers(0, 10**9, 5_000)
    one, other = distribution(values.copy()), distribution(np.sort(values)[::-1].copy())
    assert (one.min, one.p50, one.p90, one.p95, one.p99, one.max) == (
        other.min, other.p50, other.p90, other.p95, other.p99, other.max,
    )  # fmt: skip
    assert one.mean == pytest.approx(other.mean, rel=1e-12)


@pytest.mark.parametrize(
    ("n", "marked"),
    [
        (19, "p50 p90 p95 p99"),
        (20, "p90 p95 p99"),
        (99, "p90 p95 p99"),
        (100, "p95 p99"),
        (200, "p99"),
        (999, "p99"),
        (1000, ""),
    ],
)
def test_a_percentile_with_fewer_than_ten_beyond_it_is_marked(n: int, marked: str) -> None:
    assert distribution(np.arange(n)).marked == marked.split()


def test_marks_by_percent() -> None:
    assert is_marked(999, 99)
    assert not is_marked(1000, 99)


def test_int32_values_are_taken_as_they_are() -> None:
    values = np.array([3, 1, 2], dtype=np.int32) * 1_000_000
    assert distribution(values).p50 == 2.0
