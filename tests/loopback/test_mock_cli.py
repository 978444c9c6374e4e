"""`nilo mock` as a user starts it: what it prints, refuses and leaves behind."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from nilometer.engines.mock_script import FAULTS
from nilometer.engines.mock_truth import read_truth


def nilo(*arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "nilometer", "mock", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def post(url: str, body: dict[str, Any]) -> tuple[int, bytes]:
    parts = urlsplit(url)
    client = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=20)
    try:
        client.request("POST", "/v1/chat/completions", json.dumps(body))
        answer = client.getresponse()
        return answer.status, answer.read()
    finally:
        client.close()


def test_it_prints_its_address_serves_as_asked_and_leaves_the_truth(tmp_path: Path) -> None:
    file = tmp_path / "truth.jsonl"
    options = ["--ttft", "30ms", "--gap", "2ms", "--tokens-per-frame", "2", "--role-lead", "10ms", "--model", "nile"]
    with nilo(*options, "--stop-after", "6", "--truth", str(file), "--lang", "en") as process:
        assert process.stdout is not None
        url = process.stdout.readline().decode().strip()
        messages = [{"role": "user", "content": "how high"}]
        status, body = post(url, {"model": "nile", "messages": messages, "max_tokens": 50, "stream": True})
        assert status == 200
        assert body.count(b'"content":"') == 4  # the empty role frame and three of two tokens
        assert post(url, {"model": "amazon", "messages": messages})[0] == 404
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=20)
        assert process.returncode == 0
    assert url in said.decode()
    answered, refused = read_truth(file.read_bytes())
    assert (answered.output_tokens, answered.meant, refused.status) == (6, "ok", 404)
    assert (answered.writes[0][0] - answered.read_ns) / 1e6 >= 30


def test_ctrl_c_is_how_it_ends() -> None:
    with nilo("-q") as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=20)
        assert process.returncode == 0
    assert said == b""


def test_the_machine_form_names_the_address() -> None:
    with nilo("--json", "--for", "100ms", "--model", "a", "--model", "b") as process:
        told = json.loads(process.communicate(timeout=20)[0])
    assert process.returncode == 0
    assert (told["kind"], told["models"]) == ("mock", ["a", "b"])
    assert told["url"].startswith("http://127.0.0.1:")


@pytest.mark.parametrize(
    ("arguments", "slug"),
    [
        (["--fail", "burn:10%"], "mock_fault"),
        (["--aligned", "--gap", "0ms"], "mock_option"),
        (["--tls-key", __file__], "mock_option"),
        (["--tls-cert", __file__], "mock_certificate"),
        (["--truth", "/no/such/folder/file"], "file_unwritable"),
        (["--service", "que"], "mock_service"),
        (["--service", "/no/such/service.toml"], "file_unreadable"),
        (["--service", "queue", "--ttft", "1s"], "mock_option"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(arguments: list[str], slug: str) -> None:
    with nilo(*arguments) as process:
        out, said = process.communicate(timeout=20)
    assert process.returncode == 2
    assert out == b""
    assert said.count(b"\n") == 1
    assert f"({slug})" in said.decode()


def test_the_help_names_every_fault() -> None:
    with nilo("--help") as process:
        out = process.communicate(timeout=20)[0].decode()
    assert process.returncode == 0
    assert [kind for kind in FAULTS if kind not in out] == []


def test_the_services_that_are_ready_are_listed_in_both_languages() -> None:
    for lang, says in (("en", "nothing is wrong"), ("zh", "没有问题")):
        with nilo("--list-services", "--json", "--lang", lang) as process:
            told = json.loads(process.communicate(timeout=20)[0])
        assert process.returncode == 0
        assert told["services"][0] == {"name": "healthy", "says": says}
        assert "queue" in [one["name"] for one in told["services"]]


def test_a_service_of_a_file_is_played(tmp_path: Path) -> None:
    file = tmp_path / "slow.toml"
    file.write_text("[cost]\nfixed_ms = 20\n", "utf-8")
    with nilo("--service", str(file), "--json", "--truth", str(tmp_path / "truth")) as process:
        assert process.stdout is not None
        told = json.loads("".join(line.decode() for line in iter(process.stdout.readline, b"}\n")) + "}")
        messages = [{"role": "user", "content": "how high"}]
        status, _ = post(told["url"], {"model": "mock", "messages": messages, "max_tokens": 3})
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
    assert (status, told["service"]) == (200, str(file))
    (line,) = read_truth((tmp_path / "truth").read_bytes())
    assert (line.due_ns[0] - line.read_ns) / 1e6 == pytest.approx(60, abs=0.1)  # whole: due with its last token
