"""The whole report as a Document: its parts in order, what is left out, and what several runs make of it."""

from __future__ import annotations

from typing import TypeVar

import pytest
from msgspec.structs import replace
from tests.unit.metrics.made import answered, failed, phases, spec, whole

from nilometer.core.finding import Finding
from nilometer.core.spec import Labels
from nilometer.report.document import Charts, Document, Facts, Foot, Heading, Lead, Notes, Table, Text, Waterfall
from nilometer.report.sweep import sweep_document
from nilometer.report.whole import MOST_WITH_BARS, report_document
from nilometer.text.i18n import LANGUAGES, Catalogue

from .reported import run_of, shown, steady

EN = Catalogue("en")
Kind = TypeVar("Kind")


def of(document: Document, kind: type[Kind]) -> list[Kind]:
    return [block for block in document.blocks if isinstance(block, kind)]


def headings(document: Document, level: int = 2) -> list[str]:
    return [one.text for one in of(document, Heading) if one.level == level]


def test_one_run_in_the_order_of_reading() -> None:
    records, borders = steady()
    document = report_document(shown((run_of(records, borders), records)), EN)
    assert headings(document, 1) == ["Load test: llama"] or headings(document, 1)[0].startswith("Load test: ")
    assert headings(document) == [
        "Figures",
        "Findings",
        "Charts",
        "The slowest requests, step by step",
        "Failed requests",
        "Test conditions",
        "What the words mean",
        "Where it lies, and what next",
    ]
    charts = [chart for block in of(document, Charts) for chart in block.rows]
    assert [chart.plot for chart in charts] == [
        "ttft-0",
        "e2e-0",
        "in_flight-0",
        "tokens-0",
        "length-0",
        "spread_ttft",
        "spread_tpot",
    ]
    assert all(chart.table is not None and chart.keys for chart in charts)
    assert of(document, Text)[0].text == "Nothing stood out."
    assert len(of(document, Waterfall)[0].bars) == 50


def test_a_run_without_failures_has_no_part_for_them() -> None:
    records, borders = steady(failures=0)
    assert "Failed requests" not in headings(report_document(shown((run_of(records, borders), records)), EN))


def test_a_run_without_records_says_so_and_shows_its_timeline() -> None:
    records, borders = steady()
    document = report_document(shown((run_of(records, borders), [])), EN)
    assert EN.say("screen.chart.no_records") in [text.text for text in of(document, Text)]
    assert [chart.plot for block in of(document, Charts) for chart in block.rows] == ["in_flight-0", "tokens-0"]
    assert of(document, Waterfall) == []
    bare = run_of(records, borders)
    bare = replace(bare, summary=replace(bare.summary, timeline=[]))
    absent = of(report_document(shown((bare, [])), EN), Charts)[0]
    assert {(chart.plot, chart.caption) for chart in absent.rows} == {(None, EN.say("screen.chart.no_timeline"))}


def test_whole_answers_say_why_there_is_no_first_token() -> None:
    records = [whole(11.0 + i, 12.0 + i, 20) for i in range(10)]
    document = report_document(shown((run_of(records, phases(10, 30, 40)), records)), EN)
    captions = {chart.plot or chart.title: chart.caption for block in of(document, Charts) for chart in block.rows}
    assert captions["Time to first token (TTFT) over the run"] == EN.say("screen.chart.no_ttft")
    assert captions["TTFT against the length of the prompt"] == EN.say("screen.chart.one_length")
    assert not [name for name in captions if "TPOT" in name]
    assert captions["spread_e2e"] == EN.say("screen.chart.spread.caption")
    assert "10 requests" in captions["e2e-0"]


def test_a_run_in_which_nothing_was_answered_still_makes_a_report() -> None:
    records = [failed(11.0 + i, 12.0 + i) for i in range(5)]
    document = report_document(shown((run_of(records, phases(10, 30, 40)), records)), EN)
    assert EN.say("screen.chart.no_e2e") in [chart.caption for block in of(document, Charts) for chart in block.rows]
    assert len(of(document, Waterfall)[0].bars) == 5


def test_a_caption_says_how_many_of_the_points_are_drawn() -> None:
    records, borders = steady(3_000, failures=0)
    document = report_document(shown((run_of(records, borders), records)), EN)
    caption = of(document, Charts)[0].rows[0].caption
    assert "of 3,000 points" in caption


def test_two_runs_stand_side_by_side_with_their_differences() -> None:
    records, borders = steady()
    slower, _ = steady(seed=2)
    one, other = run_of(records, borders), run_of(slower, borders, spec(concurrency=2), id="w3ye7uaaaaaa")
    document = report_document(shown((one, records), (other, slower))._replace(differences=[]), EN)
    assert headings(document, 1) == ["2 load tests side by side"]
    assert [lead.text.partition(":")[0] for lead in of(document, Lead)] == ["A k3v9c2", "B w3ye7u"]
    table = of(document, Table)[0]
    assert [column.title for column in table.columns[2:]] == [
        "A k3v9c2",
        "B w3ye7u",
        "change",
        "95 % interval",
        "verdict",
    ]
    latencies = of(document, Charts)[0].rows
    assert [chart.plot for chart in latencies] == ["ttft-0", "ttft-1"]
    assert [chart.title.rpartition(": ")[2] for chart in latencies] == ["A k3v9c2", "B w3ye7u"]
    spread = of(document, Charts)[-1].rows[0]
    assert [key.name for key in spread.keys][:2] == ["A k3v9c2", "B w3ye7u"]
    assert headings(document, 3) == ["A k3v9c2", "B w3ye7u"] * 2
    (condition,) = [one for one in of(document, Table) if one.columns[0].title == "" and len(one.columns) == 3]
    assert [row[0].text for row in condition.rows if row[0].mark] == ["load"]


