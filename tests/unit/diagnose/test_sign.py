"""Degrees between a beginning and an end, and what a rule makes of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nilometer.core.finding import Evidence
from nilometer.diagnose.sign import SUPPORT, Look, Sign, both, either, strongest, weigh


def look(value: float | None, source: str = "client") -> Look:
    return Look("x", None if value is None else Evidence(name="x", value=value, source=source))


def sign(degree: float | None, source: str = "client") -> Sign:
    return Sign("x", Evidence(name=f"x{degree}", value=1.0, source=source), degree)


@pytest.mark.parametrize(("value", "degree"), [(0.2, 0.0), (0.4, 0.0), (0.5, 0.5), (0.6, 1.0), (9.0, 1.0)])
def test_between_its_two_numbers_a_limit_speaks_in_proportion(value: float, degree: float) -> None:
    assert look(value).above(0.4, 0.6).degree == pytest.approx(degree)
    assert look(-value).below(-0.4, -0.6).degree == pytest.approx(degree)


def test_what_is_not_measured_has_no_degree() -> None:
    assert look(None).above(0, 1).degree is None
    assert look(None).within(0, 1, 0.1).degree is None


@pytest.mark.parametrize(
    ("value", "degree"), [(0.5, 0.0), (0.75, 0.5), (1.0, 1.0), (1.5, 1.0), (2.25, 0.5), (3.0, 0.0)]
)
def test_within_falls_off_on_both_sides(value: float, degree: float) -> None:
    assert look(value).within(1.0, 1.5, 0.5).degree == pytest.approx(
        degree if value < 2 else max(0.0, (2.25 - value) / 0.75)
    )


@given(st.lists(st.floats(0, 1), min_size=1, max_size=5), st.lists(st.floats(0, 1), max_size=4))
def test_a_score_is_never_more_than_the_weakest_need_and_less_with_more_against(
    needs: list[float], against: list[float]
) -> None:
    plain = weigh([sign(one) for one in needs])
    held = weigh([sign(one) for one in needs], against=[sign(one) for one in against])
    assert plain.score == min(needs)
    assert 0 <= held.score <= plain.score
    assert held.score == pytest.approx(min(needs) * (1 - max(against, default=0)))


def test_a_support_that_is_not_there_costs_and_one_that_was_not_measured_does_not() -> None:
    assert weigh([sign(1.0)], supports=[sign(0.0)]).score == pytest.approx(1 - SUPPORT)
    assert weigh([sign(1.0)], supports=[sign(None)]).score == 1
    assert weigh([sign(1.0)], supports=[sign(None)]).missing == ("x",)


def test_a_need_that_was_not_measured_forbids_an_opinion() -> None:
    opinion = weigh([sign(1.0), sign(None)], against=[sign(0.0)])
    assert (opinion.score, opinion.looked, opinion.missing) == (0.0, False, ("x",))
    assert weigh([sign(0.0)]).looked


def test_sources_are_of_the_signs_that_speak() -> None:
    opinion = weigh([sign(1.0), sign(0.2, "server")], supports=[sign(0.9, "both")])
    assert opinion.sources == {"client", "both"}


def test_either_takes_the_loudest_and_both_the_quietest() -> None:
    one, two, unknown = sign(0.3), sign(0.8), sign(None)
    assert either(one, two, unknown) is two
    assert both(one, two) is one
    assert both(one, unknown) is unknown
    assert either(unknown) is unknown


def test_of_two_ways_to_see_a_cause_the_one_that_could_be_looked_at_speaks() -> None:
    blind, seeing = weigh([sign(None)]), weigh([sign(0.0)])
    assert strongest(blind, seeing).looked
    assert strongest(weigh([sign(0.4)]), weigh([sign(0.6)])).score == 0.6
