"""`nilo measure` as a user runs it, against the mock with its known truth: figures, exit codes, files, secrets."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.loopback.driving import SHORT
from tests.loopback.replay import Replay, Reply
from tests.loopback.scripted import Scripted, ok, take_request

from nilometer.archive.store import open_archive
from nilometer.engines.mock import Mock, launched
from nilometer.engines.mock_script import Script, parse_fault

QUICK = ("--warmup", "0.3s", "--duration", "1.5s", "--input-tokens", "24", "--output-tokens", "8")
Env = dict[str, str]


@pytest.fixture
def env(tmp_path: Path) -> Env:
    return {**os.environ, "XDG_DATA_HOME": str(tmp_path / "data"), "LC_ALL": "C.UTF-8", "NILO_LANG": "en"}


@pytest.fixture(scope="module")
def mock() -> Iterator[Mock]:
    with launched(Script(models=("m",), ttft_ms=40, gap_ms=5)) as server:
        yield server


def nilo(env: Env, *words: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "nilometer", *words]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=timeout, check=False)


def admissible(env: Env, *words: str) -> subprocess.CompletedProcess[str]:
    """As `nilo`; again where a busy machine limited the generator, which stands before what is tested here."""
    done = nilo(env, *words)
    for _ in range(3):
        if done.returncode != 4:
            break
        done = nilo(env, *words)
    return done


def measured(env: Env, *words: str) -> dict[str, Any]:
    done = nilo(env, "measure", *words, "--json")
    assert done.returncode in (0, 1, 4), done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def journals(env: Env) -> list[Path]:
    return sorted((Path(env["XDG_DATA_HOME"]) / "nilometer" / "journals").glob("*"))


def test_figures_are_those_of_the_truth(env: Env, mock: Mock) -> None:
    run = measured(env, mock.url, "-c", "3", *QUICK)
    assert run["kind"] == "run"
    assert run["format"] == 1
    latency, requests = run["latency_ms"], run["requests"]
    assert requests["ok"] >= 30
    assert requests["error"] == requests["incomplete"] == 0
    assert 39.5 < latency["ttft"]["p50"] < 50
    assert 4.9 < latency["tpot"]["p50"] < 6
    # 3 streams of 8 tokens in 40 + 7 x 5 ms
    assert run["throughput"]["output_tokens_per_s"] == pytest.approx(3 * 8 / 0.075, rel=0.15)
    assert run["lengths"]["input"]["mean"] == run["lengths"]["asked_input"]["mean"] == 24
    assert run["lengths"]["output"]["mean"] == 8
    assert run["lengths"]["token_source"] == {"usage": requests["ok"]}
    assert run["spec"]["model"] == "m"
    assert journals(env) == []


def test_a_count_sends_exactly_so_many_after_the_warm_up(env: Env, mock: Mock) -> None:
    mock.clear_truth()
    run = measured(env, mock.url, "-c", "4", "--requests", "21", "--warmup", "0", "--no-probe", *QUICK[4:])
    assert run["window"]["rule"] == "count"
    assert run["requests"]["ok"] == 21
    assert sum(1 for line in mock.truth() if "completions" in line.path) == 21


def test_an_open_loop_counts_from_due(env: Env, mock: Mock) -> None:
    run = measured(env, mock.url, "--rate", "40", "--arrivals", "constant", *QUICK)
    assert run["latency_from"] == "due"
    assert run["requests"]["started"] == pytest.approx(60, abs=2)
    assert run["latency_ms"]["start_lag"]["n"] == run["requests"]["ok"]


def test_without_streaming_ttft_is_null(env: Env, mock: Mock) -> None:
    run = measured(env, mock.url, "--no-stream", *QUICK)
    assert run["latency_ms"]["ttft"] is None
    assert run["latency_ms"]["tpot"] is None
    assert run["latency_ms"]["e2e"]["p50"] > 70


def test_slo_missed_is_exit_1_and_met_is_0(env: Env, mock: Mock) -> None:
    words = ("measure", mock.url, "-c", "2", *QUICK, "--max-error-rate", "100%")
    missed = admissible(env, *words, "--slo", "ttft_p95<=1ms")
    assert missed.returncode == 1, missed.stderr
    assert admissible(env, *words, "--slo", "ttft_p95<=5s").returncode == 0


def test_an_slo_that_cannot_be_measured_is_undecided(env: Env, mock: Mock) -> None:
    done = admissible(env, "measure", mock.url, "--no-stream", *QUICK, "--slo", "ttft_p95<=500ms")
    assert done.returncode == 5, done.stderr


def test_a_budget_counts_prompts_without_usage_and_requests_in_flight(env: Env) -> None:
    with launched(Script(models=("m",), ttft_ms=30, gap_ms=5, usage="none")) as server:
        words = ("--no-probe", "--model", "m", "-c", "4", "--warmup", "0", "--duration", "30s", "--input-tokens", "100")
        run = measured(env, server.url, *words, "--output-tokens", "8", "--max-total-tokens", "3000")
    assert "budget_reached" in {finding["slug"] for finding in run["findings"]}
    assert run["run_requests"]["started"] * 108 == pytest.approx(3000, rel=0.6)


def test_texts_are_kept_in_the_archive_without_a_file(env: Env, mock: Mock) -> None:
    words = ("-c", "2", "--requests", "5", "--warmup", "0", *QUICK[4:])
    for more, kept in (((), None), (("--keep-text",), str)):
        run = measured(env, mock.url, *words, *more)["run"]
        with open_archive(f"sqlite:///{env['XDG_DATA_HOME']}/nilometer/archive.sqlite") as archive:
            texts = [record.text for record in archive.records(run)]
        assert len(texts) == 5
        assert {type(text) for text in texts} == {kept or type(None)}


def test_several_workers_share_the_load(env: Env, mock: Mock) -> None:
    run = measured(env, mock.url, "-c", "4", "--workers", "2", "--requests", "30", "--warmup", "0", *QUICK[4:])
    assert run["requests"]["ok"] == 30


def test_ctrl_c_before_the_load_leaves_at_once(env: Env) -> None:
    with launched(Script(models=("m",), faults=[parse_fault("mute:100%")])) as server:
        command = [sys.executable, "-m", "nilometer", "measure", server.url]
        with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
            time.sleep(2.5)
            child.send_signal(signal.SIGINT)
            child.communicate(timeout=5)
        assert child.returncode == 130
    assert journals(env) == []


def test_errors_over_the_limit_are_exit_4_and_listed(env: Env) -> None:
    with launched(Script(models=("m",), ttft_ms=20, gap_ms=2, faults=[parse_fault("http_429:50%")])) as server:
        done = nilo(env, "measure", server.url, "--no-probe", "--model", "m", *QUICK)
        assert done.returncode == 4, done.stderr
        assert done.stdout.startswith("Not admissible")
    shown = nilo(env, "runs", "show", "latest", "--errors")
    assert shown.returncode == 0
    assert "http_429" in shown.stdout


def test_a_server_that_answers_nothing_is_said_to(env: Env) -> None:
    with launched(Script(models=("m",), faults=[parse_fault("mute:100%")])) as server:
        words = ("--no-probe", "--model", "m", "-c", "3", "--warmup", "0.3s", "--duration", "0.5s", "--drain", "0.2s")
        done = nilo(env, "measure", server.url, *words, *QUICK[4:])
    assert done.returncode == 4, done.stderr
    assert "none of 3 requests of the whole run was answered; 3 of them were in flight" in " ".join(done.stdout.split())


@pytest.mark.parametrize("fault", ["http_500", "drop", "cut", "garbage", "noise", "html200", "stream_error"])
def test_a_faulty_server_stops_the_probe_with_the_way_to_measure_its_faults(env: Env, fault: str) -> None:
    with launched(Script(models=("m",), ttft_ms=5, gap_ms=1, faults=[parse_fault(f"{fault}:100%")])) as server:
        done = nilo(env, "measure", server.url, *QUICK)
        assert (done.returncode, "`nilo measure --no-probe`" in done.stderr) == (3, True), done.stderr
        words = ("--no-probe", "--model", "m", "--requests", "10", "--warmup", "0", *QUICK[4:])
        counts = measured(env, server.url, *words)["requests"]
    assert counts["ok"] == 0
    assert counts["error"] + counts["incomplete"] == counts["started"] == 10


def test_a_request_that_the_server_took_and_dropped_is_not_sent_again(env: Env) -> None:
    """Also on a kept connection, where it looks much like a connection that was closed before."""
    with launched(Script(models=("m",), ttft_ms=5, gap_ms=1, faults=[parse_fault("drop:30%")])) as server:
        words = ("--no-probe", "--model", "m", "--requests", "60", "--warmup", "0", "--max-error-rate", "100%")
        run = measured(env, server.url, "-c", "2", *words, *QUICK[4:])
        truth = [line.outcome for line in server.truth() if "completions" in line.path]
    assert len(truth) == 60
    assert run["requests"]["incomplete"] == truth.count("incomplete") > 5
    assert run["requests"]["ok"] == truth.count("ok")


def test_like_repeats_the_spec_with_other_prompts(env: Env, mock: Mock) -> None:
    first = measured(env, mock.url, "-c", "2", *QUICK, "--slo", "ttft_p95<=5s")
    mock.clear_truth()
    second = measured(env, "--like", first["run"][:8], "-c", "3")
    assert second["spec"]["slo"] == "ttft_p95<=5s"
    assert second["spec"]["load"] == {**first["spec"]["load"], "concurrency": 3}
    assert second["run"] != first["run"]


def test_prompts_are_made_of_the_text_that_the_spec_names(env: Env, tmp_path: Path) -> None:
    """By flag, by TOML, and by --like, for which it is kept in the archive."""
    asked: list[dict[str, Any]] = []

    def chinese(*words: str) -> bool:
        asked.clear()
        told = measured(env, *words, "--requests", "4", "--warmup", "0", "--input-tokens", "60", "--output-tokens", "4")
        texts = [body["messages"][0]["content"] for body in asked[-4:]]
        found = {any("\u4e00" <= letter <= "\u9fff" for letter in text) for text in texts}
        assert found == {told["spec"]["prompts"]["text"] == "zh"}
        return found == {True}

    def handle(sock: socket.socket) -> None:
        while request := take_request(sock):
            head, _, body = request.partition(b"\r\n\r\n")
            if not head.startswith(b"POST"):
                sock.sendall(ok(b'{"data": [{"id": "m"}]}', "Content-Type: application/json"))
                continue
            asked.append(json.loads(body))
            choice = {"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "length"}
            answer = {"choices": [choice], "usage": {"prompt_tokens": 60, "completion_tokens": 4}}
            sock.sendall(ok(json.dumps(answer).encode(), "Content-Type: application/json"))

    with Scripted(handle) as server:
        way = (server.url, "--no-stream", "--no-probe", "--model", "m")
        assert not chinese(*way)
        assert chinese(*way, "--prompt-text", "zh")
        assert chinese("--like", "latest")
        assert not chinese("--like", "latest", "--prompt-text", "en")
        file = tmp_path / "spec.toml"
        file.write_text(f'target = "{server.url}"\nstream = false\n[prompts]\ntext = "zh"\n')
        assert chinese(str(file), "--no-probe")
        file.write_text(file.read_text().replace('"zh"', '"fr"'))
        assert nilo(env, "measure", str(file)).returncode == 2


def test_repeats_are_one_group(env: Env, mock: Mock) -> None:
    told = measured(env, mock.url, "--repeat", "2", *QUICK)
    assert told["kind"] == "group"
    assert told["type"] == "repeat"
    assert [run["order"] for run in told["runs"]] == [0, 1]
    assert {run["group"] for run in told["runs"]} == {told["group"]}
    shown = json.loads(nilo(env, "runs", "show", told["group"][:8], "--json").stdout)
    assert shown == {**told, "tags": [], "notes": []}


def test_a_token_budget_is_that_of_all_repeats(env: Env, mock: Mock) -> None:
    """Ten requests of some 30 + 5 tokens a run: 600 are not two of them, so that a third never begins."""
    options = ("--warmup", "0", "--requests", "10", "-c", "1", "--ramp", "0s", "--input-tokens", "30")
    words = ("--output-tokens", "5", "--repeat", "3", "--max-total-tokens", "600", "--price", "in=1000", "--json")
    done = nilo(env, "measure", mock.url, *options, *words)
    assert done.returncode in (0, 4), done.stderr  # a busy machine may limit the generator
    runs = json.loads(done.stdout)["runs"]
    used = [run["cost"]["prompt_tokens"] + run["cost"]["output_tokens"] for run in runs]
    assert "all together: about 1.1 k tokens, about 0.90 USD" in done.stderr
    assert [run["spec"]["load"]["max_total_tokens"] for run in runs] == [600, 600 - used[0]]
    assert sum(used) < 600 + 2 * 35
    assert "used up after 2 of 3 runs" in done.stderr


def test_repeats_that_never_began_leave_no_group(env: Env) -> None:
    assert nilo(env, "measure", "http://127.0.0.1:9", "--repeat", "2").returncode == 3
    with sqlite3.connect(Path(env["XDG_DATA_HOME"]) / "nilometer" / "archive.sqlite") as db:
        assert db.execute("SELECT count(*) FROM run_group").fetchone() == (0,)
    db.close()


def test_records_are_one_json_object_a_line(env: Env, mock: Mock, tmp_path: Path) -> None:
    file = tmp_path / "r.jsonl"
    run = measured(env, mock.url, "-c", "2", *QUICK, "--records", str(file), "--no-archive", "--keep-text")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(lines) == run["run_requests"]["started"]
    ok = [line for line in lines if line["outcome"] == "ok"]
    assert all(len(line["frames"]) == 8 for line in ok)
    assert all(line["ttft_ms"] <= line["e2e_ms"] for line in ok)
    assert all(line["text"] for line in ok)
    assert nilo(env, "runs", "list").stdout.count(run["run"]) == 0


def test_records_that_cannot_be_written_leave_the_run_archived(env: Env, mock: Mock) -> None:
    words = ("--no-probe", "--model", "m", "--requests", "20", "--warmup", "0", *QUICK[4:], "--records", "/dev/full")
    done = nilo(env, "measure", mock.url, *words, "-q")
    assert done.returncode == 2
    assert "/dev/full" in done.stderr
    assert json.loads(nilo(env, "runs", "show", "latest", "--json").stdout)["requests"]["ok"] == 20


def test_ctrl_c_once_drains_saves_and_is_130(env: Env, mock: Mock) -> None:
    command = [sys.executable, "-m", "nilometer", "measure", mock.url, "--warmup", "0", "--duration", "60s", "--json"]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        time.sleep(6)
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=30)
    assert child.returncode == 130
    run = json.loads(out)
    assert run["requests"]["ok"] > 0
    assert run["requests"]["cancelled"] == 0
    assert "interrupted" in {finding["slug"] for finding in run["findings"]}


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGHUP])
def test_a_terminal_that_goes_away_saves_what_was_measured(ending: signal.Signals, env: Env, mock: Mock) -> None:
    command = [sys.executable, "-m", "nilometer", "measure", mock.url, "--warmup", "0", "--duration", "60s"]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        wait_for_records(env)
        child.send_signal(ending)
        child.communicate(timeout=30)
    assert child.returncode == 130
    rows = json.loads(nilo(env, "runs", "list", "--json").stdout)["runs"]
    assert len(rows) == 1


def test_under_nohup_a_hang_up_is_ignored(env: Env, mock: Mock) -> None:
    command = ["nohup", sys.executable, "-m", "nilometer", "measure", mock.url, *QUICK, "--json"]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        wait_for_records(env)
        child.send_signal(signal.SIGHUP)
        out, said = child.communicate(timeout=30)
    assert child.returncode in (0, 4), said
    assert not json.loads(out)["findings"] or "interrupted" not in out


def test_an_interrupt_between_repeats_shows_those_that_were_measured(env: Env) -> None:
    """The second probe hangs at its first question; the user does not wait for it."""
    asked = threading.Event()
    lists = iter([False, True])

    def answers(exchange: Any) -> Reply:
        if not exchange.path.startswith("/v1/models"):
            return Reply(SHORT, framing="length", ending="keep")
        if next(lists):
            asked.set()
            return Reply(b"", framing="raw", ending="hang")
        return Reply(b'{"data":[{"id":"m"}]}', content_type="application/json", framing="length")

    with Replay(answers) as server:
        options = ("--warmup", "0", "--requests", "5", "--repeat", "3", "--json")
        command = [sys.executable, "-m", "nilometer", "measure", server.url, *options]
        with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
            assert asked.wait(30)
            child.send_signal(signal.SIGINT)
            out, said = child.communicate(timeout=30)
    assert child.returncode == 130, said
    group = json.loads(out)
    assert (group["kind"], len(group["runs"])) == ("group", 1)
    assert group["runs"][0]["requests"]["ok"] == 5


def wait_for_records(env: Env) -> None:
    limit = time.monotonic() + 30
    while not (journals(env) and journals(env)[0].stat().st_size > 3_000) and time.monotonic() < limit:
        time.sleep(0.05)


def test_kill_9_of_nilo_leaves_no_worker_and_a_run_to_recover(env: Env) -> None:
    """... with what its probe had found."""
    with launched(Script(models=("m",), ttft_ms=40, gap_ms=5, refuse_stream_options=True)) as mock:
        options = ("-c", "2", "--warmup", "0", "--duration", "60s")
        command = [sys.executable, "-m", "nilometer", "measure", mock.url, *options]
        with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
            limit = time.monotonic() + 30
            while not (journals(env) and journals(env)[0].stat().st_size > 20_000) and time.monotonic() < limit:
                time.sleep(0.1)
            workers = children_of(child.pid)
            child.kill()
            child.wait()
        assert len(workers) == 1
    limit = time.monotonic() + 10
    while any(map(alive, workers)) and time.monotonic() < limit:
        time.sleep(0.1)
    assert not any(map(alive, workers))
    assert len(journals(env)) == 1
    checked = nilo(env, "runs", "check")
    assert checked.returncode == 0, checked.stderr
    assert journals(env) == []
    shown = json.loads(nilo(env, "runs", "show", "latest", "--json").stdout)
    assert shown["run_requests"]["ok"] > 5
    assert "stream_options_refused" in {finding["slug"] for finding in shown["findings"]}


def test_a_journal_damaged_during_the_run_marks_it_and_is_kept(env: Env, mock: Mock) -> None:
    command = [sys.executable, "-m", "nilometer", "measure", mock.url, "-c", "2", "--warmup", "0", "--duration", "4s"]
    with subprocess.Popen([*command, "--json"], env=env, stdout=subprocess.PIPE, text=True) as child:
        limit = time.monotonic() + 30
        while not (journals(env) and journals(env)[0].stat().st_size > 20_000) and time.monotonic() < limit:
            time.sleep(0.1)
        with journals(env)[0].open("r+b") as file:
            file.seek(10_000)
            file.write(bytes(16))
        out, _ = child.communicate(timeout=60)
    (finding,) = (one for one in json.loads(out)["findings"] if one["slug"] == "journal_damaged")
    assert [str(path) for path in journals(env)] == [finding["params"]["file"]]
    assert 16 < finding["params"]["lost"] < 10_000
    assert nilo(env, "runs", "check").returncode == 0
    shown = nilo(env, "runs", "show", "latest")
    assert finding["params"]["file"] in "".join(shown.stdout.split())


FULL_DISK = """
mount -t tmpfs -o size=1m none "$1" 2>/dev/null || { echo no mount; exit; }
"$PYTHON" -m nilometer runs check --archive "$1/a.sqlite" >"$1/told"
cat /dev/zero 2>/dev/null >"$1/fill"
truncate -s -64K "$1/fill"
shift
"$PYTHON" -m nilometer "$@"
"""


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs a file system of its own")
@pytest.mark.parametrize(
    ("lang", "told"), [("en", "no room left to write the archive"), ("zh", "没有空间写入性能档案")]
)
def test_a_run_that_the_archive_has_no_room_for_is_kept_and_said_so(
    env: Env, mock: Mock, tmp_path: Path, lang: str, told: str
) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    archive = folder / "a.sqlite"
    flags = ["-m"] if os.geteuid() == 0 else ["-rm"]
    words = ["-c", "4", "--warmup", "0", "--duration", "2s", "--archive", str(archive), "--lang", lang, "-q"]
    command = ["unshare", *flags, "sh", "-c", FULL_DISK, "sh", str(folder), "measure", mock.url, *words]
    env["PYTHON"] = sys.executable
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    if "no mount" in done.stdout or "unshare" in done.stderr:
        pytest.skip("no right to mount")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.count("\n") == 1, done.stderr
    (line,) = done.stderr.splitlines()
    (kept,) = journals(env)
    assert all(part in line for part in ("run_not_archived", told, str(archive), str(kept), "`nilo runs check`"))
    assert not any(mark in line for mark in ("archive_full", "path=", "Error("))
    assert nilo(env, "runs", "check", "--archive", str(archive)).returncode == 0
    assert journals(env) == []
    assert len(json.loads(nilo(env, "runs", "list", "--archive", str(archive), "--json").stdout)["runs"]) == 1


def test_no_secret_gets_into_anything_kept_or_shown(env: Env, tmp_path: Path) -> None:
    env["CANARY_KEY"] = "canary-key"
    with launched(Script(models=("m",), ttft_ms=5, gap_ms=1, api_key="canary-key")) as server:
        url = server.url.replace("//", "//user:canary-password@") + "?api_key=canary-query"
        words = (url, *QUICK, "--header", "X-Secret: canary-header", "--api-key-env", "CANARY_KEY")
        done = nilo(env, "measure", *words, "--json", "--records", str(tmp_path / "r.jsonl"))
        assert done.returncode in (0, 4), done.stderr  # a busy machine may limit the generator
    told = done.stdout + done.stderr + (tmp_path / "r.jsonl").read_text()
    assert "canary" not in told.lower().replace("canary_key", "")
    kept = b"".join(path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file())
    assert b"canary-" not in kept


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ((), 2, "no TARGET"),
        (("127.0.0.1:8000",), 2, "http://"),
        (("nosuchengine:-np 4",), 2, "llama-server, skulk-llama-server, xllamacpp"),
        (("user:canary@host",), 2, "***@host is neither"),
        (("embedded:--host 10.0.0.1",), 2, "listens on 127.0.0.1 only"),
        (("embedded:-np many",), 2, "whole number"),
        (("URL", "--duration", "0s", "--warmup", "0s"), 2, "duration_zero"),
        (("URL", "--procedure", "guide", "--warmup", "5s"), 2, "--procedure guide and --warmup"),
        (("URL", "--duration", "0"), 2, "duration_zero"),
        (("URL", "--keep-text", "--no-archive"), 2, "keep_text_nowhere"),
        (("http://127.0.0.1:9",), 3, "Connection refused"),
        (("http://name.invalid:1",), 3, "name.invalid"),
        (("URL", "-c", "2", "--rate", "3"), 2, "exclude each other"),
        (("URL", "--slo", "speed<=1"), 2, "speed"),
        (("URL", "--window", "5..1"), 2, "5..1"),
        (("URL", "--arrivals", "sometimes", "--rate", "1"), 2, "sometimes"),
        (("URL", "--input-tokens", "normal:5"), 2, "normal:5"),
        (("URL", "--input-tokens", "empirical:/nowhere"), 2, "/nowhere"),
        (("URL", "--model", "other"), 2, "it serves: m"),
        (("URL", "--records", "/nowhere/r"), 2, "/nowhere/r"),
        (("URL", "--archive", "sqlite:////proc/nowhere/a"), 3, "/proc/nowhere"),
        (("URL", "--like", "nosuch"), 2, "nosuch"),
        (("URL", "-c", "0"), 2, "-c"),
        (("URL", "-c", "1", "--workers", "2"), 2, "--workers 1"),
        (("URL", "--window", "10..20", "--duration", "4s"), 2, "10..20"),
        (("URL", "--arrivals", "sometimes"), 2, "sometimes"),
        (("URL", "--json-file", "/nowhere/x.json"), 2, "/nowhere/x.json"),
        (("URL", "--bogus"), 2, "--bogus"),
        (("URL", "-c", "99999"), 2, "ulimit"),
    ],
)
def test_bad_input_is_one_line_and_the_right_code(
    env: Env, mock: Mock, words: Sequence[str], code: int, told: str
) -> None:
    mock.clear_truth()
    done = nilo(env, "measure", *(mock.url if word == "URL" else word for word in words))
    assert done.returncode == code, done.stderr
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1
    if code == 2:
        assert not [line for line in mock.truth() if "completions" in line.path]


def test_the_archive_holds_what_was_printed(env: Env, mock: Mock, tmp_path: Path) -> None:
    run = measured(env, mock.url, "-c", "2", *QUICK, "--archive", f"sqlite:///{tmp_path}/a.sqlite")
    with sqlite3.connect(tmp_path / "a.sqlite") as db:
        (value,) = db.execute(
            "SELECT value FROM summary_value WHERE run = ? AND metric = 'ttft' AND stat = 'p50'", (run["run"],)
        ).fetchone()
    db.close()
    assert value == run["latency_ms"]["ttft"]["p50"]


def children_of(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            if int(stat.rpartition(")")[2].split()[1]) == pid:
                found.append(int(entry.name))
    return found


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
