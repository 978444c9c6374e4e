"""`nilo engine`: what each subcommand prints, as text and as JSON, and how errors leave it. No real engine."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from nilometer.cli.engine import command
from nilometer.core.environment import EngineFacts, ModelFacts
from nilometer.core.errors import EngineError
from nilometer.engines import catalogue, embedded, prepare
from nilometer.engines.catalogue import ENGINES, Program
from nilometer.engines.prepare import Prepared

FACTS = EngineFacts(name="xllamacpp", version="1.2", slots=8, load_time_s=0.75, log_path="/log")
MODEL = ModelFacts(id="Smol-Q4_0", precision="Q4_0", requantised_from="Q4_1")


def nilo(*words: str) -> Result:
    return CliRunner().invoke(command, [*words, *(["--lang", "en"] if "--lang" not in words else [])])


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One engine that runs, one the processor cannot execute, one that is not installed."""
    server = tmp_path / "server"
    server.write_text(
        f"#!{sys.executable}\nimport sys\nprint('version: 9 (abc)' if '--version' in sys.argv else '-np')\n"
    )
    server.chmod(0o755)
    rows = [
        ENGINES["llama-server"]._replace(find=lambda: Program("llama-server", (str(server),))),
        ENGINES["skulk-llama-server"]._replace(find=lambda: Program("skulk-llama-server", (str(server),))),
        ENGINES["xllamacpp"]._replace(find=lambda: None),
    ]
    monkeypatch.setattr(catalogue, "ENGINES", {row.name: row for row in rows})
    monkeypatch.setattr(catalogue, "cpu_flags", lambda: frozenset(["avx2", "avx512f"]))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return server


def test_list_says_which_engines_run_here(table: Path) -> None:
    told = json.loads(nilo("list", "--json").stdout)
    assert (told["kind"], told["format"]) == ("engines", 1)
    rows = {row.pop("engine"): row for row in told["engines"]}
    assert rows["llama-server"] == {
        "state": "ready",
        "version": "9 (abc)",
        "licence": "MIT",
        "lacking": [],
        "program": [str(table)],
        "fault": None,
    }
    assert rows["skulk-llama-server"]["state"] == "cannot_run_here"
    assert rows["skulk-llama-server"]["lacking"] == ["avx512bw", "avx512dq", "avx512vl", "avx512_vnni"]
    assert (rows["xllamacpp"]["state"], rows["xllamacpp"]["program"]) == ("not_installed", None)


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(("lang", "words"), [("en", "the processor lacks"), ("zh", "处理器缺少")])
def test_list_as_text_has_a_line_each_in_both_languages(lang: str, words: str) -> None:
    told = nilo("list", "--lang", lang)
    assert told.exit_code == 0
    lines = told.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["llama-server", "skulk-llama-server", "xllamacpp"]
    assert words in lines[1]
    assert "avx512bw, avx512dq" in lines[1]


