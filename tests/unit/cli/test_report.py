"""`nilo report` as a user calls it: which runs, which file, which form, and what it refuses."""

from __future__ import annotations

import csv
import io
import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.unit.metrics.made import spec
from tests.unit.report.parsed import Parsed
from tests.unit.report.reported import run_of, steady

from nilometer.archive.sqlite import SqliteArchive
from nilometer.cli.report import command
from nilometer.core.group import Group


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that is the current one; its archive holds a run and a sweep of two."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "data" / "archive.sqlite"
    path.parent.mkdir()
    monkeypatch.setenv("NILO_ARCHIVE", f"sqlite:///{path}")
    records, borders = steady(60)
    with SqliteArchive(path) as archive:
        archive.put(run_of(records, borders), records)
        archive.put_group(Group(id="g2xwaaaaaaaa", type="sweep", started_wall_ns=1))
        archive.put_group(Group(id="r3ptaaaaaaaa", type="repeat", started_wall_ns=2))
        for level in (4, 1):
            fields = {"level": str(level), "order": level, "group": "g2xwaaaaaaaa"}
            archive.put(run_of(records, borders, spec(concurrency=level), id=f"sw{level}aaaaaaaaa", **fields), records)
        for n in (1, 2):
            archive.put(run_of(records, borders, id=f"rp{n}aaaaaaaaa", group="r3ptaaaaaaaa", order=n), records)
        archive.tag("base", "k3v9c2mq7x1d")
    return tmp_path


def nilo_report(*arguments: str) -> Result:
    result = CliRunner().invoke(command, [*arguments, "--lang", "en"])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def machine(*arguments: str) -> dict[str, Any]:
    result = nilo_report(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_a_run_becomes_a_page_in_this_folder(folder: Path) -> None:
    done = nilo_report("base")
    assert done.exit_code == 0
    file = folder / "nilo-k3v9c2.html"
    assert done.stdout.startswith("Written: nilo-k3v9c2.html (")
    assert len(Parsed(file.read_text("utf-8")).of("main")) == 2
    assert sorted(path.name for path in folder.iterdir()) == ["data", "nilo-k3v9c2.html"]


def test_what_is_there_is_not_overwritten_unasked(folder: Path) -> None:
    file = folder / "nilo-k3v9c2.html"
    file.write_text("mine")
    refused = nilo_report("base")
    assert (refused.exit_code, "file_exists" in refused.stderr, file.read_text()) == (2, True, "mine")
    assert nilo_report("base", "--force").exit_code == 0
    assert file.read_text("utf-8").startswith("<!doctype html>")
    (folder / "link.html").symlink_to(folder / "gone")
    assert nilo_report("base", "-o", "link.html").exit_code == 2


def test_the_machine_form_says_what_was_written(folder: Path) -> None:
    told = machine("k3v9", "-o", "a.html")
    assert (told["kind"], told["file"], told["form"]) == ("report", "a.html", "html")
    assert (told["runs"], told["group"]) == (["k3v9c2mq7x1d"], None)
    assert told["bytes"] == (folder / "a.html").stat().st_size


def test_a_group_is_a_report_of_its_runs(folder: Path) -> None:
    told = machine("g2xw")
    assert (told["file"], told["group"]) == ("nilo-g2xwaa.html", "g2xwaaaaaaaa")
    assert told["runs"] == ["sw1aaaaaaaaa", "sw4aaaaaaaaa"]
    page = Parsed((folder / told["file"]).read_text("utf-8"))
    assert "1 in flight" in page.text_of("th")
    repeats = machine("r3pt", "--format", "markdown")
    told_of = (folder / repeats["file"]).read_text("utf-8")
    assert told_of.startswith("# 2 load tests side by side")


def test_two_groups_of_repeats_are_held_against_each_other(folder: Path) -> None:
    with SqliteArchive(folder / "data" / "archive.sqlite") as archive:
        for side, slower in (("aside", 1.0), ("bside", 1.5)):
            archive.put_group(Group(id=f"{side}aaaaaaa", type="repeat", started_wall_ns=3))
            for n in range(3):
                records, borders = steady(80, seed=n, slower=slower)
                run = run_of(records, borders, id=f"{side}{n}aaaaaa", group=f"{side}aaaaaaa", order=n)
                archive.put(run, records)
    told = nilo_report("asidea", "bsidea", "--format", "markdown", "-o", "-").stdout
    assert re.search(r"^\*\*REGRESSED: TTFT p95 \+", told, re.MULTILINE)
    assert "3 runs of A, 3 of B" in told
    assert "| A aside0 | A aside1 | A aside2 | B bside0 | B bside1 | B bside2 |" in told
    alone = nilo_report("aside0", "bside0", "--format", "markdown", "-o", "-").stdout
    assert alone.startswith("# 2 load tests side by side")
    assert "REGRESSED" not in alone
    assert "Not compared" not in alone
    unlike = nilo_report("sw1", "sw4", "--format", "markdown", "-o", "-").stdout
    assert "Not compared: these runs were not made under like test conditions: load.concurrency: 1 \\| 4." in unlike


@pytest.mark.parametrize(
    ("refs", "name"),
    [
        (["k3v9", "sw1"], "nilo-k3v9c2-sw1aaa.html"),
        (["k3v9", "g2xw"], "nilo-k3v9c2-and-2.html"),
        (["sw4", "sw4"], "nilo-sw4aaa.html"),
    ],
)
def test_several_runs_share_a_page_each_once(folder: Path, refs: list[str], name: str) -> None:
    assert machine(*refs)["file"] == name


def test_the_ending_of_the_file_chooses_the_form(folder: Path) -> None:
    for file, form in (
        ("a.md", "markdown"),
        ("a.csv", "csv"),
        ("a.json", "json"),
        ("a.txt", "html"),
        ("a.HTM", "html"),
    ):
        assert machine("k3v9", "-o", file)["form"] == form
    assert (folder / "a.md").read_text("utf-8").startswith("# Load test: ")
    assert json.loads((folder / "a.json").read_text("utf-8"))["kind"] == "run"
    assert machine("k3v9", "-o", "b.csv", "--format", "markdown")["form"] == "markdown"
    assert json.loads(nilo_report("g2xw", "--format", "json", "-o", "-").stdout)["type"] == "sweep"
    several = json.loads(nilo_report("k3v9", "sw1", "--format", "json", "-o", "-").stdout)
    assert (several["kind"], [run["run"] for run in several["runs"]]) == ("runs", ["k3v9c2mq7x1d", "sw1aaaaaaaaa"])


def test_stdout_takes_a_report_and_nothing_else(folder: Path) -> None:
    told = nilo_report("k3v9", "-o", "-", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(told.stdout)))
    assert {row["run"] for row in rows} == {"k3v9c2mq7x1d"}
    requests = list(csv.DictReader(io.StringIO(nilo_report("k3v9", "-o", "-", "--format", "csv", "--records").stdout)))
    assert len(requests) == 64
    assert nilo_report("k3v9", "-o", "-").stdout.endswith("</html>\n")
    assert [path.name for path in folder.iterdir()] == ["data"]


