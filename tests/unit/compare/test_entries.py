"""Runs put together as tests of a service: which belong together, in which order, with which figure."""

from __future__ import annotations

import pytest
from tests.unit.compare.made import run

from nilometer.compare.entries import Entry, Taken, entries, place_of
from nilometer.compare.family import TABLE


def taken(name: str, at: int, figure: float | None, group: str | None = None, condition: str | None = "c") -> Taken:
    return Taken(name, group, None, at, condition, "v1", None, "Q4_0", (figure,))


def test_repeats_are_one_test_with_the_geometric_mean() -> None:
    """sqrt(10 x 40) = 20."""
    (found,) = entries([taken("a", 1, 10.0, "g"), taken("b", 2, 40.0, "g")]).values()
    assert found == [Entry(("a", "b"), 1, "v1", None, "Q4_0", (pytest.approx(20.0),))]  # type: ignore[arg-type]
    assert found[0].version == "v1 Q4_0"


def test_levels_of_a_sweep_are_tests_of_their_own() -> None:
    levels = [taken("a", 1, 10.0, "g")._replace(level=level) for level in ("1", "2")]
    assert [len(entry.runs) for entry in entries(levels)["c"]] == [1, 1]


def test_conditions_stand_apart_the_newest_first() -> None:
    found = entries([taken("a", 5, 1.0), taken("b", 9, 1.0, condition=None), taken("c", 2, 1.0)])
    assert list(found) == [None, "c"]
    assert [entry.runs for entry in found["c"]] == [("c",), ("a",)], "the oldest test first"


@pytest.mark.parametrize("figure", [None, 0.0])
def test_a_test_of_which_a_run_lacks_the_figure_has_none(figure: float | None) -> None:
    (found,) = entries([taken("a", 1, 10.0, "g"), taken("b", 2, figure, "g")]).values()
    assert found[0].figures == (None,)


def test_figures_are_asked_for_where_they_stand() -> None:
    summary = run().summary
    for row in TABLE:
        scope, metric, stat = place_of(row)
        part = getattr(summary, scope)
        value = getattr(part, metric) if stat == "value" else getattr(part[metric], stat)
        assert value == row.of(summary), row.name
