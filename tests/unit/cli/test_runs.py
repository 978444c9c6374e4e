"""`nilo runs` as a user calls it: output, machine form, exit codes."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result
from tests.unit.archive.samples import make_record, make_records, make_run
from tests.unit.experiment.made import damage, leave

from nilometer.archive.sqlite import SqliteArchive
from nilometer.cli.machine import group_object
from nilometer.cli.runs import command
from nilometer.core.group import Group
from nilometer.core.run import Health, Run
from nilometer.experiment.quickstart import diagnosis
from nilometer.report.build import group_document
from nilometer.report.terminal import render
from nilometer.text.i18n import Catalogue


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An archive with two runs whose ids begin alike; one has failures and a tag. No journals lie about."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    path = tmp_path / "archive.sqlite"
    monkeypatch.setenv("NILO_ARCHIVE", f"sqlite:///{path}")
    failed = make_record(3, outcome="error", error="http_5xx", status=503, error_detail="no slot")
    with SqliteArchive(path) as archive:
        archive.put(make_run(), [*make_records(3), failed])
        archive.put(make_run("k3v9aaaaaaaa", group="g2xw"), make_records(2))
        archive.put_group(Group(id="g2xw", type="repeat", started_wall_ns=1))
        archive.tag("base", make_run().id)
    return path


def nilo_runs(*arguments: str) -> Result:
    result = CliRunner().invoke(command, [*arguments, "--lang", "en"])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def machine(*arguments: str) -> dict[str, Any]:
    result = nilo_runs(*arguments, "--json")
    assert result.exit_code == 0
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_list(path: Path) -> None:
    told = nilo_runs("list").stdout
    assert "k3v9aaaaaaaa" in told
    assert "k3v9c2mq7x1d" in told
    found = machine("list", "--limit", "1")
    assert (found["kind"], [run["run"] for run in found["runs"]]) == ("runs", ["k3v9aaaaaaaa"])
    for group in ("g2xw", "g2", "latest"):
        assert [run["run"] for run in machine("list", "--group", group)["runs"]] == ["k3v9aaaaaaaa"]
    assert machine("list", "--service", "nobody")["runs"] == []


def test_the_archive_option_comes_before_the_environment(path: Path, tmp_path: Path) -> None:
    with SqliteArchive(tmp_path / "other.sqlite"):
        pass
    assert machine("list", "--archive", str(tmp_path / "other.sqlite"))["runs"] == []


def test_reading_makes_no_archive(path: Path, tmp_path: Path) -> None:
    done = nilo_runs("list", "--archive", str(tmp_path / "mistyped" / "a.sqlite"))
    assert (done.exit_code, "archive_missing" in done.stderr) == (3, True)
    assert not (tmp_path / "mistyped").exists()


def test_a_list_of_none_says_whether_there_are_others(path: Path) -> None:
    assert "of that kind" in nilo_runs("list", "--service", "nope").stdout


def test_show_is_the_report_and_the_summary_object(path: Path) -> None:
    told = nilo_runs("show", "base").stdout
    assert "480" in told
    assert "http://127.0.0.1:8000/v1" in told
    found = machine("show", "k3v9c")
    assert (found["kind"], found["run"], found["latency_ms"]["ttft"]["p95"]) == ("run", "k3v9c2mq7x1d", 480.125)


def quickstart_group(path: Path) -> list[Run]:
    """A quickstart of three levels beside the other runs; its id begins as one of its runs does."""
    runs = [make_run(f"h{i}aaaaaaaaaa", group="h2gggggggggg", level=str(n), order=i) for i, n in enumerate((1, 4, 8))]
    with SqliteArchive(path) as archive:
        archive.put_group(Group(id="h2gggggggggg", type="quickstart", started_wall_ns=1))
        for run in reversed(runs):
            archive.put(run, make_records(2))
    return runs


def test_show_of_a_quickstart_is_the_screen_and_the_object_it_ended_with(path: Path) -> None:
    runs = quickstart_group(path)
    findings = diagnosis(runs, lambda _: make_records(2))
    found = machine("show", "h2g")
    group = group_object("h2gggggggggg", "quickstart", runs, findings)
    assert found == json.loads(msgspec.json.encode({**group, "tags": [], "notes": []}))
    assert [run["level"] for run in found["runs"]] == ["1", "4", "8"]
    assert found["findings"]
    told = nilo_runs("show", "h2gggggggggg").stdout
    words = Catalogue("en")
    assert told == render(group_document(runs, "h2gggggggggg", findings[0], words), width=80, colour=False) + "\n"


def test_show_of_repeats_is_the_report_of_each(path: Path) -> None:
    found = machine("show", "g2")
    assert (found["kind"], found["type"], found["group"]) == ("group", "repeat", "g2xw")
    assert [run["run"] for run in found["runs"]] == ["k3v9aaaaaaaa"]
    assert "archived as k3v9aaaaaaaa" in nilo_runs("show", "g2").stdout


def test_show_of_a_run_in_a_group_is_that_run(path: Path) -> None:
    quickstart_group(path)
    found = machine("show", "h1")
    assert (found["kind"], found["run"], found["level"]) == ("run", "h1aaaaaaaaaa", "4")


def test_a_word_that_a_run_and_a_group_begin_with_lists_both(path: Path) -> None:
    quickstart_group(path)
    result = nilo_runs("show", "h2")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "h2aaaaaaaaaa, h2gggggggggg" in result.stderr
    errors = nilo_runs("show", "h2g", "--errors")
    assert (errors.exit_code, "(run_is_group)" in errors.stderr) == (2, True)


def test_show_errors(path: Path) -> None:
    assert "503 no slot" in nilo_runs("show", "base", "--errors").stdout
    found = machine("show", "base", "--errors")
    assert found["kind"] == "run"
    assert [(kind["error"], kind["n"]) for kind in found["failed_requests"]] == [("http_5xx", 1)]
    assert machine("show", "k3v9a", "--errors")["failed_requests"] == []


def test_a_machine_form_is_written_beside_the_screen(path: Path, tmp_path: Path) -> None:
    result = nilo_runs("show", "base", "--json-file", str(tmp_path / "out.json"))
    assert "480" in result.stdout
    assert json.loads((tmp_path / "out.json").read_text())["run"] == "k3v9c2mq7x1d"


@pytest.mark.parametrize(
    ("arguments", "slug"),
    [
        (("show", "nope"), "run_unknown"),
        (("show", "k3v9"), "run_ambiguous"),
        (("rm", "nope"), "run_unknown"),
        (("rm", "g2"), "run_is_group"),
        (("list", "--group", "nope"), "group_unknown"),
        (("list", "--archive", "mysql://u:geheim@db/a"), "archive_scheme_unsupported"),
    ],
)
def test_what_cannot_be_done_as_written_is_one_line_and_exit_2(path: Path, arguments: tuple[str], slug: str) -> None:
    result = nilo_runs(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1
    assert f"({slug})" in result.stderr
    assert "geheim" not in result.stderr


def test_candidates_are_listed(path: Path) -> None:
    told = nilo_runs("show", "k3v9").stderr
    assert "k3v9aaaaaaaa" in told
    assert "k3v9c2mq7x1d" in told


def test_an_archive_that_cannot_be_opened_is_exit_3(path: Path) -> None:
    path.write_bytes(b"no database at all, long enough to be looked at " * 40)
    result = nilo_runs("list")
    assert result.exit_code == 3
    assert "(archive_unreadable)" in result.stderr


def test_rm_says_what_it_removed(path: Path) -> None:
    told = " ".join(nilo_runs("rm", "base", "k3v9c", "k3v9a").stdout.split())
    assert told.count("k3v9c2mq7x1d") == 1
    assert "4 records" in told
    assert "base" in told
    assert "k3v9aaaaaaaa" in told
    assert machine("list")["runs"] == []


def test_rm_removes_nothing_where_one_is_unknown(path: Path) -> None:
    assert nilo_runs("rm", "base", "nope").exit_code == 2
    assert len(machine("list")["runs"]) == 2


def test_rm_has_a_machine_form(path: Path) -> None:
    assert [run["run"] for run in machine("rm", "latest")["removed"]] == ["k3v9aaaaaaaa"]


def test_check_of_a_whole_archive(path: Path) -> None:
    assert nilo_runs("check").stdout.startswith("All whole: 2 runs, 6 records")
    assert machine("check")["checked"] == {"runs": 2, "records": 6}


def journals(path: Path) -> Path:
    """Where this user's journals lie."""
    folder = path.parent / "data" / "nilometer" / "journals"
    folder.mkdir(parents=True)
    return folder


