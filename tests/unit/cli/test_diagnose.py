"""`nilo diagnose` on the archive, as a user calls it: the screen, the machine form, the exit codes, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result
from tests.unit.archive.samples import make_records, make_run
from tests.unit.diagnose.played import COST, play, run_of_play

from nilometer.archive.sqlite import SqliteArchive
from nilometer.cli.diagnose import command
from nilometer.cli.ladder import times_of
from nilometer.core.errors import SpecError
from nilometer.core.group import Group
from nilometer.sim.faults import HEALTHY
from nilometer.sim.setting import Setting

GROUP = "g2qqqqqqqqqq"


@pytest.fixture(scope="module")
def archived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep of a service with three slots, a verify, and a run whose few answers say nothing."""
    path = tmp_path_factory.mktemp("archive") / "archive.sqlite"
    with SqliteArchive(path) as archive:
        archive.put_group(Group(id=GROUP, type="sweep", started_wall_ns=5))
        for order, users in enumerate((1, 4, 16)):
            played = play(Setting(cost=COST, slots=3), HEALTHY, users, 1)
            run = msgspec.structs.replace(
                run_of_play(users, played), id=f"k{users:02}aaaaaaaaa", group=GROUP, role="level", order=order
            )
            archive.put(run, played.records)
        archive.put_group(Group(id="v2qqqqqqqqqq", type="verify", started_wall_ns=4))
        for role in ("a", "b"):
            archive.put(make_run(f"v{role}aaaaaaaaaa", group="v2qqqqqqqqqq", role=role), make_records(3))
        few = make_run("few1aaaaaaaa")
        counts = msgspec.structs.replace(few.summary.requests, started=9, ok=9, error=0, errors={})
        archive.put(
            msgspec.structs.replace(few, summary=msgspec.structs.replace(few.summary, requests=counts)), make_records(9)
        )
        archive.tag("three", "k04aaaaaaaaa")
    return path


@pytest.fixture(autouse=True)
def _archive(archived: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("NILO_ARCHIVE", f"sqlite:///{archived}")


def diagnose(*arguments: str) -> Result:
    result = CliRunner().invoke(command, [*arguments, "--lang", "en"])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def machine(*arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(diagnose(*arguments, "--json").stdout)
    return found


def test_a_group_is_diagnosed_with_a_command_that_settles_it() -> None:
    result = diagnose(GROUP)
    assert result.exit_code == 0
    assert "about 3 decode at a time" in result.stdout
    assert f"nilo diagnose {GROUP} --experiment" in result.stdout
    assert f"{GROUP}, loads 1, 4, 16" in result.stdout
    assert len(result.stdout.splitlines()) <= 40


def test_the_machine_form_is_the_contracts() -> None:
    told = machine(GROUP)
    assert (told["kind"], told["state"], told["group"], told["run"]) == ("diagnosis", "found", GROUP, "k16aaaaaaaaa")
    first = told["findings"][0]
    assert (first["slug"], first["class"], first["level"]) == ("queue", "cause", "16")
    assert first["experiment"]["command"] == f"nilo diagnose {GROUP} --experiment"
    assert first["remedies"][0]["gain"]["low"] <= first["remedies"][0]["gain"]["mid"]
    ttft = told["budget"]["ttft"]
    assert sum(part["ms"] or 0 for part in ttft["parts"]) == pytest.approx(ttft["total_ms"])
    assert {"slug", "missing"} == set(told["not_run"][0])
    assert "static_batching" in told["passed"]


@pytest.mark.parametrize("ref", ["three", "k01"])
def test_a_run_stands_with_the_other_loads_of_its_group(ref: str) -> None:
    assert machine(ref)["levels"] == ["1", "4", "16"]


def test_two_sides_are_two_services() -> None:
    refused = diagnose("v2q")
    assert refused.exit_code == 2
    assert "(side_mixed)" in refused.stderr


def test_runs_that_are_no_evidence_end_with_4() -> None:
    told = diagnose("few1")
    assert told.exit_code == 4
    assert told.stdout.startswith("No evidence for anything else")


def test_chinese_says_the_same() -> None:
    result = CliRunner().invoke(command, [GROUP, "--lang", "zh"])
    assert "很可能" in result.stdout
    assert "措施" in result.stdout


def test_a_ladder_has_eight_levels_in_its_time() -> None:
    times = times_of(180)
    assert 8 * (times.warmup_s + times.duration_s) <= 180
    assert times.duration_s > 3 * times.warmup_s
    with pytest.raises(SpecError, match="diagnose_budget"):
        times_of(60)


def test_only_an_address_can_be_watched() -> None:
    refused = diagnose(GROUP, "--watch")
    assert refused.exit_code == 2
    assert "(watch_needs_address)" in refused.stderr
