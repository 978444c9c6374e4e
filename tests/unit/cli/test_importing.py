"""`nilo runs import` as a user calls it: what it prints, stores, warns of and refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from nilometer.archive.sqlite import SqliteArchive
from nilometer.archive.stored import StoredArchive
from nilometer.cli import importing
from nilometer.cli.root import nilo
from nilometer.core.errors import ArchiveError
from nilometer.core.record import Record
from nilometer.core.run import Run
from nilometer.sources.results.formats import NAMES

TESTS = Path(__file__).parents[2]
CASES = TESTS / "cases" / "results"
VLLM, SGLANG = CASES / "r01_vllm_bench_serve.json", CASES / "r03_sglang_bench.jsonl"
GUIDELLM = TESTS / "captures" / "results" / "guidellm-0.8.1" / "benchmarks.json"


@pytest.fixture(autouse=True)
def _own_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NILO_ARCHIVE", f"sqlite:///{tmp_path}/a.sqlite")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def nilo_runs(*words: str | Path) -> Result:
    done = CliRunner().invoke(nilo, ["runs", *map(str, words), "--lang", "en"])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def machine(*words: str | Path) -> dict[str, Any]:
    done = nilo_runs(*words, "--json")
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def stored(tmp_path: Path) -> list[Run]:
    with SqliteArchive(tmp_path / "a.sqlite") as archive:
        return [archive.get(row.id) for row in archive.list_runs()]


def test_the_names_of_the_tools_are_those_of_the_table() -> None:
    assert importing.TOOLS == NAMES


def test_a_line_for_each_run_and_what_weighs_on_stderr(tmp_path: Path) -> None:
    done = nilo_runs("import", VLLM, GUIDELLM)
    lines = done.stdout.splitlines()
    runs = {run.tool: run for run in stored(tmp_path)}
    assert [line.split(": ")[0] for line in lines] == [
        f"archived as {runs['vllm bench serve'].id}",
        f"archived as {runs['guidellm'].id}",
    ]
    assert "org/m, closed loop, 2 in flight, TTFT 690 ms* (p95)" in lines[0]
    assert "more notes: `nilo runs show" in done.stderr
    quiet = nilo_runs("import", GUIDELLM, "-q")
    assert quiet.stderr == ""


def test_what_weighs_is_said_once() -> None:
    llama = CASES / "r10_llama_bench.json"
    assert nilo_runs("import", llama, llama).stderr.count("drives the engine alone") == 1


def test_labels_and_a_model_that_the_file_does_not_name(tmp_path: Path) -> None:
    words = ["--service", "reed", "--service-version", "7", "--model", "org/n", "--label", "gate=yes"]
    nilo_runs("import", SGLANG, *words, "--model-version", "2", "--quantisation", "fp8")
    for run in stored(tmp_path):
        labels = run.spec.labels
        assert (labels.service, labels.service_version, labels.extra) == ("reed", "7", {"gate": "yes"})
        assert (labels.model_version, labels.quantisation, run.spec.model) == ("2", "fp8", "org/n")
    assert "reed" in nilo_runs("list", "--service", "reed").stdout


def test_a_model_that_the_file_names_stands(tmp_path: Path) -> None:
    nilo_runs("import", VLLM, "--model", "org/n")
    assert [run.spec.model for run in stored(tmp_path)] == ["org/m"]


def test_without_the_archive_nothing_is_stored(tmp_path: Path) -> None:
    told = nilo_runs("import", VLLM, "--no-archive")
    assert (told.exit_code, told.stdout.startswith("not archived: vllm bench serve")) == (0, True)
    assert not (tmp_path / "a.sqlite").exists()


def test_requests_of_a_file_are_kept(tmp_path: Path) -> None:
    (run,) = machine("import", GUIDELLM)["runs"]
    with SqliteArchive(tmp_path / "a.sqlite") as archive:
        assert len(list(archive.records(run["run"]))) == 16
    shown = nilo_runs("show", run["run"], "--errors").stdout
    assert "4 of 16 requests failed" in shown
    assert "503" in shown or "500" in shown


def test_a_file_without_requests_says_so_where_they_are_asked_for() -> None:
    (run,) = machine("import", VLLM)["runs"]
    assert "does not hold its requests" in nilo_runs("show", run["run"], "--errors").stdout


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("", "result_empty"),
        ('{"a": 1}', "result_unknown"),
        ('{"duration": 10, ', "result_cut_off"),
        ('{"metadata": {"version": 9}, "benchmarks": [{"type_": "generative_benchmark"}]}', "result_newer"),
        ("not a result", "result_unknown"),
    ],
)
def test_a_file_that_cannot_be_read_refuses_all_of_them(text: str, slug: str, tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text(text)
    done = nilo_runs("import", VLLM, bad)
    assert (done.exit_code, done.stdout) == (2, "")
    assert str(bad) in done.stderr
    assert f"({slug})" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "a.sqlite").exists()


def test_the_wrong_tool_is_refused() -> None:
    done = nilo_runs("import", VLLM, "--tool", "aiperf")
    assert (done.exit_code, "result_other" in done.stderr) == (2, True)
    assert nilo_runs("import", VLLM, "--tool", "vllm").exit_code == 0


def test_an_archive_that_fails_keeps_none_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put = StoredArchive.put
    seen: list[str] = []

    def failing(self: StoredArchive, run: Run, records: list[Record]) -> None:
        seen.append(run.id)
        if len(seen) == 2:
            raise ArchiveError("archive_full", path="x", detail="no room")
        put(self, run, records)

    monkeypatch.setattr(StoredArchive, "put", failing)
    done = nilo_runs("import", SGLANG)
    assert (done.exit_code, "archive_full" in done.stderr) == (3, True)
    assert stored(tmp_path) == []


def test_a_run_of_another_tool_is_not_repeated() -> None:
    (run,) = machine("import", VLLM)["runs"]
    for command in ("measure", "sweep"):
        done = CliRunner().invoke(nilo, [command, "http://127.0.0.1:1", "--like", run["run"], "--lang", "en"])
        assert (done.exit_code, "like_imported" in done.output) == (2, True)
