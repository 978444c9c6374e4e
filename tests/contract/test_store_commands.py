"""The command line on every store: the same screens, the same exit codes, no secret of an address in any of them."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.contract.children import ROOT
from tests.contract.cluster import Server
from tests.unit.archive.samples import make_records, make_run

from nilometer.archive.store import open_archive
from nilometer.cli.root import nilo
from nilometer.core.group import Group
from nilometer.engines.mock import launched
from nilometer.engines.mock_script import Script


@pytest.fixture
def filled(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Two runs, one in a group; the archive stands in the environment."""
    for name in ("HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.setenv("NILO_ARCHIVE", url)
    monkeypatch.chdir(tmp_path)
    with open_archive(url) as archive:
        archive.put(make_run("one"), make_records(4))
        archive.put(make_run("two", group="group2"), make_records(2))
        archive.put_group(Group(id="group2", type="repeat", started_wall_ns=1))
    return url


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(nilo, ["runs", *arguments, "--lang", "en"])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert "geheim" not in result.output + result.stderr
    return result


def machine(*arguments: str) -> dict[str, Any]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_the_archive_from_the_command_line(filled: str, tmp_path: Path) -> None:
    assert run("check").stdout.startswith("All whole: 2 runs, 6 records")
    assert run("tag", "base", "two").stdout == "base means two.\n"
    assert machine("note", "base", "new driver")["notes"][0]["text"] == "new driver"
    assert [row["run"] for row in machine("list", "--tag", "base", "--model", "LLAMA")["runs"]] == ["two"]
    assert machine("show", "group2")["runs"][0]["run"] == "two"
    assert machine("export", "base", "-o", "two.nilo")["runs"] == 1
    assert machine("prune", "--keep", "0")["lots"][0]["runs"] == ["one"]
    run("rm", "two")
    assert run("list").stdout.startswith("No runs in")
    assert machine("import", "two.nilo")["new"] == ["two"]
    assert machine("copy", filled, str(tmp_path / "copy.sqlite"))["copied"] == 1
    assert (tmp_path / "copy.sqlite").is_file()


def nilometer(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "nilometer", *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.xdist_group("postgres")
def test_a_run_whose_archive_went_away_under_load_is_filed_when_it_is_back(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.setenv("NILO_ARCHIVE", server.fresh())
    monkeypatch.setenv("NILO_LANG", "en")
    journals = tmp_path / "home" / "nilometer" / "journals"
    with launched(Script(models=("m",), ttft_ms=5, gap_ms=1)) as target:
        load = ["--no-probe", "--model", "m", "--warmup", "0s", "--duration", "1s", "--workers", "1"]
        with nilometer("measure", target.url, *load) as measuring:
            until_s = time.monotonic() + 20
            while not (journals.is_dir() and any(journals.iterdir())) and time.monotonic() < until_s:
                time.sleep(0.02)
            server.stop()
            told = measuring.communicate()
    try:
        assert measuring.returncode == 3, told
        assert "(run_not_archived)" in told[1]
        assert "geheim" not in "".join(told)
        (journal,) = journals.iterdir()
        assert str(journal) in told[1]
    finally:
        server.start()
    filed = machine("check")
    assert [row["run"] for row in filed["recovered"]] == [journal.name.rpartition("-")[0]]
    assert list(journals.iterdir()) == []
