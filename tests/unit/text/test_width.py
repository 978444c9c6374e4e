"""Columns and breaks, Chinese among English."""

from __future__ import annotations

import pytest

from nilometer.text.width import columns, pad, wrap


@pytest.mark.parametrize(
    ("text", "wide"),
    [("TTFT", 4), ("补位时间", 8), ("首 token 时延", 13), ("e\u0301", 1), ("，", 2), ("·", 1), ("", 0)],
)
def test_a_chinese_character_takes_two_columns(text: str, wide: int) -> None:
    assert columns(text) == wide


def test_padding_counts_columns() -> None:
    assert pad("补位", 6) == "补位  "
    assert pad("补位", 6, right=True) == "  补位"
    assert pad("too wide", 3) == "too wide"


def test_english_breaks_at_blanks() -> None:
    assert wrap("the service makes tokens", 11) == ["the service", "makes", "tokens"]


def test_chinese_breaks_anywhere_but_before_a_closing_mark() -> None:
    assert wrap("已达稳态，结果可采信", 8) == ["已达稳", "态，结果", "可采信"]


def test_no_line_ends_with_an_opening_mark() -> None:
    assert wrap("结果存疑（见下方）", 10) == ["结果存疑", "（见下方）"]


def test_a_number_keeps_its_unit() -> None:
    assert wrap("tokens come in 480 ms, then", 18) == ["tokens come in", "480 ms, then"]
    assert wrap("errors were 0.5 % of all", 13) == ["errors were", "0.5 % of all"]


def test_a_command_stays_whole_even_when_wider_than_the_line() -> None:
    assert wrap("see `nilo runs show k3v9 --errors`.", 12) == ["see", "`nilo runs show k3v9 --errors`."]


def test_a_word_wider_than_the_line_stands_alone() -> None:
    assert wrap("in /a/very/long/path here", 8) == ["in", "/a/very/long/path", "here"]


def test_nothing_and_blanks_make_no_line() -> None:
    assert wrap("", 10) == []
    assert wrap("   ", 10) == []


@pytest.mark.parametrize("width", [10, 17, 33, 80])
@pytest.mark.parametrize(
    "text",
    [
        "16 路并发下首 token 时延 p95 为 480 ms，每路约 43 token/s；服务总吞吐 650 token/s（取自 usage）。",
        "16 users get the first token in 480 ms (p95) and 43 tokens/s each; the service makes 650 tokens/s.",
    ],
)
def test_wrapping_loses_nothing_and_keeps_the_width(text: str, width: int) -> None:
    lines = wrap(text, width)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(columns(line) <= width or " " not in line for line in lines)