def test_a_list_says_that_runs_wait_to_be_filed(path: Path) -> None:
    assert nilo_runs("list").stderr == ""
    folder = journals(path)
    (folder / "aaaaaaaaaaaa-0.journal").write_bytes(b"no journal")
    assert nilo_runs("list").stderr == ""
    leave(folder, "bbbbbbbbbbbb")
    leave(folder, "cccccccccccc", n=0)
    one = nilo_runs("list").stderr
    assert one == "1 run was measured and not filed. Next: `nilo runs check`\n"
    leave(folder, "dddddddddddd", workers=2)
    assert nilo_runs("list", "--json").stderr.startswith("2 runs were")
    assert nilo_runs("list", "-q").stderr == ""


def test_check_says_what_it_filed_and_what_it_could_not(path: Path) -> None:
    folder = journals(path)
    (folder / "aaaaaaaaaaaa-0.journal").write_bytes(b"no journal")
    (damaged,) = leave(folder, "bbbbbbbbbbbb")
    damage(damaged, [3])
    leave(folder, "cccccccccccc", n=7)
    result = nilo_runs("check", "--json")
    assert result.exit_code == 3
    found = json.loads(result.stdout)
    assert [(row["run"], row["records"]) for row in found["recovered"]] == [("bbbbbbbbbbbb", 29), ("cccccccccccc", 7)]
    unreadable = str(folder / "aaaaaaaaaaaa-0.journal")
    assert found["unfiled"] == [{"file": unreadable, "slug": "not_a_journal", "params": {"file": unreadable}}]
    assert found["checked"] == {"runs": 4, "records": 42}
    assert found["problems"] == []
    refused, filed, lost, other = result.stderr.splitlines()
    assert "(not_a_journal)" in refused
    assert filed.startswith("filed bbbbbbbbbbbb")
    assert f"{damaged}.damaged" in lost
    assert other.startswith("filed cccccccccccc")


