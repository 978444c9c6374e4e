"""One pass over records: columns, failures, the slowest few."""

from __future__ import annotations

from random import Random

from tests.unit.metrics.made import answered, failed, phases, spec

from nilometer.metrics.request import e2e_ns
from nilometer.report.gather import gather

from .reported import run_of, steady


def test_the_slowest_are_those_of_sorting_all() -> None:
    records, borders = steady(300)
    run = run_of(records, borders, spec(window="0..20"))
    inside = [one for one in records if one.sent_ns is not None and 10 <= one.sent_ns / 1e9 - 1_000 < 30]
    wanted = sorted((e2e_ns(one) or 0 for one in inside), reverse=True)[:7]
    shuffled = Random(3).sample(records, len(records))
    assert [e2e_ns(one) for one in gather(run, shuffled, slowest=7).slowest] == wanted
    assert gather(run, shuffled, slowest=0).slowest == []


def test_ties_and_failures_are_among_them_and_what_has_no_time_is_not() -> None:
    records = [answered(11.0, [12.0, 13.0]), answered(12.0, [13.0, 14.0]), failed(13.0, 20.0)]
    records.append(failed(14.0, 15.0, "connect", sent_ns=None))
    run = run_of(records, phases(10, 30, 40), spec(window="0..20"))
    found = gather(run, records)
    assert [one.id for one in found.slowest] == ["f13.0", "r11.0", "r12.0"]
    assert (found.failures.failed, found.failures.records) == (2, 4)
    assert len(found.table.outcome) == 4
