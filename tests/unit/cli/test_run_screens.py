"""What `nilo runs` shows, in both languages and within 80 columns."""

from __future__ import annotations

import pytest
from tests.unit.archive.samples import STARTED_WALL_NS, make_run

from nilometer.archive.protocol import Checked, RunRow
from nilometer.cli.run_screens import (
    check_document,
    check_object,
    failure_document,
    list_document,
    load_of,
    removed_document,
    row_object,
    subject_of,
)
from nilometer.core.errors import ArchiveError
from nilometer.report.document import Document
from nilometer.report.failures import Failure, Failures
from nilometer.report.terminal import render
from nilometer.text.i18n import Catalogue
from nilometer.text.width import columns

EN, ZH = Catalogue("en"), Catalogue("zh")
YEAR_NS = 366 * 86_400 * 1_000_000_000


def make_row(**fields: object) -> RunRow:
    whole: dict[str, object] = {
        "id": "k3v9c2mq7x1d",
        "started_wall_ns": STARTED_WALL_NS,
        "target": "http://127.0.0.1:8000/v1",
        "verdict": "admissible",
        "origin": "measured",
        "records": 610,
        "model": "llama",
        "concurrency": 16,
        "ttft_p95_ms": 480.125,
        "tpot_p95_ms": 25.9,
        "output_tokens_per_s": 650.4,
    }
    return RunRow(**(whole | fields))  # type: ignore[arg-type]


def lines(document: Document) -> list[str]:
    return render(document).splitlines()


def test_a_list_has_a_line_for_each_run() -> None:
    rows = [
        make_row(),
        make_row(id="aaaaaaaaaaaa", concurrency=None, rate_per_s=4.5, service="chat", ttft_p95_ms=None),
    ]
    assert lines(list_document(rows, 50, "/a.sqlite", EN))[:4] == [
        "run           started      load     TTFT    TPOT  token/s  service or target",
        "              UTC                 p95 ms  p95 ms",
        "k3v9c2mq7x1d  08-06 07:06  c 16      480    25.9      650  127.0.0.1:8000 · lla…",
        "aaaaaaaaaaaa  08-06 07:06  4.5/s       -    25.9      650  chat · llama",
    ]


def test_marks_hang_on_the_id_and_are_explained() -> None:
    rows = [make_row(verdict="marked"), make_row(verdict="inadmissible"), make_row()]
    told = lines(list_document(rows, 50, "/a.sqlite", EN))
    assert [line[:13] for line in told[2:5]] == ["k3v9c2mq7x1d?", "k3v9c2mq7x1d!", "k3v9c2mq7x1d "]
    assert [line[:2] for line in told[-2:]] == ["? ", "! "]
    assert not [line for line in lines(list_document([make_row()], 50, "/a", EN)) if line.startswith(("? ", "! "))]


def test_the_date_stands_alone_where_the_runs_are_not_all_of_one_year() -> None:
    rows = [make_row(started_wall_ns=STARTED_WALL_NS + YEAR_NS), make_row()]
    told = lines(list_document(rows, 50, "/a.sqlite", EN))
    assert told[2].split()[1:3] == ["2027-08-07", "c"]
    assert told[3].split()[1:3] == ["2026-08-06", "c"]


@pytest.mark.parametrize("words", [EN, ZH])
def test_the_widest_list_stays_within_80_columns(words: Catalogue) -> None:
    row = make_row(
        verdict="marked",
        service="客服机器人生产环境",
        concurrency=1024,
        ttft_p95_ms=99_999.4,
        tpot_p95_ms=1_234.5,
        output_tokens_per_s=99_999.0,
    )
    other = make_row(started_wall_ns=STARTED_WALL_NS + YEAR_NS)
    for rows in ([row], [row, other]):
        assert max(columns(line) for line in lines(list_document(rows, 2, "/a.sqlite", words))) <= 80


def test_a_full_list_says_that_there_may_be_more() -> None:
    more = EN.say("screen.runs.older", limit=1)
    assert more in lines(list_document([make_row()], 1, "/a.sqlite", EN))
    assert more not in lines(list_document([make_row()], 2, "/a.sqlite", EN))


@pytest.mark.parametrize("words", [EN, ZH])
def test_an_empty_archive_names_itself_and_the_next_step(words: Catalogue) -> None:
    told = " ".join(lines(list_document([], 50, "/a.sqlite", words)))
    assert "/a.sqlite" in told
    assert "nilo quickstart" in told