def test_check_of_a_damaged_journal_alone_is_exit_3_once(path: Path) -> None:
    (damaged,) = leave(journals(path))
    damage(damaged, [2])
    assert [nilo_runs("check").exit_code for _ in range(2)] == [3, 0]


def test_check_goes_on_where_the_archive_refuses(path: Path) -> None:
    leave(journals(path))
    with sqlite3.connect(path, isolation_level=None) as writer:
        writer.execute("CREATE TRIGGER no BEFORE INSERT ON run BEGIN SELECT RAISE(ABORT, 'not this one'); END")
    writer.close()
    result = nilo_runs("check", "--json")
    assert result.exit_code == 3
    found = json.loads(result.stdout)
    assert [(one["slug"], one["cause"]["slug"]) for one in found["unfiled"]] == [("run_not_archived", "archive_failed")]
    assert found["checked"]["runs"] == 2
    assert "not this one" in result.stderr


def test_check_of_a_damaged_archive_is_exit_3(path: Path) -> None:
    db = sqlite3.connect(path)
    with db:
        db.execute("DELETE FROM record_segment WHERE run = 'k3v9aaaaaaaa'")
    db.close()
    result = nilo_runs("check", "--json")
    assert result.exit_code == 3
    assert [problem["params"]["run"] for problem in json.loads(result.stdout)["problems"]] == ["k3v9aaaaaaaa"]
    assert "(run_damaged)" in nilo_runs("check").stdout


def test_a_list_of_those_asked_for(path: Path) -> None:
    def found(*asked: str) -> list[str]:
        return [run["run"] for run in machine("list", *asked)["runs"]]

    assert found("--tag", "base") == ["k3v9c2mq7x1d"]
    assert found("--model", "LLA", "--verdict", "admissible", "--origin", "measured") == found()
    assert found("--since", "2026-08-06", "--until", "2026-08-06") == found()
    assert found("--since", "2026-08-07") == found("--until", "2026-08-05") == found("--verdict", "marked") == []


def test_a_tag_is_given_moved_and_taken_away(path: Path) -> None:
    assert nilo_runs("tag", "main", "k3v9c").stdout == "main means k3v9c2mq7x1d.\n"
    assert nilo_runs("tag", "main", "g2xw").stdout == "main means g2xw; it meant k3v9c2mq7x1d.\n"
    assert machine("tag", "main", "g2xw")["means"] == {"group": "g2xw"}
    assert machine("show", "main")["tags"] == ["main"]
    assert [run["run"] for run in machine("list", "--tag", "main")["runs"]] == ["k3v9aaaaaaaa"]
    told = machine("tag", "main", "--delete")
    assert (told["means"], told["meant"]) == (None, {"group": "g2xw"})
    assert "(run_unknown)" in nilo_runs("show", "main").stderr


