"""What answers tell: losses, attempts that something repeated, replicas that differ, adapters that wait."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.unit.diagnose.cases import Shown, case_of

from nilometer.core.finding import Evidence
from nilometer.diagnose.case import Case
from nilometer.diagnose.causes import answers


def late_at(low: dict[str, tuple[float, int]], high: dict[str, tuple[float, int]]) -> Case:
    """A case whose figures are given with how many requests each stands on."""
    shown = case_of(Shown())
    levels = []
    for level, told in zip((shown.lowest, shown.highest), (low, high), strict=True):
        made: dict[str, Any] = {
            name: Evidence(name=name, value=value, n=n, source="client") for name, (value, n) in told.items()
        }
        levels.append(msgspec.structs.replace(level, figures=level.figures | made))
    return Case(msgspec.structs.replace(shown.group, levels=tuple(levels)))


def test_a_few_at_each_load_that_are_late_by_the_same_time_were_asked_again() -> None:
    case = late_at(
        {"late_by": (1000.0, 2), "late_share": (0.03, 70)},
        {"late_by": (1040.0, 4), "late_spread": (0.05, 4), "late_share": (0.03, 150)},
    )
    assert answers.failures(case).score == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("low", "high"),
    [
        ({"late_by": (1000.0, 2)}, {"late_by": (1900.0, 4), "late_spread": (0.05, 4)}),  # grows with the load
        ({}, {"late_by": (1000.0, 9), "late_spread": (0.5, 9)}),  # by no timer
        ({"late_by": (1000.0, 1)}, {"late_by": (1000.0, 1)}),  # two in all
        ({}, {}),
    ],
)
def test_what_is_late_otherwise_was_not(low: dict[str, Any], high: dict[str, Any]) -> None:
    assert answers.failures(late_at(low, high)).score == 0


@pytest.mark.parametrize("way", ["replica", "target"])
@pytest.mark.parametrize("latency", ["ttft", "tpot"])
def test_a_latency_that_the_replica_explains_is_that_of_an_uneven_one(way: str, latency: str) -> None:
    assert answers.replica_imbalance(case_of(Shown(high={f"{way}_{latency}_share": 0.5}))).holds
    assert not answers.replica_imbalance(case_of(Shown(high={f"{way}_{latency}_share": 0.1}))).holds
    assert not answers.adapters(case_of(Shown(high={f"{way}_{latency}_share": 0.9}))).holds


POOL = {"little_asked": 0.45, "in_flight": 4.4, "loop_lag_p99": 1.0, "unconnected_share": 0.011, "failed_share": 0.011}


def test_who_waits_for_a_connection_in_vain_is_one_of_a_pool() -> None:
    """As measured: two answers at a time of eight asked for; two of 182 gave up on connecting."""
    assert answers.client_pool(case_of(Shown(high=POOL))).holds
    assert not answers.failures(case_of(Shown(high=POOL))).holds


def test_where_nobody_is_answered_it_is_no_pool() -> None:
    """Status 500 to all: the loop asks again at once, and little is in flight because nothing lasts."""
    dead = {**POOL, "little_asked": 0.91, "failed_share": 1.0, "unconnected_share": 0.0}
    assert answers.failures(case_of(Shown(high=dead))).holds
    assert not answers.client_pool(case_of(Shown(high=dead))).holds
    gone = {**dead, "unconnected_share": 1.0}
    assert answers.failures(case_of(Shown(high=gone))).holds
    assert not answers.client_pool(case_of(Shown(high=gone))).holds
