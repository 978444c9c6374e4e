"""Laws of Student's t: symmetric, never falling, and its quantile undoes it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nilometer.compare.student import beyond, quantile, tail

DF = st.floats(0.5, 500)
T = st.floats(-60, 60)


@given(T, DF)
def test_both_sides_are_alike_and_make_one(t: float, df: float) -> None:
    assert tail(t, df) + tail(-t, df) == pytest.approx(1, abs=1e-12)


@given(T, T, DF)
def test_the_tail_never_grows(one: float, other: float, df: float) -> None:
    low, high = sorted((one, other))
    assert tail(high, df) <= tail(low, df) + 1e-14


@given(st.floats(1e-9, 0.999), DF)
def test_the_quantile_undoes_the_distribution(p: float, df: float) -> None:
    assert tail(beyond(p, df), df) == pytest.approx(p, rel=1e-9)
    assert tail(-quantile(p, df), df) == pytest.approx(p, rel=1e-6)


@given(st.floats(0.001, 0.4), st.floats(1, 100))
def test_more_degrees_have_lighter_tails(share: float, df: float) -> None:
    assert beyond(share, df + 1) <= beyond(share, df)
