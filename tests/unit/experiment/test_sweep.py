"""Levels by their names, and which run of a level counts."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.unit.archive.samples import make_run

from nilometer.core.finding import Finding
from nilometer.core.run import Run
from nilometer.core.summary import Counts
from nilometer.experiment.sweep import level_name, next_order, one_a_level
from nilometer.metrics.curve import Greatest, Rung, greatest, rungs_of


@pytest.mark.parametrize(
    ("level", "name"), [(8.0, "8"), (3.36, "3.36"), (12345.0, "12345"), (100_000.0, "100000"), (1000.1, "1000.1")]
)
def test_a_level_has_a_name_of_its_own(level: float, name: str) -> None:
    assert level_name(level) == name
    assert float(name) == level


def _level(name: str, order: int, *, cut: bool) -> Run:
    """A level that was finished, or one that was cut off: by the user, with its target, with a worker of ours."""
    made = make_run()
    ways: tuple[dict[str, Any], ...] = (
        {"phases": replace(made.phases, interrupted=True)},
        {"phases": replace(made.phases, stopped_by="target_lost")},
        {"health": replace(made.health, death="killed")},
        {"summary": replace(made.summary, run_requests=Counts(started=9, error=9, errors={"connect": 9}))},
    )
    return replace(made, level=name, order=order, **(ways[order % len(ways)] if cut else {}))


def test_of_a_level_that_was_measured_again_one_run_counts() -> None:
    runs = [_level("1", 0, cut=False), _level("2", 1, cut=True), _level("2", 2, cut=True), _level("4", 3, cut=True)]
    assert [(one.level, one.order) for one in one_a_level(runs)] == [("1", 0), ("2", 2), ("4", 3)]
    assert [one.order for one in one_a_level([*runs, _level("2", 4, cut=False)])] == [0, 3, 4]
    assert [one.order for one in one_a_level([_level("2", 0, cut=False), _level("2", 1, cut=True)])] == [0]


def test_a_level_that_is_measured_again_has_a_place_of_its_own() -> None:
    assert next_order([]) == 0
    assert next_order([_level("1", 0, cut=False), _level("2", 1, cut=True)]) == 2
    assert next_order([_level("4", 3, cut=True), _level("2", 1, cut=False)]) == 4


@pytest.mark.parametrize("order", range(4))
def test_a_level_that_was_cut_off_is_no_verdict_on_the_service(order: int) -> None:
    kept, cut = _level("1", 0, cut=False), _level("2", order, cut=True)
    lost = Finding(slug="target_lost", kind="validity", severity="high")
    rungs = rungs_of([kept, replace(cut, findings=[lost])])
    assert rungs[1] == Rung(2.0, None, None, None)
    assert greatest([Rung(1.0, True, 0.5, 9.0), rungs[1]]) == Greatest(1.0, 1.0, None), "nothing is known above 1"


@pytest.mark.parametrize("slug", ["errors_over_limit", "oversaturated", "no_ok_requests"])
def test_a_level_that_the_service_gave_way_to_is_one(slug: str) -> None:
    run = replace(_level("2", 0, cut=False), findings=[Finding(slug=slug, kind="validity", severity="high")])
    assert rungs_of([run])[0].met is False
