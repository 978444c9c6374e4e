"""The page on one's own traffic: it names every format there is, and what it shows to type does run."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.unit.sources.files import EXAMPLES, write
from tests.unit.sources.test_mapped import ACCESS

from nilometer.cli.root import nilo
from nilometer.sources.formats import NAMES

FOLDER = Path(__file__).parents[2] / "docs" / "how-to"
PAGES = [FOLDER / "use-your-own-traffic.md", FOLDER / "use-your-own-traffic.zh-CN.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_page_names_every_format(page: Path) -> None:
    rows = [
        line.split("|")[1]
        for line in page.read_text("utf-8").splitlines()
        if line.startswith("| `") and "`--" not in line
    ]
    assert sorted(name for row in rows for name in re.findall(r"`([^`]+)`", row)) == sorted(NAMES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_the_page_shows_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in EXAMPLES:
        write(tmp_path, name)
    (tmp_path / "access.log").write_text(ACCESS)
    (tmp_path / "calls.csv").write_text("when,in,out\n0,7,8\n1500,9,1\n")
    text = page.read_text("utf-8")
    (tmp_path / "access.toml").write_text(re.findall(r"```toml\n(.*?)```", text, re.DOTALL)[0])
    commands = re.findall(r"^nilo (.*)$", text, re.MULTILINE)
    assert len(commands) == 5
    for command in commands:
        done = CliRunner().invoke(nilo, [*shlex.split(command), "--json"])
        assert done.exit_code in (0, 4), done.output  # so few rows are not representative
        assert json.loads(done.stdout)["usable"] >= 1


@pytest.mark.parametrize("name", NAMES)
def test_every_format_runs_from_the_command_line(name: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(nilo, ["workload", "inspect", str(write(tmp_path, name)), "--format", name, "--json"])
    assert (done.exit_code, json.loads(done.stdout)["format"]) == (0, name)
