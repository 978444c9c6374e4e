"""Runs into files and into other archives, as a user asks for it."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.unit.archive.samples import make_records, make_run

from nilometer.archive.sqlite import SqliteArchive
from nilometer.cli.root import nilo
from nilometer.core.group import Group


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an archive: two runs, one in a group."""
    for name in ("HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NILO_ARCHIVE", "sqlite:///a.sqlite")
    with SqliteArchive(tmp_path / "a.sqlite") as archive:
        archive.put(make_run("k3v9c2mq7x1d"), make_records(4))
        archive.put(make_run("g1aaaaaaaaaa", group="h2gggggggggg", order=0), make_records(2))
        archive.put_group(Group(id="h2gggggggggg", type="repeat", started_wall_ns=1))
        archive.tag("base", "k3v9c2mq7x1d")
    return tmp_path


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(nilo, [*arguments, "--lang", "en"])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def machine(*arguments: str) -> dict[str, Any]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_a_run_goes_out_and_in(folder: Path) -> None:
    told = machine("runs", "export", "base")
    assert (told["run"], told["file"], told["runs"]) == ("k3v9c2mq7x1d", "k3v9c2mq7x1d.nilo", 1)
    assert told["bytes"] == (folder / "k3v9c2mq7x1d.nilo").stat().st_size
    assert "(file_exists)" in run("runs", "export", "base").stderr
    assert machine("runs", "export", "base", "--force")["bytes"] == told["bytes"]
    there = machine("runs", "import", "k3v9c2mq7x1d.nilo")
    assert ([row["run"] for row in there["runs"]], there["new"]) == (["k3v9c2mq7x1d"], [])
    assert run("runs", "import", "k3v9c2mq7x1d.nilo", "--archive", "b.sqlite").stdout.startswith("1 new run, 0 there")
    assert machine("runs", "list", "--archive", "b.sqlite")["runs"][0]["tags"] == []


def test_a_file_stands_for_a_run_or_a_group(folder: Path) -> None:
    assert "2 runs" not in run("runs", "export", "h2g", "-o", "group.nilo").stdout
    run("runs", "export", "k3v9", "-o", "run.nilo")
    run("runs", "import", "run.nilo", "--archive", "empty.sqlite")
    run("runs", "rm", "k3v9", "--archive", "empty.sqlite")
    assert machine("runs", "show", "run.nilo", "--archive", "empty.sqlite")["run"] == "k3v9c2mq7x1d"
    shown = machine("runs", "show", "group.nilo", "--archive", "empty.sqlite")
    assert (shown["kind"], [one["run"] for one in shown["runs"]]) == ("group", ["g1aaaaaaaaaa"])
    assert machine("runs", "show", "run.nilo", "--errors", "--archive", "empty.sqlite")["failed_requests"] == []
    compared = run("compare", "run.nilo", "group.nilo", "--archive", "empty.sqlite", "--json")
    assert json.loads(compared.stdout)["runs"] == {"a": ["k3v9c2mq7x1d"], "b": ["g1aaaaaaaaaa"]}


def test_an_archive_is_copied(folder: Path) -> None:
    told = machine("runs", "copy", "sqlite:///a.sqlite", "b.sqlite")
    assert (told["copied"], told["there"], told["damaged"], told["tags_taken"]) == (2, 0, 0, [])
    run("runs", "tag", "base", "g1", "--archive", "b.sqlite")
    again = run("runs", "copy", "a.sqlite", "b.sqlite").stdout
    assert (
        again == "0 runs copied, 2 there already, 0 damaged. Tags that mean something else there, and stay so: base.\n"
    )
    assert machine("runs", "show", "base", "--archive", "b.sqlite")["run"] == "g1aaaaaaaaaa"


def test_a_damaged_run_does_not_keep_the_others(folder: Path) -> None:
    db = sqlite3.connect(folder / "a.sqlite", isolation_level=None)
    db.execute("DELETE FROM record_segment WHERE run = 'g1aaaaaaaaaa'")
    db.close()
    result = run("runs", "copy", "a.sqlite", "b.sqlite", "--json")
    assert (result.exit_code, "(run_damaged)" in result.stderr) == (3, True)
    told = json.loads(result.stdout)
    assert (told["copied"], told["damaged"], told["problems"][0]["params"]["run"]) == (1, 1, "g1aaaaaaaaaa")


@pytest.mark.parametrize(
    ("arguments", "slug", "code"),
    [
        (("export", "nope"), "run_unknown", 2),
        (("export", "base", "-o", "a.sqlite", "--force"), "file_is_archive", 2),
        (("export", "base", "-o", ".", "--force"), "file_unwritable", 2),
        (("export", "base", "-o", ""), "file_unwritable", 2),
        (("export", "base", "-o", "b.nilo", "--json-file", "./b.nilo"), "outputs_collide", 2),
        (("import", "none.nilo", "--no-archive"), "import_option", 2),
        (("import", "none.nilo", "--service", "chat"), "import_option", 2),
        (("tag", "k3v9c2mq7x1d", "h2g"), "tag_invalid", 2),
        (("note", "base", "a\udcff"), "note_invalid", 2),
        (("export", "base", "-o", "none/x.nilo"), "file_unwritable", 2),
        (("import", "none.nilo"), "file_unreadable", 2),
        (("import", "a.sqlite"), "result_unknown", 2),
        (("show", "none.nilo"), "file_unreadable", 2),
        (("rm", "a.nilo"), "run_is_file", 2),
        (("copy", "none.sqlite", "b.sqlite"), "archive_missing", 3),
        (("copy", "a.sqlite", "mysql://u:geheim@db/a"), "archive_scheme_unsupported", 2),
    ],
)
def test_what_cannot_be_is_one_line(folder: Path, arguments: tuple[str, ...], slug: str, code: int) -> None:
    result = run("runs", *arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert len(result.stderr.splitlines()) == 1
    assert f"({slug})" in result.stderr
    assert "geheim" not in result.stderr
