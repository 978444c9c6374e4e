"""A server's metrics page beside a real load: looked at while it lasts, with the same key; judged and kept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from msgspec.structs import replace
from tests.loopback import speaking
from tests.loopback.driving import wait_until
from tests.loopback.replay import Exchange, Replay, Reply
from tests.loopback.speaking import speaker

from nilometer.archive.store import open_archive
from nilometer.core.errors import TargetError
from nilometer.core.spec import Spec
from nilometer.experiment.approach import Approach, approach
from nilometer.experiment.server_side import PagesFrom, find, watching
from nilometer.metrics.engine_pages import FAMILIES
from nilometer.metrics.pages import read
from nilometer.metrics.server_figures import figures

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


def way_to(url: str, *, probe: bool = True) -> Approach:
    """What is known before a load; nothing is sent for it."""
    way = approach(Spec(target=url, model="m", api="chat", probe=False), (), address=url, salt="x")
    return way._replace(spec=replace(way.spec, probe=probe))


KEY = (("Authorization", f"Bearer {SECRET}"),)


def test_a_server_without_a_page_is_no_fault() -> None:
    """llama.cpp answers 501 without --metrics."""
    counting = Counting(status=501)
    with Replay(counting) as server:
        assert find(way_to(server.url), KEY) is None
        assert find(way_to(server.url, probe=False), KEY) is None
    assert counting.pages == 1
    assert find(way_to(server.url), KEY) is None  # nobody is there


def test_a_page_that_was_named_and_is_none_is_refused_before_the_load() -> None:
    with Replay(speaker(speaking.chat)) as server, pytest.raises(TargetError) as caught:
        find(way_to(server.url), KEY, PagesFrom(url=f"{server.url}/metrics"))
    assert caught.value.slug == "metrics_page_missing"


def test_a_page_elsewhere_gets_no_key_of_the_targets(tmp_path: Path) -> None:
    """It is looked at though nothing but the load may go to the target."""
    counting = Counting()
    with Replay(counting) as server, Replay(Counting()) as other:
        address = f"http://reed:pw-{SECRET}@127.0.0.1:{other.port}/metrics"
        found = find(way_to(server.url, probe=False), KEY, PagesFrom(url=address))
        with watching(found, [SECRET], tmp_path / "pages") as seen:
            wait_until(lambda: len(other.exchanges) > 1)
            looks = list(seen().looks)
    assert looks
    assert counting.pages == 0
    assert {one.headers["authorization"].split()[0] for one in other.exchanges} == {"Basic"}
    assert not list(tmp_path.iterdir())


def test_a_page_of_the_targets_own_gets_its_key() -> None:
    with Replay(Counting()) as server:
        find(way_to(f"{server.url}/v1"), KEY, PagesFrom(url=f"{server.url}/metrics"))
        assert {one.headers["authorization"] for one in server.exchanges} == {f"Bearer {SECRET}"}


def test_a_prometheus_tells_the_same_of_all_replicas(tmp_path: Path) -> None:
    told = Prometheus()
    with Replay(told) as prometheus:
        found = find(way_to("http://127.0.0.1:1"), KEY, PagesFrom(prometheus=prometheus.url, match='job="vllm"'))
        begun_ns = time.monotonic_ns()
        with watching(found, [SECRET], tmp_path / "pages") as seen:
            time.sleep(2.2)
            side = seen()
        ended_ns = time.monotonic_ns()
        assert {one.path for one in prometheus.exchanges} == {"/api/v1/query_range"}
        assert not any(SECRET in str(one.headers) for one in prometheus.exchanges)
    (query,) = told.forms[-1]["query"]
    assert query.startswith('{__name__=~"(?:')
    assert query.endswith(', job="vllm"}')
    assert "|vllm:num_requests_running|" in query
    looks = list(side.looks)
    assert len(looks) == 3
    assert begun_ns - 50_000_000 < looks[0].asked_ns < looks[-1].asked_ns < ended_ns
    one, other = (figures(read(look.text or "", FAMILIES)) for look in looks[1:])
    assert (one.engines, one.running) == (2, 10)
    assert (other.generation_tokens or 0) - (one.generation_tokens or 0) == pytest.approx(200, abs=1e-3)


def test_a_prometheus_that_knows_no_such_server_is_refused_before_the_load() -> None:
    empty = {"status": "success", "data": {"resultType": "matrix", "result": []}}
    for body, slug in ((json.dumps(empty), "prometheus_empty"), ("<html>", "prometheus_refused")):
        with (
            Replay(Reply(body.encode(), framing="length", ending="keep")) as server,
            pytest.raises(TargetError) as caught,
        ):
            find(way_to("http://127.0.0.1:1"), (), PagesFrom(prometheus=server.url))
        assert caught.value.slug == slug


def test_a_prometheus_that_is_lost_costs_no_more_than_its_figures(tmp_path: Path) -> None:
    with Replay(speaker(speaking.chat)) as server, Replay(Prometheus(answers=1)) as prometheus:
        words = ("--prometheus", prometheus.url, "--warmup", "0s", "--requests", "4")
        run = measured(tmp_path, server.url, *words)
    assert (run["requests"]["ok"], run["server"]) == (4, {})
    (finding,) = [one for one in run["findings"] if one["slug"] == "prometheus_lost"]
    assert finding["params"]["detail"] == "prometheus_refused"
