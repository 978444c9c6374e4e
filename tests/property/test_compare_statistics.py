"""Laws of the estimates: no unit, no side is preferred, more spread never decides, Holm never helps a hypothesis."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nilometer.compare.statistics import holm, more_runs, paired, unfit, welch

LOGS = st.lists(st.floats(-3, 3), min_size=2, max_size=8)
P = st.lists(st.floats(0, 1), max_size=8)


@given(LOGS, LOGS, st.floats(-5, 5))
def test_welch_knows_no_unit(a: list[float], b: list[float], unit: float) -> None:
    plain, scaled = welch(a, b), welch([x + unit for x in a], [x + unit for x in b])
    assert scaled.log_ratio == pytest.approx(plain.log_ratio, abs=1e-9)
    assert scaled.standard_error == pytest.approx(plain.standard_error, rel=1e-6)


@given(LOGS, LOGS, st.floats(0, 0.5))
def test_the_sides_change_places(a: list[float], b: list[float], margin: float) -> None:
    there, back = welch(a, b), welch(b, a)
    assert back.log_ratio == pytest.approx(-there.log_ratio, abs=1e-12)
    assert back.p_below(-margin) == pytest.approx(there.p_above(margin), abs=1e-9)
    low, high = there.interval(0.9) or (0, 0)
    assert back.interval(0.9) == pytest.approx((-high, -low), abs=1e-9)


@given(LOGS, st.floats(0.001, 0.49), st.floats(-2, 2))
def test_the_bound_lies_beyond_a_shift_exactly_where_p_is_smaller(
    differences: list[float], share: float, shift: float
) -> None:
    estimate = paired(differences)
    low, _ = estimate.bounds(share) or (0, 0)
    p = estimate.p_above(shift)
    assert p is not None
    if not math.isclose(low, shift, rel_tol=1e-6, abs_tol=1e-9):
        assert (low > shift) == (p < share)


@given(LOGS)
def test_a_wider_level_holds_the_narrower(differences: list[float]) -> None:
    narrow, wide = paired(differences).interval(0.8), paired(differences).interval(0.99)
    assert narrow is not None
    assert wide is not None
    assert wide[0] < narrow[0] <= narrow[1] < wide[1]


@given(P)
def test_holm_only_raises_and_keeps_the_order(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    assert all(p <= q <= 1 for p, q in zip(p_values, adjusted, strict=True))
    pairs = sorted(zip(p_values, adjusted, strict=True))
    assert [q for _, q in pairs] == sorted(adjusted)
    assert all(q <= min(1, p * len(p_values)) + 1e-12 for p, q in pairs), "no dearer than Bonferroni"


@given(st.floats(-0.3, 0.3), st.floats(0.005, 0.2), st.floats(0.02, 0.2), st.floats(1.1, 3))
def test_more_spread_never_needs_fewer_runs(effect: float, spread: float, margin: float, wider: float) -> None:
    few = more_runs(paired([effect - spread, effect, effect + spread]), margin)
    many = more_runs(paired([effect - wider * spread, effect, effect + wider * spread]), margin)
    assert few is None or few >= 1
    assert many is None or (few is not None and many >= few)


@given(st.lists(st.one_of(st.none(), st.floats()), max_size=6))
def test_only_values_with_a_log_are_fit(values: list[float | None]) -> None:
    fit = unfit(values) is None
    assert fit == all(value is not None and 0 < value < math.inf for value in values)
