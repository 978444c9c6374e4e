"""What the pages on plans show is what the commands print, figure by figure, in both languages.

A plan is arithmetic on tables, so a line that is shown is held whole: a table that changes asks for its page. An
output may be shortened: by lines that are left out, and `...`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from nilometer.cli.root import nilo

DOCS = Path(__file__).parents[2] / "docs"
NAMES = (
    "explanation/where-the-memory-goes",
    "explanation/why-decode-is-slow",
    "explanation/three-axes",
    "how-to/plan-before-you-buy",
    "how-to/choose-by-a-plan",
    "how-to/audit-an-engine",
    "../README",
)
PAGES = [f"{name}{end}" for name in NAMES for end in (".md", ".zh-CN.md")]

_FILE = re.compile(r"`([\w-]+\.yaml)`[:：]\n\n```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)
_SHOWN = re.compile(r"^```\n((?:nilo [^\n]*\n)+)```\n\n```text\n(.*?)^```", re.MULTILINE | re.DOTALL)


def shown(page: str) -> Iterator[tuple[str, list[str]]]:
    """(command, the lines that it is said to print) of each output on a page."""
    for commands, output in _SHOWN.findall((DOCS / page).read_text("utf-8")):
        yield commands.splitlines()[-1], [line for line in output.splitlines() if line.strip() not in ("", "...")]


def test_there_are_outputs_to_hold() -> None:
    assert sum(len(list(shown(page))) for page in PAGES) >= 10


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_what_is_printed(page: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in _FILE.findall((DOCS / page).read_text("utf-8")):
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NILO_LANG", "en")
    for command, lines in shown(page):
        printed = CliRunner().invoke(nilo, shlex.split(command)[1:])
        assert printed.exit_code in {0, 1}, printed.output
        assert [line for line in lines if line not in printed.stdout.splitlines()] == [], command
