"""Laws of the distributions: within the values, monotone, equal to the naive definition."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nilometer.metrics.quantiles import distribution, percentile

VALUES = st.lists(st.integers(0, 10**13), min_size=1, max_size=200)
PERCENTS = st.floats(0, 100)


def naive(values: list[int], percent: float) -> float:
    """Type 7 as Hyndman and Fan write it, with positions from 1."""
    ordered = sorted(values)
    position = 1 + (len(ordered) - 1) * percent / 100
    below = math.floor(position)
    above = min(below + 1, len(ordered))
    return ordered[below - 1] + (position - below) * (ordered[above - 1] - ordered[below - 1])


@given(VALUES, PERCENTS)
def test_a_percentile_lies_within_the_values_and_is_the_naive_one(values: list[int], percent: float) -> None:
    made = percentile(np.sort(np.array(values)), percent)
    assert made is not None
    assert min(values) <= made <= max(values)
    assert made == pytest.approx(naive(values, percent), rel=1e-9, abs=1e-6 * (max(values) - min(values)))


@given(VALUES, PERCENTS, PERCENTS)
def test_percentiles_grow_with_the_percent(values: list[int], one: float, other: float) -> None:
    ordered = np.sort(np.array(values))
    low, high = percentile(ordered, min(one, other)), percentile(ordered, max(one, other))
    assert low is not None
    assert high is not None
    assert low <= high


@given(VALUES)
def test_a_distribution_agrees_with_its_values(values: list[int]) -> None:
    made = distribution(np.array(values))
    shown = [made.min, made.p50, made.p90, made.p95, made.p99, made.max]
    assert None not in shown
    assert shown == sorted(one for one in shown if one is not None)
    assert made.n == len(values)
    assert (made.min, made.max) == (min(values) / 1e6, max(values) / 1e6)
    assert made.p95 == pytest.approx(naive(values, 95) / 1e6, rel=1e-9)
    assert made.mean == pytest.approx(statistics.fmean(values) / 1e6, rel=1e-9)
    if len(values) > 1:
        assert made.sd == pytest.approx(statistics.stdev(values) / 1e6, rel=1e-6, abs=1e-9)
    else:
        assert made.sd is None