def test_a_row_that_cannot_be_used_is_listed_with_the_reason(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's own program may not be there, or be none that this machine executes."""
    rows = dict(catalogue.ENGINES)
    broken = table.with_name("broken")
    broken.write_bytes(b"\x7fELFnot")
    broken.chmod(0o755)
    for named, reason in ((table.with_name("gone"), "NILO_LLAMA_SERVER names"), (broken, "cannot be started")):
        monkeypatch.setattr(catalogue, "ENGINES", {**rows, "llama-server": ENGINES["llama-server"]})
        monkeypatch.setenv("NILO_LLAMA_SERVER", str(named))
        told = nilo("list")
        assert (told.exit_code, told.stderr) == (0, "")
        first, *others = told.stdout.splitlines()
        assert "cannot be used: " in first
        assert reason in first
        assert str(named) in first
        assert len(others) == 2
        row = json.loads(nilo("list", "--json").stdout)["engines"][0]
        assert row["state"] == "unusable"
        assert str(named) in row["fault"]


def test_show_tells_what_would_be_started(table: Path) -> None:
    told = json.loads(nilo("show", "--json").stdout)
    assert (told["kind"], told["engine"], told["program"]) == ("engine_plan", "llama-server", [str(table)])
    assert told["flags"][:2] == ["-np", "8"]
    assert told["prepared"] == []
    assert told["model_folder"].endswith("models")
    text = nilo("show").stdout
    assert f"program        {table}" in text
    assert "prepared       -" in text


@pytest.fixture
def prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Stands in for `prepare`; returns what it was asked."""
    asked: list[tuple[Any, ...]] = []

    def stand_in(precision: str, *, model_file: str | None, tell: Any) -> Prepared:
        asked.append((precision, model_file))
        tell("engine_requantising", precision=precision, done=1, total=2)
        return Prepared(tmp_path / "m.gguf", "ab", 91_726_976, precision, None if model_file else "Q4_1", made_now=True)

    monkeypatch.setattr(prepare, "prepare", stand_in)
    return asked


def test_prepare_prints_one_line_and_its_progress_apart(prepared: list[tuple[Any, ...]], tmp_path: Path) -> None:
    told = nilo("prepare", "--precision", "q8_0")
    assert prepared == [("Q8_0", None)]
    assert told.stdout == f"ready: m.gguf, Q8_0 (requantised from Q4_1), 87.5 MiB: {tmp_path / 'm.gguf'}\n"
    assert told.stderr == "requantising to Q8_0: 1 of 2 tensors\n"
    assert nilo("prepare", "-q").stderr == ""


@pytest.mark.usefixtures("prepared")
def test_prepare_as_json() -> None:
    told = json.loads(nilo("prepare", "--json", "--model", "x.gguf").stdout)
    assert told["kind"] == "engine_model"
    assert (told["sha256"], told["bytes"], told["precision"], told["requantised_from"], told["made_now"]) == (
        "ab",
        91_726_976,
        "Q4_0",
        None,
        True,
    )


def test_an_unknown_precision_is_wrong_usage() -> None:
    assert nilo("prepare", "--precision", "Q5").exit_code == 2


def test_errors_of_an_engine_are_one_line_and_exit_3(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> Prepared:
        raise EngineError("engine_missing", engine="gguf", command='pip install "nilometer[embedded]"')

    monkeypatch.setattr(prepare, "prepare", fail)
    told = nilo("prepare")
    assert told.exit_code == 3
    assert told.stdout == ""
    assert told.stderr.count("\n") == 1
    assert "(engine_missing)" in told.stderr
    assert 'pip install "nilometer[embedded]"' in told.stderr


class Starter:
    """Stands in for `embedded.start`: an engine that dies after `looks` looks, or is interrupted."""

    def __init__(self, ends: list[str | BaseException | None]) -> None:
        self.ends = ends
        self.asked: dict[str, Any] = {}
        self.left = False

    @contextmanager
    def __call__(self, **asked: Any) -> Iterator[SimpleNamespace]:
        self.asked = asked
        try:
            yield SimpleNamespace(
                url="http://127.0.0.1:81",
                pid=7,
                log_path="/log",
                facts=FACTS,
                model=MODEL,
                died=self.died,
                tail=lambda: "out of memory",
            )
        finally:
            self.left = True

    def died(self) -> str | None:
        end = self.ends.pop(0)
        if isinstance(end, BaseException):
            raise end
        return end


@pytest.fixture
def starter(monkeypatch: pytest.MonkeyPatch) -> Starter:
    stand_in = Starter([None, KeyboardInterrupt()])
    monkeypatch.setattr(embedded, "start", stand_in)
    monkeypatch.setattr("nilometer.cli.engine._WATCH_S", 0.0)
    return stand_in


def test_start_prints_the_url_and_ends_well_by_ctrl_c(starter: Starter) -> None:
    told = nilo("start", "llama-server:-np 2", "--slots", "4", "--context", "512", "--port", "81", "--precision", "F16")
    assert told.exit_code == 0
    assert told.stdout.startswith("http://127.0.0.1:81  Smol-Q4_0 on xllamacpp 1.2, 8 slots, ready after 0.75 s")
    assert starter.left
    starter.asked.pop("tell")
    assert starter.asked == {
        "spec": "llama-server:-np 2",
        "slots": 4,
        "context_tokens_per_slot": 512,
        "port": 81,
        "precision": "F16",
        "model_file": None,
    }


def test_start_as_json_names_engine_and_model(starter: Starter) -> None:
    told = json.loads(nilo("start", "--json").stdout)
    assert (told["kind"], told["url"], told["pid"], told["log"]) == ("engine", "http://127.0.0.1:81", 7, "/log")
    assert told["engine"]["version"] == "1.2"
    assert told["model"]["requantised_from"] == "Q4_1"
    assert starter.asked["spec"] == "embedded"


def test_start_tells_when_the_engine_dies(starter: Starter) -> None:
    starter.ends = [None, "SIGSEGV"]
    told = nilo("start")
    assert told.exit_code == 3
    assert "ended by itself (SIGSEGV): out of memory (engine_died)" in told.stderr
    assert "SIGSEGV" in told.stderr
    assert starter.left
