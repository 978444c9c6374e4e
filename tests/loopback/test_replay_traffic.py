"""`nilo measure --workload` and `--replay`: what a log held is what the server is asked, when it was."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.loopback.replay import Replay
from tests.loopback.test_load_worker import QUICK
from tests.loopback.test_measure import Env, env, nilo

from nilometer.engines.mock import Mock, launched
from nilometer.engines.mock_script import Script

__all__ = ["env"]

ROWS = [(0.0, 30, 4), (0.0, 60, 8), (0.4, 45, 2), (1.0, 30, 6), (1.2, 90, 3)]
QUIET = ("--warmup", "0", "--ramp", "0s", "--no-archive", "--json")


@pytest.fixture(scope="module")
def mock() -> Iterator[Mock]:
    with launched(Script(models=("m",), ttft_ms=5, gap_ms=1)) as server:
        yield server


@pytest.fixture
def trace(tmp_path: Path, env: Env) -> Path:
    """A log of five requests as a workload."""
    lines = ["at,in,out", *(f"{at},{asked},{answered}" for at, asked, answered in ROWS)]
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    made = tmp_path / "w.toml"
    done = nilo(
        env, "workload", "make", str(tmp_path / "log.csv"), "--map", "at=at:s,input_tokens=in,output_tokens=out",
        "-o", str(made),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return made


def records(path: Path) -> list[dict[str, Any]]:
    return sorted((json.loads(line) for line in path.read_text().splitlines()), key=lambda record: record["seq"])


def test_a_trace_longer_than_the_load_is_said_before_it(env: Env, mock: Mock, trace: Path) -> None:
    words = ("measure", mock.url, "--replay", str(trace), *QUIET)
    short, whole = nilo(env, *words, "--duration", "0.9s"), nilo(env, *words, "--duration", "1.5s")
    assert "2 of its 5 requests are not sent" in short.stderr
    assert "not sent" not in whole.stderr
    assert "trace_cut" in [finding["slug"] for finding in json.loads(short.stdout)["findings"]]


def test_a_trace_shorter_than_the_load_is_said_before_it_and_ends_it(env: Env, mock: Mock, trace: Path) -> None:
    """It ends after 1.2 s, and so does what the rates are of; a window behind that is refused."""
    words = ("measure", mock.url, "--replay", str(trace), *QUIET, "--duration", "60s")
    done = nilo(env, *words)
    run = json.loads(done.stdout)
    assert "ends after 1.2 s" in done.stderr
    assert "trace_short" in [finding["slug"] for finding in run["findings"]]
    assert run["spec"]["load"]["duration_s"] == 1.21
    assert 1.2 <= run["window"]["end_s"] - run["window"]["start_s"] <= 1.21
    assert run["requests"]["ok"] == 5
    late = nilo(env, *words, "--window", "1..30")
    assert (late.returncode, "window_too_late" in late.stderr) == (2, True), late.stderr


def test_a_trace_that_ends_within_the_warm_up_is_refused(env: Env, mock: Mock, trace: Path) -> None:
    """It lasts 1.2 s: at half the speed 2.4 s, which a warm-up of 2 s leaves something of."""
    words = ("measure", mock.url, "--replay", str(trace), *QUIET, "--warmup", "2s", "--duration", "0.5s")
    done = nilo(env, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert "lasts 1.2 s at this speed, the warm-up 2 s" in done.stderr
    assert nilo(env, *words, "--speed", "0.5").returncode == 0


def test_a_workload_is_asked_in_its_order_and_again(env: Env, mock: Mock, trace: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    done = nilo(
        env, "measure", mock.url, "--workload", str(trace), "-c", "1", "--requests", "12", *QUIET, "--records", str(out)
    )
    assert done.returncode in (0, 4), done.stderr
    run = json.loads(done.stdout)
    asked = [(record["asked_input"], record["asked_output"]) for record in records(out)]
    assert asked == [ROWS[i % 5][1:] for i in range(12)]
    got = [(record["prompt_tokens"], record["output_tokens"]) for record in records(out)]
    assert got == asked
    assert len(run["spec"]["prompts"]["workload_sha256"]) == 64
    assert "lengths_not_from_traffic" not in done.stdout


def test_the_scenarios_of_a_log_have_their_own_figures(env: Env, mock: Mock, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("in,out,kind\n40,3,chat\n50,4,search\n60,5,chat\n")
    made = tmp_path / "w.toml"
    the_map = "input_tokens=in,output_tokens=out,scenario=kind"
    done = nilo(env, "workload", "make", str(tmp_path / "log.csv"), "--map", the_map, "-o", str(made))
    assert done.returncode == 0, done.stderr
    done = nilo(env, "measure", mock.url, "--workload", str(made), "-c", "1", "--requests", "6", *QUIET)
    assert done.returncode in (0, 4), done.stderr
    found = json.loads(done.stdout)["scenarios"]
    assert {name: figures["ok"] for name, figures in found.items()} == {"chat": 4, "search": 2}


@pytest.mark.parametrize("speed", ["1", "2"])
def test_a_replay_keeps_the_recorded_times(env: Env, mock: Mock, trace: Path, tmp_path: Path, speed: str) -> None:
    out = tmp_path / "r.jsonl"
    done = nilo(
        env, "measure", mock.url, "--replay", str(trace), "--speed", speed, "--duration", "5s", *QUIET,
        "--records", str(out),
    )  # fmt: skip
    assert done.returncode in (0, 4), done.stderr
    run = json.loads(done.stdout)
    kept = records(out)
    due_s = [(record["due_ns"] - kept[0]["due_ns"]) / 1e9 for record in kept]
    assert due_s == pytest.approx([at / float(speed) for at, _, _ in ROWS], abs=1e-6)
    assert all(record["sent_ns"] >= record["due_ns"] for record in kept)
    assert run["latency_from"] == "due"
    assert run["window"]["rule"] == "plan"
    assert run["requests"]["ok"] == 5


def test_texts_are_asked_as_they_stand_with_what_was_said_before(env: Env, tmp_path: Path) -> None:
    talk = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who?"},
            {"role": "assistant", "content": "I."}, {"role": "user", "content": "Why?"}]  # fmt: skip
    (tmp_path / "talk.jsonl").write_text(json.dumps(talk) + "\n")
    made = tmp_path / "asked.toml"
    done = nilo(env, "workload", "make", str(tmp_path / "talk.jsonl"), "--keep-text", "-o", str(made))
    assert done.returncode == 0, done.stderr
    with Replay(QUICK) as server:
        options = ("--no-probe", "--model", "m", "--api", "chat", "--requests", "3", "-c", "1")
        done = nilo(env, "measure", server.url, "--workload", str(made), *options, *QUIET)
    assert done.returncode in (0, 4), done.stderr
    bodies = [json.loads(exchange.body) for exchange in server.exchanges]
    assert [body["messages"] for body in bodies[:3]] == [talk] * 3


def test_like_asks_the_same_workload_and_no_other(env: Env, mock: Mock, trace: Path) -> None:
    options = ("--warmup", "0", "--requests", "5", "-c", "1", "--ramp", "0s")
    assert nilo(env, "measure", mock.url, "--workload", str(trace), *options).returncode in (0, 4)
    assert nilo(env, "measure", "--like", "latest").returncode in (0, 4)
    data = trace.with_suffix(".jsonl")
    lines = data.read_text().splitlines()
    again = trace.with_name("other.csv")
    again.write_text("at,in,out\n0,31,4\n")
    assert len(lines) == 5
    nilo(env, "workload", "make", str(again), "--map", "at=at:s,input_tokens=in,output_tokens=out", "-o", str(trace))
    refused = nilo(env, "measure", "--like", "latest")
    assert (refused.returncode, "workload_other" in refused.stderr) == (2, True)
    assert nilo(env, "measure", "--like", "latest", "--workload", str(trace)).returncode in (0, 4)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--replay", "FILE", "--rate", "3"), "exclude"),
        (("--replay", "FILE", "--workload", "FILE"), "workload_twice"),
        (("--prompts", "FILE", "--workload", "FILE"), "workload_twice"),
        (("--replay", "FILE", "--requests", "3"), "replay_by_count"),
        (("--arrivals", "recorded"), "replay_without_workload"),
        (("--workload", "/nowhere.toml"), "/nowhere.toml"),
        (("--workload", "LOG"), "log.csv"),
        (("--replay", "FILE", "--speed", "0"), "--speed"),
    ],
)
def test_bad_input_is_one_line(env: Env, mock: Mock, trace: Path, words: tuple[str, ...], told: str) -> None:
    places = {"FILE": str(trace), "LOG": str(trace.with_name("log.csv"))}
    done = nilo(env, "measure", mock.url, *(places.get(word, word) for word in words))
    assert (done.returncode, told in done.stderr) == (2, True), done.stderr
    assert "Traceback" not in done.stderr


def test_rows_without_times_cannot_be_replayed(env: Env, mock: Mock, tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_text("one two three four five six seven eight nine ten\n" * 3)
    made = tmp_path / "p.toml"
    assert nilo(env, "workload", "make", str(tmp_path / "p.txt"), "-o", str(made)).returncode == 0
    done = nilo(env, "measure", mock.url, "--replay", str(made))
    assert (done.returncode, "replay_without_stamps" in done.stderr) == (2, True), done.stderr


def test_prompts_of_a_file_are_asked_as_they_stand(env: Env, mock: Mock, tmp_path: Path) -> None:
    (tmp_path / "questions").write_text("What feeds a weir?\nWho reads the nilometer at Roda, and when?\n")
    out = tmp_path / "r.jsonl"
    done = nilo(
        env, "measure", mock.url, "--prompts", str(tmp_path / "questions"), "--output-tokens", "3", "--requests", "4",
        *QUIET, "--records", str(out),
    )  # fmt: skip
    assert done.returncode in (0, 4), done.stderr
    got = [(record["prompt_tokens"], record["output_tokens"]) for record in records(out)]
    assert got[0] != got[1]
    assert got == got[:2] * 2
    assert {answered for _, answered in got} == {3}
