"""The base line: lines that are known, and the least sum of distances by trying every line through two points."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.diagnose.made import even, near, streams
from tests.unit.metrics.made import whole

from nilometer.core.record import Record
from nilometer.diagnose.base import BaseLine, base_line, base_of, median_line
from nilometer.diagnose.streams import Streams


def lined(intercept_s: float, slope_s: float, prompts: list[int]) -> list[Record]:
    """One request after another; the TTFT of each lies on the line."""
    return [even(i, i + intercept_s + slope_s * p, 3, 0.01, prompt_tokens=p) for i, p in enumerate(prompts)]


def line_of(seen: Streams) -> BaseLine:
    line = base_line(seen)
    assert line is not None
    return line


def test_prompts_and_ttft_on_a_line() -> None:
    base = base_of(streams(lined(0.05, 0.0002, [100, 200, 500, 900, 1500, 2000]), 10))
    assert base.gap_ms == pytest.approx(10)
    line = base.line
    assert line is not None
    assert (line.intercept_ms, line.slope_ms, line.r) == near(50, 0.2, 1)
    assert line.n == 6
    assert line.at_ms(np.array([0.0, 1000.0])).tolist() == pytest.approx([50, 250])


def test_an_outlier_does_not_bend_it() -> None:
    line = line_of(streams([*lined(0.05, 0.0002, [100, 200, 300, 400, 500, 600, 700]), even(8, 9.9, 3)], 10))
    assert line.slope_ms == pytest.approx(0.2, rel=1e-4)
    assert line.intercept_ms == pytest.approx(50, rel=1e-3)


def test_prompts_of_one_length_have_no_slope() -> None:
    line = line_of(streams(lined(0.05, 0.0002, [500] * 9), 10))
    assert (line.intercept_ms, line.slope_ms, line.r) == near(150, None, None)
    assert line.at_ms(np.array([7.0])).tolist() == pytest.approx([150])


def test_prompts_that_are_not_counted_have_none() -> None:
    line = line_of(streams([even(i, i + 0.1, 3, prompt_tokens=None) for i in range(6)]))
    assert (line.intercept_ms, line.slope_ms, line.n) == near(100, None, 6)


def test_few_requests_make_no_line() -> None:
    assert base_line(streams(lined(0.05, 0.0002, [1, 2, 3, 4]))) is None
    assert base_line(streams([whole(i, i + 0.5, 5) for i in range(9)])) is None


def test_a_line_is_never_below_nothing() -> None:
    assert BaseLine(intercept_ms=10, slope_ms=-1, n=9).at_ms(np.array([20.0])).tolist() == [0.0]


points = st.lists(st.tuples(st.integers(0, 9), st.integers(-50, 50)), min_size=2, max_size=9).filter(
    lambda given: len({x for x, _ in given}) > 1
)


@settings(max_examples=150, deadline=None)
@given(points)
def test_no_line_through_two_points_leaves_less(given: list[tuple[int, int]]) -> None:
    """The best line goes through two points (a vertex of the linear program)."""
    x, y = (np.array(column, dtype=np.float64) for column in zip(*given, strict=True))
    intercept, slope = median_line(x, y)
    through = [
        float(np.abs(y - y[i] - (y[j] - y[i]) / (x[j] - x[i]) * (x - x[i])).sum())
        for i, j in combinations(range(len(x)), 2)
        if x[i] != x[j]
    ]
    assert float(np.abs(y - intercept - slope * x).sum()) == pytest.approx(min(through), rel=1e-6, abs=1e-6)
