"""A server's metrics page beside a real load: looked at while it lasts, with the same key; judged and kept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from tests.loopback import speaking
from tests.loopback.replay import Exchange, Replay, Reply
from tests.loopback.speaking import speaker

from nilometer.archive.store import open_archive

SECRET = "canary-8213"
LOAD = ("-c", "2", "--input-tokens", "24", "--output-tokens", "8", "--api", "chat")


class Counting:
    """Says chat; its page counts 10 tokens more each time it is asked, and 3 waiting on every second."""

    def __init__(self, status: int = 200) -> None:
        self.status = status
        self.pages = 0

    def __call__(self, exchange: Exchange) -> Reply:
        if exchange.path != "/metrics":
            return speaker(speaking.chat)(exchange)
        self.pages += 1
        waiting = 3 * (self.pages % 2)
        body = (
            f"vllm:num_requests_running 2\nvllm:num_requests_waiting {waiting}\nvllm:kv_cache_usage_perc 0.25\n"
            f"vllm:generation_tokens_total {10 * self.pages}\n"
            f'vllm:lora_requests_info{{waiting_lora_adapters="{SECRET}"}} 1\nother 1\n'
        ).encode()
        return Reply(body, status=self.status, content_type="text/plain", framing="length", ending="keep")


class Prometheus:
    """Has two replicas with 5 requests and 100 tokens a second each; `answers` times, then it refuses."""

    def __init__(self, answers: int = 2) -> None:
        self.left = answers
        self.forms: list[dict[str, list[str]]] = []

    def __call__(self, exchange: Exchange) -> Reply:
        self.forms.append(parse_qs(exchange.body.decode()))
        self.left -= 1
        if self.left < 0:
            told: dict[str, Any] = {"status": "error", "errorType": "bad_data", "error": f"no {SECRET}"}
            return Reply(json.dumps(told).encode(), status=422, framing="length", ending="keep")
        (start,), (end,), (step,) = (self.forms[-1][name] for name in ("start", "end", "step"))
        times = [float(start) + i * float(step) for i in range(int((float(end) - float(start)) / float(step)) + 1)]
        rows = [
            {"metric": {"__name__": name, "instance": one, "job": 'v"llm'}, "values": [[t, str(of(t))] for t in times]}
            for one in ("a:1", "b:1")
            for name, of in (
                ("vllm:num_requests_running", lambda _: 5),
                ("vllm:generation_tokens_total", lambda t: 100 * t),
            )
        ]
        told = {"status": "success", "data": {"resultType": "matrix", "result": rows}}
        return Reply(json.dumps(told).encode(), framing="length", ending="keep")


def measured(folder: Path, url: str, *words: str) -> dict[str, Any]:
    env = {**os.environ, "XDG_DATA_HOME": str(folder), "TMPDIR": str(folder), "REED_KEY": SECRET, "NILO_LANG": "en"}
    command = [sys.executable, "-m", "nilometer", "measure", url, *LOAD, *words, "--json"]
    command += ["--archive", str(folder / "archive.sqlite")]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode in (0, 4), done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_the_page_is_looked_at_judged_and_kept(tmp_path: Path) -> None:
    counting = Counting()
    with Replay(counting) as server:
        run = measured(
            tmp_path, f"{server.url}/v1", "--warmup", "0.2s", "--duration", "3.3s", "--api-key-env", "REED_KEY"
        )
        asked = [one for one in server.exchanges if one.path == "/metrics"]
    told = run["server"]
    assert told["pages"] in (3, 4)
    assert 1.9 < told["covered_s"] < 3.3
    assert told["generation_tokens"] == 10 * (told["pages"] - 1)
    assert (told["running_mean"], told["waiting_max"], told["kv_usage_max"]) == (2, 3, 0.25)
    assert told["waiting_with_room"] == told["waiting_above_zero"] > 0
    assert told["adapters_waiting"] == 1
    assert run["memory"]["kv_used_peak_ratio"] == 0.25
    assert run["memory"]["source"].endswith("metrics page")
    assert {one.headers.get("authorization") for one in asked} == {f"Bearer {SECRET}"}
    with open_archive(str(tmp_path / "archive.sqlite")) as archive:
        kept = archive.telemetry(run["run"])
        assert archive.get(run["run"]).summary.server == told
        assert archive.get(run["run"]).summary.host == run["host"]
        assert archive.check().problems == []
    looks = list(kept.looks)
    assert len(looks) == counting.pages - 1  # the first was that of the search
    assert [f"generation_tokens_total {10 * n}" in (looks[n - 2].text or "") for n in (2, 3)] == [True, True]
    assert all("***" in (look.text or "") and "other" not in (look.text or "") for look in looks)
    assert SECRET not in json.dumps(run)
    assert not list(tmp_path.glob("*.pages"))
    assert run["host"]["cores"] >= 1  # the server is within this test's process
    assert kept.host.keys() >= {"at", "server_cpu", "machine_cpu", "rss"}


def test_nothing_but_the_load_is_sent_where_that_was_asked(tmp_path: Path) -> None:
    with Replay(Counting()) as server:
        words = ("--no-probe", "--model", "m", "--warmup", "0s", "--requests", "4")
        run = measured(tmp_path, server.url, *words)
        assert {one.path for one in server.exchanges} == {"/v1/chat/completions"}
    assert run["server"] == {}


def test_a_server_without_a_page_is_no_finding(tmp_path: Path) -> None:
    """llama.cpp answers 501 without --metrics."""
    counting = Counting(status=501)
    with Replay(counting) as server:
        run = measured(tmp_path, server.url, "--warmup", "0s", "--requests", "4")
    assert counting.pages == 1
    assert run["server"] == {}
    assert not [finding for finding in run["findings"] if "metrics" in finding["slug"]]


def test_a_page_elsewhere_gets_no_key_of_the_targets(tmp_path: Path) -> None:
    counting = Counting()
    with Replay(counting) as server, Replay(Counting()) as other:
        words = (
            "--metrics-url",
            f"http://reed:{SECRET}@127.0.0.1:{other.port}/metrics",
            "--warmup",
            "0s",
            "--requests",
            "4",
        )
        run = measured(tmp_path, server.url, *words, "--header", "X-Key: canary-of-the-load")
        asked = other.exchanges
    assert counting.pages == 0
    assert {one.path for one in asked} == {"/metrics"}
    assert all(one.headers["authorization"].startswith("Basic ") and "x-key" not in one.headers for one in asked)
    kept = (tmp_path / "archive.sqlite").read_bytes()
    assert SECRET not in json.dumps(run)
    assert SECRET.encode() not in kept


def test_a_page_that_was_named_and_is_none_is_refused_before_the_load(tmp_path: Path) -> None:
    with Replay(speaker(speaking.chat)) as server:
        command = [
            sys.executable,
            "-m",
            "nilometer",
            "measure",
            server.url,
            *LOAD,
            "--metrics-url",
            f"{server.url}/metrics",
        ]
        done = subprocess.run([*command, "--no-archive"], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 3
        assert "metrics_page_missing" in done.stderr


def test_a_prometheus_tells_the_same_of_all_replicas(tmp_path: Path) -> None:
    told = Prometheus()
    with Replay(speaker(speaking.chat)) as server, Replay(told) as prometheus:
        words = (
            "--prometheus",
            prometheus.url,
            "--prometheus-match",
            'job="vllm"',
            "--warmup",
            "0s",
            "--duration",
            "3.5s",
        )
        run = measured(tmp_path, server.url, *words)
        assert {one.path for one in prometheus.exchanges} == {"/api/v1/query_range"}
    (query,) = told.forms[-1]["query"]
    assert query.startswith('{__name__=~"(?:')
    assert query.endswith(', job="vllm"}')
    assert "|vllm:num_requests_running|" in query
    seen = run["server"]
    assert seen["pages"] in (3, 4)
    assert seen["generation_tokens"] == pytest.approx(200 * seen["covered_s"], rel=1e-6)
    assert (seen["engines"], seen["running_mean"], seen["running_spread"]) == (2, 10, 1)


def test_a_prometheus_that_is_lost_costs_no_more_than_its_figures(tmp_path: Path) -> None:
    with Replay(speaker(speaking.chat)) as server, Replay(Prometheus(answers=1)) as prometheus:
        words = ("--prometheus", prometheus.url, "--warmup", "0s", "--requests", "4")
        run = measured(tmp_path, server.url, *words)
    assert (run["requests"]["ok"], run["server"]) == (4, {})
    (finding,) = [one for one in run["findings"] if one["slug"] == "prometheus_lost"]
    assert finding["params"]["detail"] == "prometheus_refused"
