"""A Document on a terminal: expected screens are drawn by hand."""

from __future__ import annotations

import re

from nilometer.report.document import Cell, Column, Document, Fact, Facts, Foot, Lead, Note, Notes, Table
from nilometer.report.terminal import render
from nilometer.text.width import columns

TABLE = Table(
    columns=[Column("", "left"), Column("n", "right"), Column("p50", "decimal"), Column("p99", "decimal")],
    rows=[
        [Cell("TTFT"), Cell("610"), Cell("212.4"), Cell("611.0", "*")],
        [Cell("补位"), Cell("77,470"), Cell("-"), Cell("1,234.55")],
        [Cell("E2E"), Cell("8"), Cell("7"), Cell("4.02", "*")],
    ],
    legend=["* few"],
)
FACTS = Facts(rows=[Fact("window", "0.0-180.0 s"), Fact("requests", "610 ok")])


def shown(*blocks: Lead | Table | Facts | Notes | Foot, width: int = 80, colour: bool = False) -> list[str]:
    return render(Document(lang="en", blocks=list(blocks)), width, colour).split("\n")


def test_figures_stand_on_their_decimal_point_and_marks_hang_behind_them() -> None:
    assert shown(TABLE) == [
        "           n    p50       p99",
        "TTFT     610  212.4    611.0*",
        "补位  77,470    -    1,234.55",
        "E2E        8    7        4.02*",
        "* few",
    ]


def test_units_stand_under_the_headings() -> None:
    table = Table(columns=[Column("load"), Column("TTFT", "decimal", "ms")], rows=[[Cell("1"), Cell("2.5")]])
    assert shown(table) == ["load  TTFT", "        ms", "   1   2.5"]


def test_facts_stand_beside_the_table_where_there_is_room() -> None:
    assert shown(TABLE, FACTS, width=70) == [
        "           n    p50       p99    window    0.0-180.0 s",
        "TTFT     610  212.4    611.0*    requests  610 ok",
        "补位  77,470    -    1,234.55",
        "E2E        8    7        4.02*",
        "* few",
    ]


def test_facts_stand_below_the_table_where_they_would_be_broken() -> None:
    lines = shown(TABLE, Facts(rows=[*FACTS.rows, Fact("input", "512 asked, 514 got (+0.4 %)")]), width=52)
    assert lines[4:] == [
        "* few",
        "",
        "window    0.0-180.0 s",
        "requests  610 ok",
        "input     512 asked, 514 got (+0.4 %)",
    ]


def test_a_long_fact_goes_on_under_itself() -> None:
    assert shown(Facts(rows=[Fact("slo", "one two three four")]), width=14) == [
        "slo  one two",
        "     three",
        "     four",
    ]


def test_a_note_has_cause_evidence_and_step_each_on_its_own_line() -> None:
    notes = Notes(
        rows=[
            Note(slug="a", severity="high", cause="errors", evidence="3 of 613", step="look at `nilo runs show a`"),
            Note(slug="b", severity="low", cause="a hint"),
        ],
        rest="1 more",
    )
    assert shown(notes) == ["! errors", "  3 of 613", "  look at `nilo runs show a`", "- a hint", "  1 more"]


def test_commands_in_the_foot_are_never_broken() -> None:
    foot = Foot(
        text="archived as k3v9", lead="next:", commands=["nilo runs show k3v9", "nilo doctor", "nilo measure x"]
    )
    assert shown(foot, width=45) == [
        "archived as k3v9",
        "next:  nilo runs show k3v9   nilo doctor",
        "       nilo measure x",
    ]


def test_a_blank_line_parts_the_blocks_and_no_line_ends_in_blanks() -> None:
    lines = shown(Lead(text="All is well."), TABLE, Foot(text="archived"))
    assert [i for i, line in enumerate(lines) if not line] == [1, 7]
    assert all(line == line.rstrip() for line in lines)


def test_two_colours_and_the_same_text_without_them() -> None:
    blocks = (
        Lead(text="Not admissible: the generator was the limit.", tone="trouble"),
        Notes(rows=[Note(slug="a", severity="medium", cause="see `nilo doctor`")]),
        Foot(text="archived", lead="next:", commands=["nilo doctor", "nilo runs show a"]),
    )
    plain, coloured = "\n".join(shown(*blocks)), "\n".join(shown(*blocks, colour=True))
    assert set(re.findall(r"\x1b\[(\d+)m", coloured)) == {"31", "36", "0"}
    assert re.sub(r"\x1b\[\d+m", "", coloured) == plain
    assert "\x1b" not in plain


def test_colour_does_not_move_a_line_break() -> None:
    foot = Foot(text="archived", lead="next:", commands=["nilo doctor", "nilo runs show abcdef"])
    assert len(shown(foot, width=45)) == len(shown(foot, width=45, colour=True)) == 2


def test_chinese_keeps_the_width() -> None:
    text = "已达稳态，结果可采信：16 路并发下首 token 时延 p95 为 480 ms，每路约 43 token/s；服务总吞吐 650 token/s。"
    lines = shown(Lead(text=text), Facts(rows=[Fact("窗口", text)]), width=50)
    assert max(columns(line) for line in lines) <= 50