@pytest.mark.parametrize(
    ("arguments", "slug"),
    [
        (("tag", "main"), "tag_or_delete"),
        (("tag", "main", "base", "--delete"), "tag_or_delete"),
        (("tag", "main", "--delete"), "tag_unknown"),
        (("tag", "main", "nope"), "run_unknown"),
        (("tag", "latest", "base"), "tag_invalid"),
        (("tag", "a b", "base"), "tag_invalid"),
        (("tag", "x" * 65, "base"), "tag_invalid"),
        (("tag", "run.nilo", "base"), "tag_invalid"),
        (("note", "nope", "text"), "run_unknown"),
        (("note", "base", " "), "note_invalid"),
        (("note", "base", "x" * 4_001), "note_invalid"),
    ],
)
def test_what_cannot_be_said_of_a_run_is_refused(path: Path, arguments: tuple[str, ...], slug: str) -> None:
    result = nilo_runs(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"({slug})" in result.stderr


def test_a_note_is_shown_with_the_run(path: Path) -> None:
    assert nilo_runs("note", "base", "before the\x1b[31m new driver").stdout == "k3v9c2mq7x1d has 1 note.\n"
    told = nilo_runs("show", "base").stdout
    assert "before the [31m new driver" in told.splitlines()[-1]
    assert "\x1b" not in told
    (note,) = machine("show", "base")["notes"]
    assert note["text"] == "before the\x1b[31m new driver"
    assert machine("list")["runs"][1]["notes"] == 1
    assert "[base, 1 note]" in nilo_runs("list").stdout


def test_pruning_says_what_it_does(path: Path) -> None:
    dry = machine("prune", "--keep", "0", "--dry-run")
    assert (dry["runs"], dry["records"], dry["lots"][0]["group"], dry["dry_run"]) == (1, 2, "g2xw", True)
    assert dry["bytes"] > 1_000
    told = nilo_runs("prune", "--older-than", "2026-08-07", "--records-only").stdout
    assert told.startswith("Removed 2 records of 1 run, ")
    assert "g2xw" in told
    assert "(records_gone)" in nilo_runs("show", "k3v9aaaaaaaa", "--errors").stderr
    assert len(machine("list")["runs"]) == 2
    assert nilo_runs("prune", "--older-than", "2026-08-05").stdout == "Nothing to remove.\n"
    assert machine("prune", "--keep", "0")["runs"] == 1
    assert [run["run"] for run in machine("list")["runs"]] == ["k3v9c2mq7x1d"]


def test_pruning_without_a_bound_is_refused(path: Path) -> None:
    result = nilo_runs("prune", "--records-only")
    assert (result.exit_code, "(prune_unbounded)" in result.stderr) == (2, True)


def test_figures_by_older_definitions_are_made_anew_when_asked_for(path: Path) -> None:
    with SqliteArchive(path) as archive:
        archive.put(make_run("old1", definitions=0, health=Health()), make_records(9))
        archive.put(make_run("old2", definitions=0, origin="imported"), make_records(9))
        archive.put(make_run("old3", definitions=0), [])
    told = nilo_runs("check")
    assert told.stderr == "3 runs have figures by older definitions. Next: `nilo runs check --resummarise`\n"
    assert machine("check")["outdated"] == ["old1", "old2", "old3"]
    result = nilo_runs("check", "--resummarise", "--json")
    found = json.loads(result.stdout)
    assert (found["resummarised"], found["outdated"], found["problems"]) == (["old1"], ["old2", "old3"], [])
    anew, kept = result.stderr.splitlines()
    assert anew == "figures of old1 made anew from its records: definitions 0 to 1"
    assert kept.startswith("2 runs keep their older figures")
    shown = machine("show", "old1")
    assert (shown["definitions"], shown["run_requests"]["started"]) == (1, 9)
    assert shown["spec"] == machine("show", "base")["spec"]
    assert machine("show", "old3")["run_requests"]["started"] == 900


def test_a_damaged_run_is_not_made_anew(path: Path) -> None:
    with SqliteArchive(path) as archive:
        archive.put(make_run("old1", definitions=0), make_records(9))
        archive.db.execute("UPDATE record_segment SET codec = 'columns-9' WHERE run = 'old1'")
    result = nilo_runs("check", "--resummarise", "--json")
    assert (result.exit_code, result.stderr.count("(run_damaged)")) == (3, 1)
    assert json.loads(result.stdout)["outdated"] == ["old1"]
