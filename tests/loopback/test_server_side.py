"""A server's metrics page beside a real load: looked at while it lasts, with the same key; judged and kept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

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
