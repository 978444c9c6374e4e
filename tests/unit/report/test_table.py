"""Which latencies a run's table shows, in which unit, with which marks."""

from __future__ import annotations

from nilometer.core.summary import Counts, Distribution, Generator, Lengths, Summary, Throughput, Window
from nilometer.report.document import Cell
from nilometer.report.table import of, rows_of
from nilometer.text.i18n import Catalogue

EN = Catalogue("en")


def measured(p50: float, n: int = 1000, marked: list[str] | None = None) -> Distribution:
    return Distribution(n=n, p50=p50, p95=p50 * 2, p99=p50 * 3, marked=marked or [])


def summary(latency: dict[str, Distribution], sources: dict[str, int] | None = None) -> Summary:
    return Summary(
        window=Window(start_s=0.0, end_s=10.0, rule="auto"),
        requests=Counts(),
        run_requests=Counts(),
        latency_from="sent",
        latency_ms=latency,
        throughput=Throughput(),
        lengths=Lengths(token_source=sources or {"usage": 1}),
        generator=Generator(),
    )


def test_ttft_tpot_and_e2e_stand_there_even_when_not_measured() -> None:
    table = of(summary({}), EN)
    assert [row[0].text for row in table.rows] == ["TTFT", "TPOT", "E2E"]
    assert table.rows[0][2:] == [Cell("0"), Cell("-"), Cell("-"), Cell("-")]
    assert table.legend == []


def test_ttfa_shows_only_where_it_differs() -> None:
    same = {"ttft": measured(200), "ttfa": measured(200)}
    assert "ttfa" not in rows_of(summary(same))
    assert "ttfa" in rows_of(summary({**same, "ttfa": measured(900)}))
    assert "ttfa" in rows_of(summary({**same, "ttfa": measured(200, n=999)})), "some answers never came"
    assert "ttfa" not in rows_of(summary({**same, "ttfa": Distribution()}))


def test_frame_gap_stands_in_for_itl_only() -> None:
    gap = {"frame_gap": measured(80)}
    assert rows_of(summary(gap)) == ["ttft", "tpot", "frame_gap", "e2e"]
    assert rows_of(summary({**gap, "itl": measured(20)})) == ["ttft", "tpot", "itl", "e2e"]


def test_lag_and_refill_show_where_they_were_measured_and_connecting_never() -> None:
    latency = {
        "start_lag": measured(0.1),
        "refill": measured(0.4),
        "connect": measured(1),
        "ttft_from_sent": measured(2),
    }
    assert rows_of(summary(latency)) == ["ttft", "tpot", "e2e", "start_lag", "refill"]


def test_each_row_has_its_unit_and_marks_are_explained() -> None:
    table = of(summary({"ttft": measured(200), "e2e": measured(3000, marked=["p95", "p99"])}), EN)
    assert [cell.text for cell in table.rows[0][1:]] == ["ms", "1,000", "200.0", "400.0", "600.0"]
    assert table.rows[2][1:] == [Cell("s"), Cell("1,000"), Cell("3.00"), Cell("6.00", "*"), Cell("9.00", "*")]
    assert table.legend == ["* fewer than 10 samples above it"]


def test_a_mark_on_a_figure_that_is_not_there_is_not_shown() -> None:
    table = of(summary({"ttft": Distribution(n=0, marked=["p99"])}), EN)
    assert table.rows[0][-1] == Cell("-")


def test_estimates_are_explained() -> None:
    assert of(summary({}, {"estimated": 3}), EN).legend == ["~ token counts are estimates"]
