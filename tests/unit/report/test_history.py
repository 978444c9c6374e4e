"""The performance file of a service in words, from entries and steps that each test states."""

from __future__ import annotations

import pytest
from tests.unit.compare.made import run, summary

from nilometer.compare.change_points import History, Step
from nilometer.compare.entries import Entry
from nilometer.compare.family import TABLE
from nilometer.report.document import Lead, Table, Text
from nilometer.report.history import Chapter, history_document
from nilometer.report.terminal import render
from nilometer.text.i18n import Catalogue

ROWS = [row for row in TABLE if row.primary]
DAY_NS = 86_400 * 10**9
QUIET = {row.name: History("too_few") for row in ROWS}


def entries(n: int) -> list[Entry]:
    return [Entry((f"run{i}",), i * DAY_NS, f"v{i}", None, None, (400.0, 20.0, 600.0, 2.0**30)) for i in range(n)]


def shown(chapter: Chapter, lang: str = "en") -> str:
    return render(history_document("chat", ROWS, [chapter], Catalogue(lang)))


def test_a_step_is_told_first_and_marked_in_its_row() -> None:
    histories = {**QUIET, "tpot_p50": History("steps", (Step(9, 1.12, 0.001),))}
    document = history_document("chat", ROWS, [Chapter(entries(13), histories, run(), None)], Catalogue("en"))
    (lead,) = (block for block in document.blocks if isinstance(block, Lead))
    assert lead.text == ("chat: 13 tests under 1 condition. TPOT p50 changed its level by +12 % on 1970-01-10 (v9).")
    (table,) = (block for block in document.blocks if isinstance(block, Table))
    marked = [(row[1].text, i) for row in table.rows for i, cell in enumerate(row) if cell.mark]
    assert marked == [("v9", 4)], "the column of TPOT p50"


def test_a_short_history_says_whether_the_newest_fits() -> None:
    histories = {**QUIET, "ttft_p95": History("boundary", expected=(380.0, 390.0), outside=True)}
    told = " ".join(shown(Chapter(entries(5), histories, run(), None)).split())
    assert (
        "The newest TTFT p95, 400 ms, lies outside of what the former tests let be expected: 380 ms to 390 ms." in told
    )
    assert "No figure changed its level." not in told


@pytest.mark.parametrize(
    ("lang", "says"), [("en", "TPOT p50 25.0 ms (20.0 ms)"), ("zh", "TPOT p50 25.0 ms（实为 20.0 ms）")]
)
def test_what_a_short_test_would_have_said_stands_beside_the_truth(lang: str, says: str) -> None:
    chapter = Chapter(entries(1), QUIET, run(), summary(tpot_p50=25.0))
    told = " ".join(shown(chapter, lang).split())
    assert says in told


def test_old_tests_are_left_to_the_machine_form() -> None:
    document = history_document("chat", ROWS, [Chapter(entries(35), QUIET, run(), None)], Catalogue("en"))
    (table,) = (block for block in document.blocks if isinstance(block, Table))
    assert len(table.rows) == 30
    assert table.legend == ["5 older tests are in the machine form (--json)"]
    assert not any(isinstance(block, Text) for block in document.blocks)
