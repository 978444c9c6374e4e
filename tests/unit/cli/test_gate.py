"""What a pipeline finds after `nilo gate`: files that agree with the exit code, whatever went wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.unit.cli.test_bundles import run
from tests.unit.compare.made import changed, summary
from tests.unit.compare.made import run as made

from nilometer.archive.sqlite import SqliteArchive
from nilometer.core.group import Group

SIDES: dict[str, tuple[float, dict[str, Any]]] = {
    "base": (20.0, {}),
    "alike": (20.1, {}),
    "slow": (26.0, {}),
    "unfit": (20.0, {"verdict": "inadmissible"}),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Groups of four runs, by their TPOT; `upgraded` is `alike`, measured by a later nilometer."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NILO_ARCHIVE", "sqlite:///a.sqlite")
    with SqliteArchive(tmp_path / "a.sqlite") as archive:
        for name, (tpot, fields) in {**SIDES, "upgraded": SIDES["alike"]}.items():
            archive.put_group(Group(id=f"{name}group", type="repeat", started_wall_ns=1))
            for i in range(4):
                one = made(f"{name}{i}", summary(tpot_p50=tpot + i / 100), group=f"{name}group", order=i, **fields)
                later = changed(one, "environment.client.nilometer", "0.2.0")
                archive.put(later if name == "upgraded" else one, [])
    return tmp_path


def gate(name: str, *options: str) -> tuple[int, str, str]:
    result = run("gate", f"{name}group", "--baseline", "basegroup", *options)
    return result.exit_code, result.stdout, result.stderr


def outcomes(file: Path) -> list[str]:
    """What each test case holds."""
    return [child.tag for case in ElementTree.parse(file).iter("testcase") for child in case]


@pytest.mark.parametrize(
    ("name", "code", "held"),
    [("alike", 0, ["system-out"]), ("slow", 1, ["failure"]), ("unfit", 4, ["error"]), ("upgraded", 4, ["error"])],
)
def test_the_file_says_what_the_exit_code_says(folder: Path, name: str, code: int, held: list[str]) -> None:
    assert gate(name, "--metrics", "tpot_p50", "--junit", "j.xml")[0] == code
    assert outcomes(folder / "j.xml") == held


def test_an_upgrade_of_the_client_names_the_option_that_lets_it_pass(folder: Path) -> None:
    code, _, told = gate("upgraded")
    assert (code, told.count("\n")) == (4, 1)
    assert "client.nilometer: 0.1.0 | 0.2.0" in told
    assert "`--change client`" in told
    assert gate("upgraded", "--change", "client")[0] == 0


@pytest.mark.parametrize("options", [("--metrics", "nope"), ("--change", "nope"), ("--markdown", "none/m.md")])
def test_no_verdict_of_another_time_stays_where_there_is_none(folder: Path, options: tuple[str, str]) -> None:
    (folder / "j.xml").write_text("<passed/>")
    assert gate("alike", "--junit", "j.xml", *options)[0] == 2
    assert outcomes(folder / "j.xml") == ["error"]


def test_one_file_that_takes_nothing_keeps_the_verdict_from_no_other(folder: Path) -> None:
    code, screen, told = gate("slow", "--junit", "/dev/full", "--markdown", "m.md", "--json-file", "c.json")
    assert (code, told.count("file_unwritable")) == (2, 1)
    assert screen.startswith("REGRESSED")
    assert (folder / "m.md").read_text().startswith("**REGRESSED")
    assert (folder / "c.json").read_text().startswith("{")


@pytest.mark.parametrize(
    ("options", "slug"),
    [
        (("--junit", "x", "--markdown", "x"), "outputs_collide"),
        (("--markdown", "x", "--json-file", "./x"), "outputs_collide"),
        (("--junit", ""), "file_unwritable"),
        (("--junit", "a.sqlite"), "file_is_archive"),
    ],
)
def test_files_that_would_not_hold_a_result_are_refused(folder: Path, options: tuple[str, ...], slug: str) -> None:
    before = (folder / "a.sqlite").read_bytes()
    code, screen, told = gate("alike", *options)
    assert (code, screen) == (2, "")
    assert f"({slug})" in told
    assert not (folder / "x").exists()
    assert (folder / "a.sqlite").read_bytes() == before
