"""Laws of the verdict: it knows no unit, mirrors when the sides change places, and is never made of an error."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.compare.family import TABLE
from nilometer.compare.verdict import Rule, judge_values

FAMILY = TABLE[:3]
MIRRORED = {"REGRESSED": "IMPROVED", "IMPROVED": "REGRESSED", "SAME": "SAME", "UNDECIDED": "UNDECIDED"}
SIDE = st.fixed_dictionaries({row.name: st.lists(st.floats(10, 20), min_size=4, max_size=4) for row in FAMILY})
BROKEN = st.fixed_dictionaries(
    {row.name: st.lists(st.one_of(st.none(), st.floats()), min_size=4, max_size=4) for row in FAMILY}
)
RULES = st.booleans().map(lambda interleaved: Rule(family=FAMILY, interleaved=interleaved))


@given(SIDE, SIDE, RULES)
@settings(max_examples=40, deadline=None)
def test_the_sides_change_places(a: dict[str, list[float]], b: dict[str, list[float]], rule: Rule) -> None:
    _, there, _ = judge_values(a, b, rule)
    _, back, _ = judge_values(b, a, rule)
    for one, other in zip(there, back, strict=True):
        assert one.verdict is not None
        assert other.verdict == MIRRORED[one.verdict]
        assert one.ratio is not None
        assert other.ratio == pytest.approx(1 / one.ratio)


@given(SIDE, SIDE, RULES, st.floats(0.001, 1000))
@settings(max_examples=40, deadline=None)
def test_no_unit(a: dict[str, list[float]], b: dict[str, list[float]], rule: Rule, unit: float) -> None:
    of_a, of_b = ({name: [unit * value for value in values] for name, values in side.items()} for side in (a, b))
    _, plain, _ = judge_values(a, b, rule)
    _, other, _ = judge_values(of_a, of_b, rule)
    assert [one.ratio for one in other] == pytest.approx([one.ratio for one in plain])
    assert [one.p_adjusted for one in other] == pytest.approx([one.p_adjusted for one in plain], abs=1e-9)


@given(SIDE, BROKEN, RULES)
@settings(max_examples=60, deadline=None)
def test_what_has_no_log_is_undecided_whatever_it_is(
    a: dict[str, list[float]], b: dict[str, list[float | None]], rule: Rule
) -> None:
    verdict, metrics, _ = judge_values(a, b, rule)
    for one in metrics:
        fit = all(value is not None and 0 < value < float("inf") for value in b[one.metric])
        assert (one.reason is None) == fit
        assert fit or one.verdict == "UNDECIDED"
    assert verdict == "REGRESSED" or all(one.reason is None for one in metrics) or verdict == "UNDECIDED"


@given(SIDE, SIDE, RULES)
@settings(max_examples=40, deadline=None)
def test_the_verdict_is_what_the_interval_says(
    a: dict[str, list[float]], b: dict[str, list[float]], rule: Rule
) -> None:
    """SAME lies within both margins; what goes beyond one does so with its whole interval."""
    _, metrics, _ = judge_values(a, b, rule)
    for row, one in zip(FAMILY, metrics, strict=True):
        assert one.held is not None
        worse, better = (1 + row.margin, 1 / (1 + row.margin))
        low, high = one.held if row.better == "lower" else (1 / one.held[1], 1 / one.held[0])
        if one.verdict == "SAME":
            assert better < low <= high < worse
        if one.verdict == "REGRESSED":
            assert low > worse * (1 - 1e-9)
        if one.verdict == "IMPROVED":
            assert high < better * (1 + 1e-9)
