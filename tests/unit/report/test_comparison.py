"""The verdict of a comparison in words, as a table and as JUnit, from verdicts that each test states."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace
from tests.unit.compare.made import run, summary

from nilometer.compare.family import TABLE
from nilometer.compare.verdict import Comparison, MetricVerdict
from nilometer.report.comparison import comparison_document, geometric_mean, lead_of, table
from nilometer.report.document import Lead, Table
from nilometer.report.junit import junit_xml
from nilometer.text.i18n import Catalogue

EN, ZH = Catalogue("en"), Catalogue("zh")
TTFT = MetricVerdict(metric="ttft_p95", ratio=1.01, ci=(0.97, 1.05), margin=0.10, verdict="SAME", p_adjusted=0.9)
WORSE = MetricVerdict(metric="tpot_p50", ratio=1.098, ci=(1.071, 1.126), margin=0.05, verdict="REGRESSED")
MORE = MetricVerdict(metric="output_tokens_per_s", ratio=1.10, ci=(1.06, 1.14), margin=0.05, verdict="IMPROVED")
OPEN = replace(TTFT, verdict="UNDECIDED", ci=(0.90, 1.20), more_runs_needed=4)
SHOWN = MetricVerdict(metric="e2e_p50", ratio=0.95, ci=(0.9, 1.0))


def told(verdict: Any, *metrics: MetricVerdict, more: int | None = 0, paired: bool = True) -> Comparison:
    runs = ["1", "2", "3"]
    return Comparison(
        verdict=verdict, metrics=list(metrics), runs_a=runs, runs_b=runs, more_runs_needed=more, paired=paired
    )


def test_a_regression_is_named_with_its_interval_and_what_is_open() -> None:
    lead = lead_of(told("REGRESSED", OPEN, WORSE, MORE), TABLE, EN)
    assert lead.text == (
        "REGRESSED: TPOT p50 +9.8 % (95 % interval +7.1 to +12.6, margin 5 %); after 3 pairs, A B B A order. "
        "Better: throughput +10.0 % (95 % interval +6.0 to +14.0, margin 5 %). Not decided: TTFT p95."
    )
    assert lead.tone == "trouble"


def test_the_same_in_chinese() -> None:
    lead = lead_of(told("REGRESSED", TTFT, WORSE, paired=False), TABLE, ZH)
    assert lead.text == "退化：TPOT p50 +9.8 %（95 % 区间 +7.1 至 +12.6，裕度 5 %）；A 3 次运行，B 3 次。"


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (4, "About 4 more runs a side would decide."),
        (1, "About 1 more run a side would decide."),
        (
            None,
            "No affordable number of runs would decide: the change lies at the margin, or the runs differ too much.",
        ),
    ],
)
def test_what_is_undecided_says_what_would_decide_it(more: int | None, says: str) -> None:
    assert lead_of(told("UNDECIDED", OPEN, more=more), TABLE, EN).text.endswith(says)


def test_one_run_a_side_is_no_interval() -> None:
    alone = MetricVerdict(metric="tpot_p50", ratio=1.10, margin=0.05, verdict="UNDECIDED")
    assert (
        "TPOT p50 +10.0 % (too few runs for an interval)" in lead_of(told("UNDECIDED", alone, more=2), TABLE, EN).text
    )


def test_nothing_judged_is_said() -> None:
    assert lead_of(told("UNDECIDED", SHOWN, more=None), TABLE, EN).text.startswith(
        "UNDECIDED: none of the figures to be judged was measured."
    )


def test_the_table_has_the_geometric_means_of_the_runs() -> None:
    """sqrt(10 x 40) = 20 against 22."""
    a = [run("a", summary(tpot_p50=10.0)), run("b", summary(tpot_p50=40.0))]
    b = [run("c", summary(tpot_p50=22.0))]
    made = table(told("REGRESSED", replace(WORSE, ratio=1.1), SHOWN), TABLE, (a, b), EN)
    assert [cell.text for cell in made.rows[0]] == [
        "TPOT p50", "ms", "20.0", "22.0", "+10.0", "+7.1 to +12.6", "5", "REGRESSED",
    ]  # fmt: skip
    assert [cell.text for cell in made.rows[1]][4:] == ["-5.0", "-10.0 to 0.0", "-", "-"]
    assert made.legend


def test_a_run_without_the_figure_has_no_mean() -> None:
    assert geometric_mean([4.0, None]) is None
    assert geometric_mean([]) is None
    assert geometric_mean([0.0, 4.0]) is None


def test_the_verdict_stands_first() -> None:
    document = comparison_document(told("SAME", TTFT), TABLE, ([run("a")], [run("b")]), EN, why_short="Cut.")
    first, second = document.blocks
    assert isinstance(first, Lead)
    assert isinstance(second, Table)
    assert first.text.endswith("order. Cut.")


def test_junit_fails_what_regressed_and_skips_what_is_open() -> None:
    root = ElementTree.fromstring(junit_xml(told("REGRESSED", OPEN, WORSE, MORE, SHOWN), TABLE, EN))
    (suite,) = root
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("3", "1", "1")
    outcomes = {case.get("name"): case[0].tag for case in suite}
    assert outcomes == {"TTFT p95": "skipped", "TPOT p50": "failure", "throughput": "system-out"}


def test_what_was_not_admissible_is_named() -> None:
    left = replace(told("SAME", TTFT), left_out=["abcdefghijkl"])
    assert lead_of(left, TABLE, EN).text.endswith("Left out as not admissible: abcdef.")