def test_a_row_is_a_part_of_the_summary_object() -> None:
    found = row_object(make_row(service="chat", group="g", tags=["base"]))
    assert (found["run"], found["group"], found["verdict"], found["tags"]) == (
        "k3v9c2mq7x1d",
        "g",
        "admissible",
        ["base"],
    )
    assert found["started"] == "2026-08-06T07:06:40.123Z"
    assert found["latency_ms"] == {"ttft": {"p95": 480.125}, "tpot": {"p95": 25.9}, "e2e": {"p95": None}}
    assert found["throughput"] == {"output_tokens_per_s": 650.4}


@pytest.mark.parametrize(
    ("fields", "subject"),
    [
        ({"service": "chat", "model": None}, "chat"),
        ({"target": "https://llm.example.com/", "model": "m"}, "llm.example.com · m"),
        ({"target": "embedded", "model": None}, "embedded"),
        ({"target": None, "model": None}, "?"),
    ],
)
def test_what_was_measured(fields: dict[str, object], subject: str) -> None:
    assert subject_of(make_row(**fields)) == subject


def test_the_load() -> None:
    assert load_of(make_row()) == "c 16"
    assert load_of(make_row(concurrency=None, rate_per_s=0.25)) == "0.25/s"


def failure(n: int, **fields: object) -> Failure:
    whole: dict[str, object] = {"outcome": "error", "error": "http_5xx", "status": 503, "detail": "no\n slot"}
    return Failure(n=n, **(whole | {"first_s": 1.0, "last_s": 30.55} | fields))  # type: ignore[arg-type]


def test_failures_are_told_with_kind_time_and_detail() -> None:
    kinds = [
        failure(3),
        failure(1, outcome="incomplete", error=None, status=200, detail=None, last_s=1.0),
        failure(1, error="connect", status=None, detail="x" * 200, first_s=None, last_s=None),
    ]
    told = lines(failure_document(make_run(), Failures(kinds=kinds, failed=5, records=610), EN))
    assert told[0] == "5 of 610 requests failed in run k3v9c2mq7x1d."
    assert [line.split(maxsplit=3) for line in told[4:6]] == [
        ["3", "1.0..30.6", "http_5xx", "503 no slot"],
        ["1", "1.0", "incomplete", "200"],
    ]
    assert told[6].endswith("x…")
    assert max(columns(line) for line in told) <= 80


def test_more_kinds_than_fit_are_counted() -> None:
    kinds = [failure(1, detail=str(i)) for i in range(25)]
    told = lines(failure_document(make_run(), Failures(kinds=kinds, failed=25, records=30), EN))
    assert told[-1] == EN.say("screen.runs.failure_more", n=5)
    assert len(told) == 2 + 2 + 20 + 1


@pytest.mark.parametrize("words", [EN, ZH])
def test_no_failures_is_an_answer(words: Catalogue) -> None:
    (told,) = lines(failure_document(make_run(), Failures(kinds=[], failed=0, records=3), words))
    assert told == words.say("screen.runs.no_failures", run="k3v9c2mq7x1d")


def test_removals_say_what_is_gone() -> None:
    rows = [make_row(tags=["base", "main"]), make_row(id="aaaaaaaaaaaa", records=1)]
    told = " ".join(lines(removed_document(rows, EN)))
    assert told.index("k3v9c2mq7x1d") < told.index("base, main") < told.index("aaaaaaaaaaaa")
    assert "610 records" in told
    assert "1 record." in told


def test_a_check_tells_each_fault() -> None:
    problems = [
        ArchiveError("run_damaged", run="k3v9c2mq7x1d", detail="cut"),
        ArchiveError("archive_damaged", path="/a.sqlite", detail="page 7"),
    ]
    checked = Checked(3, 40, problems)
    told = "\n".join(lines(check_document(checked, "/a.sqlite", EN)))
    assert told.startswith("2 faults in /a.sqlite (3 runs read).")
    assert "(run_damaged)" in told
    assert "page 7" in told
    assert check_object(checked, [], [])["problems"] == [
        {"slug": "run_damaged", "params": {"run": "k3v9c2mq7x1d", "detail": "cut"}},
        {"slug": "archive_damaged", "params": {"path": "/a.sqlite", "detail": "page 7"}},
    ]


def test_a_whole_archive_is_told_in_one_line() -> None:
    assert lines(check_document(Checked(2, 40, []), "/a.sqlite", EN)) == ["All whole: 2 runs, 40 records in /a.sqlite."]