def test_a_group_begins_with_its_own_screen_and_names_its_runs_by_their_load() -> None:
    pairs = []
    for level in (1, 4):
        records, borders = steady(seed=level)
        run = run_of(records, borders, spec(concurrency=level), id=f"aaaaaa{level}", group="g2xw", level=str(level))
        pairs.append((run, records))
    screen = sweep_document([run for run, _ in pairs], "g2xw", EN)
    document = report_document(shown(*pairs), EN, screen)
    assert of(document, Lead) == [block for block in screen.blocks if isinstance(block, Lead)]
    assert headings(document)[:4] == ["Figures", "Side by side", "Charts", "The slowest requests, step by step"]
    assert headings(document, 3)[:2] == ["1 in flight", "4 in flight"]
    assert of(document, Foot) == [block for block in screen.blocks if isinstance(block, Foot)]


def test_runs_are_named_by_their_sides_where_they_have_some() -> None:
    records, borders = steady(60)
    ids = [f"aaaaaaaaaa{i:02}" for i in range(4)]
    of_runs = shown(*((run_of(records, borders, id=name, group="g2xw"), records) for name in ids))
    document = report_document(of_runs._replace(sides=dict(zip(ids, "ABBA", strict=True))), EN)
    assert [column.title[0] for column in of(document, Table)[0].columns[2:]] == list("ABBA")
    lesson = shown(
        *(
            (run_of(records, borders, id=name, group="g2xw", role=f"length-mix/{side}"), records)
            for name, side in zip(ids, ("short", "mix"), strict=False)
        )
    )
    table = of(report_document(lesson, EN), Table)[0]
    assert [column.title for column in table.columns[2:4]] == [EN.say("screen.lab.short"), EN.say("screen.lab.mix")]


def test_of_many_runs_the_slowest_requests_are_left_out() -> None:
    records, borders = steady(60)
    pairs = [(run_of(records, borders, id=f"aaaaaaaaaa{i:02}"), records) for i in range(MOST_WITH_BARS + 1)]
    document = report_document(shown(*pairs), EN)
    assert of(document, Waterfall) == []
    assert len(of(document, Charts)[0].rows) == len(pairs)


def test_a_finding_stands_with_the_run_that_has_it() -> None:
    records, borders = steady()
    few = Finding(slug="too_few", kind="validity", severity="medium", params={"n": 35, "least": 50})
    pair = (run_of(records, borders, findings=[few]), records)
    alone = report_document(shown(pair), EN)
    assert [note.slug for notes in of(alone, Notes) for note in notes.rows] == ["too_few"]
    beside = report_document(shown(pair, (run_of(records, borders, id="w3ye7uaaaaaa"), records)), EN)
    assert headings(beside)[:2] == ["Side by side", "Findings"]
    assert headings(beside, 3)[0] == "A k3v9c2"


@pytest.mark.parametrize("lang", LANGUAGES)
def test_both_languages_say_the_same(lang: str) -> None:
    """As many blocks of each kind, the same pictures, tables of the same size."""
    records, borders = steady()
    run = run_of(records, borders)
    of_run = shown((run, records))
    one, other = report_document(of_run, EN), report_document(of_run, Catalogue(lang))
    assert [type(block) for block in one.blocks] == [type(block) for block in other.blocks]
    for here, there in zip(of(one, Table), of(other, Table), strict=True):
        assert (len(here.rows), len(here.columns)) == (len(there.rows), len(there.columns))


def test_the_condition_tells_all_that_was_asked_and_no_folder_of_a_machine() -> None:
    records, borders = steady()
    run = run_of(records, borders, replace(spec(), labels=Labels(service="chat", extra={"team": "a"})))
    model = replace(run.environment.model, file="/home/someone/models/m.gguf", file_bytes=1 << 20)
    run = replace(run, environment=replace(run.environment, model=model))
    document = report_document(shown((run, records)), EN)
    told = {fact.name: fact.value for block in of(document, Facts) for fact in block.rows}
    assert told["model file"] == "m.gguf 1.00 MiB"
    assert told["phases"] == "warm-up 60 s, measured 180 s, drain up to 60 s"
    assert (told["load"], told["sampling"]) == ("closed loop, 1 in flight", "temperature=0")
    assert (told["service"], told["labels"]) == ("chat", "team=a")
    assert headings(document, 1) == ["Load test: chat"]


def test_definitions_are_of_what_is_shown() -> None:
    records = [answered(11 + i / 10, [11.5 + i / 10, 12 + i / 10], due_ns=None) for i in range(60)]
    document = report_document(shown((run_of(records, phases(10, 30, 40)), records)), EN)
    told = {fact.name: fact.value for fact in of(document, Facts)[-1].rows}
    assert told["time to first token (TTFT)"].endswith(EN.say("meaning.ttft"))
    assert told["start of a latency"] == EN.say("screen.meant.start_sent")
    assert "time to first answer (TTFA)" not in told
