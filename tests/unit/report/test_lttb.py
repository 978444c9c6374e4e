"""Largest triangle three buckets: by hand, and its laws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nilometer.report.lttb import chosen

SERIES = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=200)


@pytest.mark.parametrize(
    ("y", "most", "kept"),
    [
        ([0, 0, 9, 0, 0], 3, [0, 2, 4]),
        ([0, 0, 9, 0, 0, 0, 0, -5, 0, 1], 4, [0, 2, 7, 9]),
        ([1, 2, 3], 3, [0, 1, 2]),
        ([1, 2, 3], 50, [0, 1, 2]),
        ([], 3, []),
    ],
)
def test_by_hand(y: list[float], most: int, kept: list[int]) -> None:
    """One bucket of three points keeps the peak; two buckets keep the peak of the first and the dip of the second."""
    assert chosen(np.arange(len(y), dtype=float), np.array(y, dtype=float), most).tolist() == kept


def test_against_the_definition_written_out() -> None:
    """Every triangle reckoned one by one, as in the thesis."""
    draw = np.random.default_rng(4)
    x, y = np.arange(97.0) ** 1.3, draw.normal(size=97)
    borders = np.linspace(1, 96, 19).astype(int)
    kept = [0]
    for begin, end, behind in zip(borders[:-1], borders[1:], [*borders[2:], 97], strict=True):
        ax, ay = x[kept[-1]], y[kept[-1]]
        cx, cy = x[end:behind].mean(), y[end:behind].mean()
        areas = [abs((ax - cx) * (y[i] - ay) - (ax - x[i]) * (cy - ay)) / 2 for i in range(begin, end)]
        kept.append(begin + areas.index(max(areas)))
    assert chosen(x, y, 20).tolist() == [*kept, 96]


@given(SERIES, st.integers(3, 60))
def test_a_subset_in_order_with_both_ends(y: list[float], most: int) -> None:
    kept = chosen(np.arange(len(y), dtype=float), np.array(y), most)
    assert len(kept) == min(most, len(y))
    assert (np.diff(kept) > 0).all()
    assert (kept[0], kept[-1]) == (0, len(y) - 1)


@given(st.integers(10, 500), st.integers(3, 20), st.data())
def test_a_single_peak_stays(n: int, most: int, data: st.DataObject) -> None:
    peak = data.draw(st.integers(1, n - 2))
    y = np.zeros(n)
    y[peak] = 1.0
    assert peak in chosen(np.arange(n, dtype=float), y, most)
