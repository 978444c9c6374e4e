"""Intervals within a run: that the requests of the window are handed on in the right units."""

from __future__ import annotations

import pytest
from tests.unit.metrics.made import answered, phases, spec

from nilometer.compare.within import within
from nilometer.report.gather import gather
from nilometer.report.within import intervals

from .reported import run_of, steady


def test_the_figures_are_those_of_the_series_by_hand() -> None:
    records, borders = steady(1_200, length_s=130.0)
    run = run_of(records, borders, spec(window="0..110"))
    found = intervals(run, gather(run, records).table)
    inside = [one for one in records if one.outcome == "ok" and one.sent_ns and 10 <= one.sent_ns / 1e9 - 1_000 < 120]
    series = [(one.sent_ns / 1e9 - 1_010, (one.first_token_ns - one.sent_ns) / 1e6) for one in inside]  # type: ignore[operator]
    assert found["ttft_p95"] == pytest.approx(within(series, (0.0, 110.0), 95, 0.3))
    assert found["ttft_p95"].lo < (run.summary.latency_ms["ttft"].p95 or 0) < found["ttft_p95"].hi
    assert set(found) == {"ttft_p50", "ttft_p95", "tpot_p50", "tpot_p95", "e2e_p50", "e2e_p95"}


def test_a_short_window_tells_nothing() -> None:
    records = [answered(11 + i / 10, [11.2 + i / 10, 11.4 + i / 10]) for i in range(100)]
    run = run_of(records, phases(10, 30, 40))
    assert intervals(run, gather(run, records).table) == {}
