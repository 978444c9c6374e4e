"""Groups as a file from elsewhere, or a damaged archive, may hold them: one line, or the runs one by one."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.archive.samples import make_run
from tests.unit.cli.test_bundles import run

from nilometer.archive.sqlite import SqliteArchive
from nilometer.core.group import Group, GroupType

ODD: list[tuple[GroupType, str | None, str | None, str | None]] = [
    ("sweep", None, None, None),
    ("sweep", None, "x", None),
    ("sweep", None, "nan", None),
    ("quickstart", None, None, None),
    ("quickstart", None, "-1", None),
    ("verify", "[[[", None, "a"),
    ("verify", "verify = 1", None, "a"),
    ("verify", "[verify]\npairs = true", None, "a"),
    ("verify", "[verify]\nmetrics = 'a_figure_of_tomorrow'", None, "a"),
]


def filed(folder: Path, kind: GroupType, spec: str | None, level: str | None, role: str | None) -> None:
    with SqliteArchive(folder / "a.sqlite") as archive:
        archive.put_group(Group(id="group2", type=kind, started_wall_ns=1, spec=spec))
        for i in range(2):
            archive.put(make_run(f"run{i}", group="group2", level=level, role=role, order=i), [])


@pytest.mark.parametrize(("kind", "spec", "level", "role"), ODD)
@pytest.mark.parametrize("command", ["runs show group2", "runs show group2 --json", "report group2 -o -"])
def test_a_group_that_is_not_what_it_says_is_one_line(
    tmp_path: Path, command: str, kind: GroupType, spec: str | None, level: str | None, role: str | None
) -> None:
    filed(tmp_path, kind, spec, level, role)
    result = run(*command.split(), "--archive", str(tmp_path / "a.sqlite"))
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (3, "", 1)
    assert "(group_damaged). Next: its runs stand for themselves" in result.stderr


@pytest.mark.parametrize("role", [None, "of-tomorrow/side", "felt-faster/side"])
def test_a_lesson_that_is_not_known_is_shown_run_by_run(tmp_path: Path, role: str | None) -> None:
    filed(tmp_path, "lab", None, None, role)
    result = run("runs", "show", "group2", "--archive", str(tmp_path / "a.sqlite"))
    assert result.exit_code == 0
    assert result.stdout.count("archived as run") == 2
