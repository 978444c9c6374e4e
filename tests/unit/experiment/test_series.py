"""Whatever ends a series, what was measured before it stays."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.unit.archive.samples import make_run

from nilometer.core.errors import TargetError
from nilometer.core.run import Run
from nilometer.experiment.follow import Stop
from nilometer.experiment.series import one_by_one

LOST = TargetError("connect_refused", url="http://127.0.0.1:9", detail="refused")


def ends(with_: Run | BaseException) -> Callable[[], Run]:
    def test() -> Run:
        if isinstance(with_, BaseException):
            raise with_
        return with_

    return test


def each(*met: Run | BaseException) -> list[Callable[[], Run]]:
    return [ends(one) for one in met]


def named(run_id: str) -> Run:
    return make_run(run_id)


def test_all_that_end_well_are_there_in_order() -> None:
    series = one_by_one(each(named("a"), named("b")), Stop())
    assert [run.id for run in series.runs] == ["a", "b"]
    assert (series.fault, series.cut) == (None, False)


def test_a_fault_ends_it_and_is_told_beside_what_was_measured() -> None:
    series = one_by_one(each(named("a"), LOST, named("c")), Stop())
    assert [run.id for run in series.runs] == ["a"]
    assert (series.fault, series.cut) == (LOST, False)


def test_an_interrupt_between_two_ends_it_with_what_was_measured() -> None:
    series = one_by_one(each(named("a"), KeyboardInterrupt(), named("c")), Stop())
    assert ([run.id for run in series.runs], series.cut) == (["a"], True)


def test_an_interrupt_under_load_begins_no_further_test() -> None:
    stop = Stop()

    def interrupted() -> Run:
        stop.asked = 1
        return named("a")

    series = one_by_one([interrupted, ends(LOST)], stop)
    assert ([run.id for run in series.runs], series.fault, series.cut) == (["a"], None, True)


def test_an_interrupt_of_the_last_one_cuts_nothing() -> None:
    stop = Stop()
    stop.asked = 1
    assert not one_by_one([ends(named("a"))], stop).cut


@pytest.mark.parametrize("met", [LOST, KeyboardInterrupt()])
def test_what_ends_the_first_is_raised(met: BaseException) -> None:
    with pytest.raises(type(met)):
        one_by_one([ends(met), ends(named("b"))], Stop())
