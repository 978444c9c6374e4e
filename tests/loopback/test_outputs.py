"""Where results go that their place does not take, as a shell makes it so: full, closed, or left by its reader."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nilometer.engines.mock import launched
from nilometer.engines.mock_script import Script

NILO = f"{sys.executable} -m nilometer"
QUICK = "-c 2 --requests 20 --warmup 0 --input-tokens 24 --output-tokens 4 --no-probe --model m"
Env = dict[str, str]


@pytest.fixture
def env(tmp_path: Path) -> Env:
    return {**os.environ, "XDG_DATA_HOME": str(tmp_path / "data"), "LC_ALL": "C.UTF-8", "NILO_LANG": "en"}


def shell(env: Env, line: str) -> subprocess.CompletedProcess[str]:
    """A line of bash in which `nilo` is the program; its status is that of the first part of a pipe that failed."""
    whole = f'set -o pipefail; nilo() {{ {NILO} "$@"; }}; {line}'
    return subprocess.run(["bash", "-c", whole], env=env, capture_output=True, text=True, timeout=90, check=False)


def slugs_told(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The slug of each line on stderr; nothing else may stand there."""
    return [line.rpartition(" (")[2].partition(")")[0] for line in done.stderr.splitlines()]


@pytest.mark.parametrize("words", ["runs list", "runs list --json", "engine list", "--help", "runs list --help"])
@pytest.mark.parametrize("place", ["> /dev/full", ">&-"])
def test_a_stdout_that_takes_nothing_is_one_line_and_exit_3(env: Env, words: str, place: str) -> None:
    done = shell(env, f"nilo {words} {place}")
    assert (done.returncode, slugs_told(done)) == (3, ["output_failed"])


@pytest.mark.parametrize("words", ["runs list", "--help", "--version", "runs list --json"])
def test_a_reader_that_has_left_ends_it_without_a_word(env: Env, words: str) -> None:
    done = shell(env, f"nilo {words} | head -c 0")
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("place", ["2>&-", "2> /dev/full"])
def test_a_stderr_that_takes_nothing_breaks_no_run(env: Env, place: str) -> None:
    with launched(Script(models=("m",), ttft_ms=5, gap_ms=1)) as server:
        done = shell(env, f"nilo measure {server.url} {QUICK} --max-error-rate 100% --json {place}")
    assert json.loads(done.stdout)["requests"]["ok"] == 20
    assert done.returncode in (0, 4)  # a busy machine may limit the generator


def test_no_file_of_the_program_gets_the_number_of_a_closed_stream(env: Env) -> None:
    done = shell(env, f"nilo runs list <&- >&- 2>&-; nilo runs check --archive sqlite:///{env['XDG_DATA_HOME']}/a")
    assert done.returncode == 0, done.stderr


def test_a_result_that_cannot_be_shown_says_where_it_is_archived(env: Env, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    with launched(Script(models=("m",), ttft_ms=5, gap_ms=1)) as server:
        done = shell(env, f"nilo measure {server.url} {QUICK} -q --json-file {file} > /dev/full")
    assert (done.returncode, slugs_told(done)) == (3, ["output_failed_archived"])
    run = json.loads(file.read_text())["run"]
    assert run in done.stderr
    assert shell(env, f"nilo runs show {run}").returncode == 0


def test_a_file_that_cannot_be_written_keeps_nothing_from_stdout(env: Env) -> None:
    done = shell(env, "nilo runs list --json --json-file /dev/full")
    assert (done.returncode, slugs_told(done)) == (2, ["file_unwritable"])
    assert json.loads(done.stdout)["kind"] == "runs"


@pytest.mark.parametrize("option", ["--json-file", "--records"])
@pytest.mark.parametrize("before", [None, "what was there"])
def test_a_failure_before_the_result_leaves_its_file_as_it_was(
    env: Env, tmp_path: Path, option: str, before: str | None
) -> None:
    file = tmp_path / "result"
    if before is not None:
        file.write_text(before)
    done = shell(env, f"nilo measure http://127.0.0.1:9 {option} {file}")
    assert done.returncode == 3
    assert (file.read_text() if file.exists() else None) == before


def test_records_of_repeats_stand_in_one_file_that_held_something_else(env: Env, tmp_path: Path) -> None:
    file = tmp_path / "records"
    file.write_text("old")
    with launched(Script(models=("m",), ttft_ms=5, gap_ms=1)) as server:
        shell(env, f"nilo measure {server.url} {QUICK} --repeat 2 --records {file}")
    assert [json.loads(line)["outcome"] for line in file.read_text().splitlines()] == ["ok"] * 40


def test_a_letter_that_the_terminal_lacks_is_replaced(env: Env) -> None:
    done = shell({**env, "PYTHONIOENCODING": "latin-1"}, "nilo runs list --lang zh")
    assert done.returncode == 0
    assert "nilo measure TARGET" in done.stdout
