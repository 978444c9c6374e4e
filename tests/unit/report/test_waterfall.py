"""The bars of the slowest requests: their stretches, and that these add up."""

from __future__ import annotations

from msgspec.structs import replace
from tests.unit.metrics.made import answered, at, failed, phases, spec, whole

from nilometer.metrics.request import connect_ns, e2e_ns
from nilometer.report.waterfall import stages, waterfall
from nilometer.text.i18n import Catalogue

from .reported import run_of, steady

MS = 1_000_000


def test_a_closed_loop_connects_before_it_sends() -> None:
    record = answered(1.0, [1.5, 1.8], 2.0, connect_ns=3 * MS, tls_ns=7 * MS)
    assert stages(record) == [("connect", 10 * MS), ("first", 500 * MS), ("decode", 300 * MS), ("rest", 200 * MS)]


def test_an_open_loop_waits_to_send_and_connecting_is_a_part_of_that() -> None:
    record = answered(1.0, [1.5, 1.8], due_ns=at(0.9), connect_ns=30 * MS)
    assert stages(record) == [("lag", 70 * MS), ("connect", 30 * MS), ("first", 500 * MS), ("decode", 300 * MS)]
    assert sum(stage.ns for stage in stages(record)) == e2e_ns(record)


def test_an_answer_without_a_token_is_one_stretch() -> None:
    assert stages(whole(1.0, 3.0, 20)) == [("whole", 2_000 * MS)]
    assert stages(failed(1.0, 1.5)) == [("whole", 500 * MS)]
    assert stages(replace(failed(1.0, 1.5, "connect"), sent_ns=None)) == []


def test_stretches_add_up_to_e2e_and_connecting() -> None:
    records, _ = steady(100)
    for record in records:
        assert sum(stage.ns for stage in stages(record)) == (e2e_ns(record) or 0) + (connect_ns(record) or 0)


def test_bars_are_shares_of_the_longest() -> None:
    records = [answered(12.0, [13.0, 15.0], 16.0), failed(13.0, 14.0)]
    run = run_of(records, phases(10, 30, 40), spec(window="0..20"))
    fall = waterfall(run, records, Catalogue("en"))
    first, second = fall.bars
    assert [(part.look, part.begin, part.length) for part in first] == [
        ("first", 0.0, 0.25),
        ("decode", 0.25, 0.5),
        ("rest", 0.75, 0.25),
    ]
    assert [(part.look, part.begin, part.length) for part in second] == [("whole", 0.0, 0.25)]
    assert [key.look for key in fall.keys] == ["first", "whole", "decode", "rest"]
    assert fall.scale == "4.00 s"
    assert [row[0].mark for row in fall.table.rows] == ["", "!"]
    assert fall.table.legend == ["! failed or cut"]
    assert [cell.text for cell in fall.table.rows[0]] == ["2.0", "100", "2", "1.00", "2,000.0", "4.00"]
    assert [cell.text for cell in fall.table.rows[1]] == ["3.0", "-", "-", "-", "-", "1.00"]


def test_no_requests_make_no_bars() -> None:
    run = run_of([], phases(10, 30, 40))
    assert waterfall(run, [], Catalogue("en")).bars == []
