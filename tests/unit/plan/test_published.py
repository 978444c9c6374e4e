"""The goals of `make bench-plan` for latency, and every published row within bounds that hold for all of them."""

from __future__ import annotations

import pytest
from benchmarks.plan_latency import plan_latency, tpot_error
from benchmarks.plan_latency_rows import Published, published

TRUSTED = [row for row in published() if row.tpot_ms is not None and not row.doubt]


def test_the_goals_are_met() -> None:
    rows = plan_latency()
    goals = [row for row in rows if row.met is not None]
    assert len(goals) == 8
    assert [row.what for row in goals if not row.met] == []


def test_all_rows_are_there() -> None:
    kinds = [row.kind for row in published()]
    assert (kinds.count("serving"), kinds.count("throughput")) == (58, 35)
    assert all(row.source for row in published())


@pytest.mark.parametrize("row", TRUSTED, ids=lambda row: row.id)
def test_a_row_that_nothing_speaks_against_is_met_within_three_quarters(row: Published) -> None:
    error = tpot_error(row)
    assert error is not None
    assert abs(error) < 75
