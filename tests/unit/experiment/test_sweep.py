"""Levels by their names, and which run of a level counts."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.unit.archive.samples import make_run

from nilometer.core.run import Run
from nilometer.experiment.sweep import finished, level_name


@pytest.mark.parametrize(
    ("level", "name"), [(8.0, "8"), (3.36, "3.36"), (12345.0, "12345"), (100_000.0, "100000"), (1000.1, "1000.1")]
)
def test_a_level_has_a_name_of_its_own(level: float, name: str) -> None:
    assert level_name(level) == name
    assert float(name) == level


def _level(name: str, order: int, *, cut: bool) -> Run:
    made = make_run()
    return replace(made, level=name, order=order, phases=replace(made.phases, interrupted=cut))


def test_of_a_level_that_was_measured_again_one_run_counts() -> None:
    runs = [_level("1", 0, cut=False), _level("2", 1, cut=True), _level("2", 2, cut=True), _level("4", 3, cut=True)]
    assert [(one.level, one.order) for one in finished(runs)] == [("1", 0), ("2", 2), ("4", 3)]
    assert [one.order for one in finished([*runs, _level("2", 4, cut=False)])] == [0, 3, 4]
    assert [one.order for one in finished([_level("2", 0, cut=False), _level("2", 1, cut=True)])] == [0]
