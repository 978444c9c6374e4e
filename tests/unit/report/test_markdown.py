"""Documents as Markdown, and that nothing in them becomes markup."""

from __future__ import annotations

import re

import pytest

from nilometer.report.document import (
    Bar,
    Bars,
    Cell,
    Chart,
    Charts,
    Column,
    Document,
    Fact,
    Facts,
    Foot,
    Heading,
    Lead,
    Note,
    Notes,
    Table,
    Text,
    Waterfall,
)
from nilometer.report.markdown import render
from nilometer.report.whole import report_document
from nilometer.text.i18n import Catalogue

from .reported import hostile, hostile_records, run_of, shown, steady

TABLE = Table(
    columns=[Column("", "left"), Column("TTFT p95", "decimal", "ms")],
    rows=[[Cell("a|b"), Cell("480.1", "*")], [Cell("c"), Cell("-")]],
    legend=["* few"],
)


def test_each_block_by_hand() -> None:
    document = Document(
        lang="en",
        blocks=[
            Heading(text="Load test: a_b", level=1),
            Lead(text="Steady: 16 users, see `nilo runs show k3v9`."),
            TABLE,
            Facts(rows=[Fact("model", "llama[3]")]),
            Bars(title="tokens/s", rows=[Bar(label="8", value=2.0, text="2.00")]),
            Notes(
                rows=[Note(slug="s", severity="low", cause="short", evidence="n 3", step="Next: `nilo x`")],
                rest="2 more",
            ),
            Text(text="Nothing."),
            Charts(rows=[Chart(title="TTFT", caption="Each mark.", plot="ttft-0", table=TABLE)]),
            Waterfall(caption="Slow.", keys=[], table=TABLE, bars=[[], []], bar_title="b", scale="1 s"),
            Foot(text="archived", lead="next:", commands=["nilo x", "nilo `y`"]),
        ],
    )
    table = "|  | TTFT p95 ms |\n| --- | --: |\n| a\\|b | 480.1\\* |\n| c | - |\n\n\\* few"
    assert render(document) == "\n\n".join(
        [
            "# Load test: a\\_b",
            "**Steady: 16 users, see `nilo runs show k3v9`.**",
            table,
            "- **model**: llama\\[3\\]",
            "tokens/s:\n\n- 8: 2.00",
            "- **short**\n  n 3\n  Next: `nilo x`\n- 2 more",
            "Nothing.",
            f"### TTFT\n\nEach mark.\n\n{table}",
            f"Slow.\n\n{table}",
            "archived\n\n- `nilo x`\n- `` nilo `y` ``\n",
        ]
    )


def test_no_text_of_a_server_becomes_markup() -> None:
    records, borders = steady(60)
    pair = hostile(run_of(records, borders)), hostile_records(records)
    told = render(report_document(shown(pair, pair), Catalogue("en")))
    bare = re.sub(r"`[^`\n]*`", "", told)
    assert re.search(r"(?<!\\)<(?:img|svg|/script)", bare) is None
    assert re.search(r"(?<!\\)\]\(javascript", bare) is None
    rows = [line for line in told.splitlines() if line.startswith("| ")]
    blocks = re.findall(r"(?:^\| .*\n)+", told, re.MULTILINE)
    widths = [{len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()} for block in blocks]
    assert len(rows) > 50
    assert all(len(width) == 1 for width in widths)


@pytest.mark.parametrize(
    ("words", "told"),
    [("- a", "\\- a"), ("1. b", "1\\. b"), ("=== x", "\\=== x"), ("480.1 ms", "480.1 ms"), ("-5 ms", "-5 ms")],
)
def test_a_sentence_does_not_begin_a_list(words: str, told: str) -> None:
    assert render(Document(lang="en", blocks=[Text(text=words)])) == f"{told}\n"