def test_the_language_of_the_session_stands_first(folder: Path) -> None:
    done = CliRunner().invoke(command, ["k3v9", "--lang", "zh"])
    assert done.stdout.startswith("已写入")
    page = Parsed((folder / "nilo-k3v9c2.html").read_text("utf-8"))
    assert page.of("html")[0].attributes["lang"] == "zh-Hans"


def test_a_device_takes_a_report_and_stays_what_it_is(folder: Path) -> None:
    assert nilo_report("k3v9", "-o", "/dev/null", "--format", "csv").exit_code == 0
    assert Path("/dev/null").is_char_device()


def test_a_link_is_followed(folder: Path) -> None:
    (folder / "real.html").write_text("old")
    (folder / "link.html").symlink_to(folder / "real.html")
    assert nilo_report("k3v9", "-o", "link.html", "--force").exit_code == 0
    assert (folder / "link.html").is_symlink()
    assert (folder / "real.html").read_text("utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("arguments", "slug"),
    [
        (["k3v9", "--records"], "report_records"),
        (["k3v9", "-o", "-", "--json"], "report_streams"),
        (["nobody"], "run_unknown"),
        (["k3v9", "-o", "nowhere/a.html"], "file_unwritable"),
        (["k3v9", "--format", "pdf"], None),
        ([], None),
    ],
)
def test_what_cannot_be_is_refused_and_leaves_nothing(folder: Path, arguments: list[str], slug: str | None) -> None:
    refused = nilo_report(*arguments)
    assert refused.exit_code == 2
    assert slug is None or slug in refused.stderr
    assert [path.name for path in folder.iterdir()] == ["data"]


@pytest.mark.parametrize("words", [["-o", "a.csv", "--records"], ["-o", "a.parquet"]], ids=["csv", "parquet"])
def test_requests_that_are_no_longer_kept_are_not_none(folder: Path, words: list[str]) -> None:
    pytest.importorskip("pyarrow")
    with sqlite3.connect(folder / "data" / "archive.sqlite") as db:
        db.execute("DELETE FROM record_segment")
        db.execute("UPDATE run SET records = 0")
    db.close()
    refused = nilo_report("sw1", *words)
    assert (refused.exit_code, "(records_gone)" in refused.stderr) == (2, True)
    assert [path.name for path in folder.iterdir()] == ["data"]


def test_a_damaged_run_leaves_no_half_report(folder: Path) -> None:
    with sqlite3.connect(folder / "data" / "archive.sqlite") as db:
        db.execute("UPDATE record_segment SET blob = x'00' WHERE run = 'k3v9c2mq7x1d'")
    db.close()
    refused = nilo_report("k3v9")
    assert (refused.exit_code, "run_damaged" in refused.stderr) == (3, True)
    assert [path.name for path in folder.iterdir()] == ["data"]


def test_parquet_needs_its_library_and_then_holds_the_requests(folder: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    told = machine("k3v9", "sw1", "-o", "a.parquet")
    assert told["bytes"] == (folder / "a.parquet").stat().st_size
    assert parquet.read_table(folder / "a.parquet").num_rows == 128
