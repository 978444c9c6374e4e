"""Runs beside each other: ratios by hand, and what a comparison adds."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.unit.metrics.made import answered, phases, spec

from nilometer.compare.verdict import MetricVerdict
from nilometer.compare.within import Within
from nilometer.core.run import Run
from nilometer.report.beside import bare, table
from nilometer.report.document import Table
from nilometer.text.i18n import Catalogue

from .reported import run_of

EN = Catalogue("en")


def a_run(ttft_s: float, **fields: object) -> Run:
    records = [answered(11 + i / 10, [11 + i / 10 + ttft_s, 12 + i / 10 + ttft_s]) for i in range(20)]
    return run_of(records, phases(10, 30, 40), spec(window="0..20"), **fields)


def row(shown: Table, name: str) -> list[str]:
    (found,) = ([cell.text for cell in row] for row in shown.rows if row[0].text == name)
    return found


def test_two_runs_have_their_ratio_and_no_interval() -> None:
    shown = table([a_run(0.2), a_run(0.25)], ["A", "B"], EN, differences=[])
    assert row(shown, "TTFT p50") == ["TTFT p50", "ms", "200.0", "250.0", "+25 %", "-", "-"]
    assert row(shown, "n")[2:] == ["20", "20", "", "", ""]
    assert row(shown, "throughput")[2:5] == ["2.00", "2.00", "0 %"]
    assert shown.legend[-1] == EN.say("screen.beside.no_interval")
    assert [cell.mark for cell in shown.rows[1][2:4]] == ["", ""]
    assert [cell.mark for cell in shown.rows[2][2:4]] == ["*", "*"]


def test_two_runs_that_were_not_compared_have_no_ratio() -> None:
    """They may be of unlike conditions, or one of them is not admissible."""
    shown = table([a_run(0.2), a_run(0.25)], ["A", "B"], EN)
    assert row(shown, "TTFT p50") == ["TTFT p50", "ms", "200.0", "250.0"]


def test_a_comparison_brings_interval_and_verdict() -> None:
    told = [
        MetricVerdict(metric="ttft_p50", ratio=1.25, ci=(1.1, 1.4), margin=0.05, verdict="REGRESSED"),
        MetricVerdict(metric="tpot_p50", ratio=0.98, verdict="UNDECIDED"),
        MetricVerdict(metric="tpot_p95", reason="not_measured"),
    ]
    shown = table([a_run(0.2), a_run(0.25)], ["A", "B"], EN, (), told)
    assert row(shown, "TTFT p50")[4:] == ["+25 %", "+10 % to +40 %", "REGRESSED"]
    assert row(shown, "TPOT p50")[4:] == ["-2 %", "-", "UNDECIDED"]
    assert row(shown, "TPOT p95")[4:] == ["-", "-", "-"]
    assert row(shown, "E2E p50")[4:] == ["+4.2 %", "-", "-"]
    assert EN.say("screen.beside.no_interval") not in shown.legend
    zh = table([a_run(0.2), a_run(0.25)], ["A", "B"], Catalogue("zh"), (), told)
    assert row(zh, "TTFT p50")[4:] == ["+25 %", "+10 % 至 +40 %", "退化"]


def test_a_run_says_how_sure_it_is_of_its_own_figure() -> None:
    within = [{"ttft_p95": Within(200.0, 190.0, 212.0, 30.0)}, {}]
    shown = table([a_run(0.2), a_run(0.25)], ["A", "B"], EN, within)
    assert row(shown, "TTFT p95, within the run")[1:] == ["ms", "190.0 - 212.0", "-"]
    assert EN.say("screen.beside.within_legend") in shown.legend


def test_more_runs_have_no_difference() -> None:
    runs = [a_run(0.2), replace(a_run(0.2), verdict="inadmissible"), a_run(0.3)]
    shown = table(runs, ["1", "4", "8"], EN)
    assert [column.title for column in shown.columns] == ["", "", "1", "4", "8"]
    assert [cell.mark for cell in shown.rows[0][2:]] == ["", "!", ""]


@pytest.mark.parametrize(("a", "b", "ratio"), [(2.0, 3.0, 1.5), (0.0, 3.0, None), (None, 3.0, None), (2.0, None, None)])
def test_a_ratio_takes_two_figures(a: float | None, b: float | None, ratio: float | None) -> None:
    assert bare("x", a, b).ratio == ratio
