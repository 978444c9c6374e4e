"""The numbers of the charts, by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from tests.unit.metrics.made import answered, failed, phases, spec, whole

from nilometer.core.record import Record
from nilometer.core.run import Run
from nilometer.report import charts
from nilometer.report.charts import Band, Level, Plot
from nilometer.report.gather import Gathered, gather
from nilometer.text.units import Scale

from .reported import run_of, steady

MS = Scale("ms", 1.0, 1)


def seen(records: Sequence[Record], run: Run) -> Gathered:
    return gather(run, records)


def test_requests_by_where_they_started_and_how_they_ended() -> None:
    """Warm-up 10 s; window 10..30; drain to 40. TTFT 0.5, 0.25, 1.0 s; the failed one took 2 s."""
    records = [
        answered(5.0, [5.5, 5.6]),
        answered(12.0, [12.25, 13.0]),
        answered(31.0, [32.0, 32.5]),
        failed(20.0, 22.0),
        failed(21.0, 22.0, None, outcome="cancelled"),
    ]
    run = run_of(records, phases(10, 30, 40), spec(window="0..20"))
    plot = charts.latency(run, seen(records, run).table, "ttft", MS)
    assert plot is not None
    assert {one.look: (one.x, one.y) for one in plot.series} == {
        "outside": ([-5.0, 21.0], [500.0, 1000.0]),
        "ok": ([2.0], [250.0]),
        "failed": ([10.0], [2000.0]),
    }
    assert plot.x == (-10.0, 30.0)
    assert plot.y == (0.0, 2000.0)
    assert plot.bands == [Band("warmup", -10.0, 0.0), Band("window", 0.0, 20.0), Band("drain", 20.0, 30.0)]
    assert plot.levels == [Level("p50", 250.0, 0.0, 20.0), Level("p95", 250.0, 0.0, 20.0)]
    assert (plot.shown, plot.total) == (4, 4)


def test_what_of_the_measured_stretch_is_no_part_of_the_window_is_said() -> None:
    records = [answered(40.0, [41.0])]
    run = run_of(records, phases(10, 100, 110), spec(window="30..60"))
    assert [(band.look, band.begin, band.end) for band in charts.bands(run)] == [
        ("warmup", -10.0, 0.0),
        ("left_out", 0.0, 30.0),
        ("window", 30.0, 60.0),
        ("left_out", 60.0, 90.0),
        ("drain", 90.0, 100.0),
    ]


def test_many_requests_are_thinned_and_the_slowest_stays() -> None:
    records, borders = steady(4_000, failures=0)
    slow = answered(25.0, [30.0, 30.1], seq=9)
    records.append(slow)
    run = run_of(records, borders)
    plot = charts.latency(run, seen(records, run).table, "ttft", MS)
    assert plot is not None
    assert (plot.shown <= charts.MOST_POINTS, plot.total) == (True, 4_001)
    assert max(y for one in plot.series for y in one.y) == 5_000.0


def test_nothing_to_draw_is_none() -> None:
    records = [whole(12.0, 13.0, 20)]
    run = run_of(records, phases(10, 30, 40))
    table = seen(records, run).table
    assert charts.latency(run, table, "ttft", MS) is None
    assert charts.by_length(run, table, MS) is None
    assert charts.spread([(run, table)], "tpot", MS) is None
    assert "spread_e2e" in charts.draw([run], [seen(records, run)]).plots
    empty = run_of([], phases(10, 30, 40))
    nothing = charts.draw([empty], [seen([], empty)])
    assert set(nothing.plots) == {"in_flight-0", "tokens-0"}


def test_seconds_come_from_the_timeline_with_what_was_asked() -> None:
    records = [answered(float(i), [i + 0.25, i + 0.75], i + 1.0) for i in range(20)]
    run = run_of(records, phases(5, 18, 20), spec(concurrency=3))
    flight = charts.per_second(run, "in_flight")
    assert flight is not None
    assert flight.series[0].x == [float(second) for second in range(-5, 15)]
    assert flight.series[0].y == [1.0] * 20
    assert flight.y == (0.0, 3.0)
    assert flight.levels == [Level("asked", 3.0, -5.0, 15.0)]
    tokens = charts.per_second(run, "output_tokens")
    assert tokens is not None
    assert tokens.series[0].y == [2.0] * 20
    assert [level.look for level in tokens.levels] == ["mean"]


def test_ttft_over_lengths_with_the_median_of_each_tenth() -> None:
    """100 requests of 10..109 tokens, TTFT 1 ms a token: ten groups of ten, the median of each on the line."""
    records = [answered(11 + i / 10, [11 + i / 10 + (10 + i) / 1_000] * 2, prompt_tokens=10 + i) for i in range(100)]
    run = run_of(records, phases(10, 30, 40), spec(window="0..20"))
    plot = charts.by_length(run, seen(records, run).table, MS)
    assert plot is not None
    points, line = plot.series
    assert points.x == [float(length) for length in range(10, 110)]
    assert points.y == pytest.approx([float(length) for length in range(10, 110)])
    assert line.x == [14.5 + 10 * i for i in range(10)]
    assert line.y == pytest.approx(line.x)


def test_groups_of_lengths_part_no_equal_lengths() -> None:
    lengths = np.array([5.0] * 40 + [7.0] * 3 + [9.0] * 57)
    parts = [lengths[part].tolist() for part in charts.tenths(lengths)]
    assert [set(part) for part in parts] == [{5.0}, {7.0, 9.0}] or [set(part) for part in parts] == [
        {5.0},
        {7.0},
        {9.0},
    ]
    assert [value for part in parts for value in part] == lengths.tolist()


def test_a_distribution_reads_the_percentiles_of_the_table() -> None:
    records, borders = steady()
    run = run_of(records, borders)
    plot = charts.spread([(run, seen(records, run).table)], "ttft", MS)
    assert plot is not None
    line = plot.series[0]
    at = dict(zip(line.y, line.x, strict=True))
    found = run.summary.latency_ms["ttft"]
    assert (at[50.0], at[95.0], at[100.0]) == pytest.approx((found.p50, found.p95, found.max), rel=1e-3)
    assert line.x == sorted(line.x)


def test_a_far_tail_is_left_out_of_a_distribution_and_counted() -> None:
    records = [answered(11 + i / 100, [11.2 + i / 100] * 2) for i in range(1_000)]
    records.append(answered(21.0, [29.0, 29.1]))
    run = run_of(records, phases(10, 30, 40), spec(window="0..20"))
    plot = charts.spread([(run, seen(records, run).table)], "ttft", MS)
    assert plot is not None
    assert plot.x[1] == pytest.approx(300.0)
    assert plot.shown < plot.total == 1_001


def test_pictures_of_one_kind_stand_on_one_axis() -> None:
    plots = [Plot(x=(0, 1), y=(0, 5.0), series=[]), None, Plot(x=(0, 2), y=(0, 9.0), series=[])]
    assert [plot and plot.y for plot in charts.alike(plots)] == [(0.0, 9.0), None, (0.0, 9.0)]
