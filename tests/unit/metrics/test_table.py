from __future__ import annotations

import math

from nilometer.metrics.table import ERRORS, NONE, SOURCES, Rows

from .made import answered, at, failed


def test_columns_hold_what_the_records_said() -> None:
    rows = Rows()
    rows.add(answered(1.0, [1.5, 1.6], due_ns=at(0.5), new_connection=True, connect_ns=7))
    rows.add(failed(2.0, 3.0, "http_429", phase="drain"))
    table = rows.table()
    assert table.due_ns.tolist() == [at(0.5), NONE]
    assert table.start_ns.tolist() == [at(0.5), at(2.0)]
    assert table.first_token_ns.tolist() == [at(1.5), NONE]
    assert table.connect_ns.tolist() == [7, NONE]
    assert table.new_connection.tolist() == [1, 0]
    assert table.frames.tolist() == [2, 0]
    assert table.of("ok").tolist() == [True, False]
    assert table.of("error").tolist() == [False, True]
    assert table.in_phase("drain").tolist() == [False, True]
    assert ERRORS[table.error[1]] == "http_429"
    assert SOURCES[table.token_source[0]] == "usage"
    assert table.latency("ttft")[0] == 1_000_000_000
    assert math.isnan(table.latency("ttft")[1])


def test_a_table_stays_as_it_was_when_more_comes() -> None:
    rows = Rows()
    rows.add(answered(1.0, [1.5]))
    first = rows.table()
    rows.add(answered(2.0, [2.5]))
    assert (len(first.sent_ns), len(rows.table().sent_ns)) == (1, 2)


def test_no_record_is_an_empty_table() -> None:
    table = Rows().table()
    assert len(table.start_ns) == 0
    assert len(table.latency("e2e")) == 0
