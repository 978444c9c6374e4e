"""Laws of numbers in words: a figure never claims to be nothing or all when it is not, and order is kept."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nilometer.text import units

SHARES = st.floats(min_value=0, max_value=1, exclude_min=True, exclude_max=True)
VALUES = st.floats(min_value=-1e9, max_value=1e12)


@given(SHARES)
def test_a_share_between_nothing_and_all_reads_as_neither(share: float) -> None:
    text = units.percent(share)
    assert text not in ("0 %", "0.0 %", "100 %", "100.0 %")


@given(st.floats(min_value=0, max_value=10), st.floats(min_value=0, max_value=10))
def test_percent_keeps_the_order(one: float, other: float) -> None:
    low, high = (float(re.sub(r"[<> %,]", "", units.percent(value))) for value in sorted((one, other)))
    assert low <= high or units.percent(min(one, other)).startswith("<")


@given(VALUES)
def test_a_latency_reads_back_to_what_it_was(value_ms: float) -> None:
    figure, unit = units.latency(value_ms).split(" ")
    back = float(figure.replace(",", "")) * (1_000 if unit == "s" else 1)
    assert back == pytest.approx(value_ms, rel=0.01, abs=0.005 + 1e-9)  # half of the last digit shown


@given(st.lists(st.one_of(st.none(), st.floats(min_value=0, max_value=1e7)), min_size=1, max_size=5))
def test_a_row_shows_every_figure_in_the_unit_of_its_scale(values: list[float | None]) -> None:
    scale = units.latency_scale(values)
    for value in values:
        shown = scale.show(value)
        if value is None:
            assert shown == "-"
        else:
            half_of_last_digit = 0.5 * 10**-scale.decimals
            assert float(shown.replace(",", "")) == pytest.approx(value / scale.ms, abs=half_of_last_digit * 1.01)


@given(st.integers(min_value=0, max_value=10**13))
def test_sizes_read_back(value: int) -> None:
    figure, unit = units.size(value).split(" ")
    factor = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}[unit]
    assert float(figure.replace(",", "")) * factor == pytest.approx(value, rel=0.01, abs=0.5)
