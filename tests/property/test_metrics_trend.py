"""Laws of the tests for warm-up and drift: they see order and proportion, not unit, and know left from right."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nilometer.metrics.trend import BATCH, drift, kendall_p, mser5, theil_sen, warmup

SERIES = st.lists(st.integers(1, 10_000), min_size=50, max_size=150)
ORDER = st.permutations(list(range(9)))


@given(ORDER)
def test_kendall_knows_no_direction_and_no_unit(order: list[int]) -> None:
    values = np.array(order, dtype=np.float64)
    p = kendall_p(values)
    assert 0 < p <= 1
    assert kendall_p(values[::-1]) == p
    assert kendall_p(np.exp(values)) == p


@given(ORDER)
def test_more_agreement_means_less_chance(order: list[int]) -> None:
    values = np.array(order, dtype=np.float64)
    score = abs(sum(int(b > a) - int(b < a) for a, b in combinations(order, 2)))
    assert kendall_p(np.sort(values)) <= kendall_p(values)
    assert (kendall_p(values) < 0.05) == (score >= 20), "the printed table for n = 9: P(|S| >= 20) = .044, >= 18 .076"


@given(SERIES, st.integers(1, 50))
def test_drift_and_warmup_know_no_unit(series: list[int], factor: int) -> None:
    values = np.array(series, dtype=np.float64)
    assert drift(values * factor).share == pytest.approx(drift(values).share, rel=1e-9, abs=1e-12)
    assert drift(values * factor).p == pytest.approx(drift(values).p)
    assert drift(values[::-1]).p == pytest.approx(drift(values).p) or len(values) % 10


@given(SERIES)
def test_a_cut_is_whole_batches_and_leaves_five(series: list[int]) -> None:
    values = np.array(series, dtype=np.float64)
    cut = mser5(values)
    assert cut % BATCH == 0
    assert len(values) - cut >= 5 * BATCH
    assert warmup(values) in (0, cut)


@given(st.floats(-5, 5), st.floats(-100, 100), st.integers(2, 40))
def test_theil_sen_of_a_line_is_its_slope(slope: float, start: float, n: int) -> None:
    assert theil_sen(start + slope * np.arange(n, dtype=np.float64)) == pytest.approx(slope, abs=1e-9)
