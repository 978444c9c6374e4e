"""The doctor's walk through real servers on 127.0.0.1: the mock, and small ones that do what the mock does not."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.loopback import speaking
from tests.loopback.replay import Replay
from tests.loopback.scripted import Scripted, certificate

from nilometer.core.spec import Http, Spec
from nilometer.engines.mock import IN_MEMORY, Hosting, launched
from nilometer.engines.mock_script import Script
from nilometer.experiment.check import Check
from nilometer.experiment.doctor_target import WALK, walk

Handler = http.server.BaseHTTPRequestHandler
Change = Callable[[Handler], bool]
"""Answers a request itself (True), or leaves it to the server behind."""


def walked(url: str, headers: tuple[tuple[str, str], ...] = (), **spec: Any) -> dict[str, Check]:
    checks = list(walk(Spec(target=url, **spec), headers, url, {}))
    assert [check.slug for check in checks if check.slug in WALK] == list(WALK)
    return {check.slug: check for check in checks}


def states(checks: dict[str, Check], *but: str) -> set[str]:
    return {check.state for slug, check in checks.items() if slug not in but}


@contextlib.contextmanager
def mock(**script: Any) -> Iterator[str]:
    with launched(Script(**{"ttft_ms": 20, "gap_ms": 5, **script})) as server:
        yield server.url


@contextlib.contextmanager
def before(url: str, change: Change) -> Iterator[str]:
    """A gateway before the server at `url`, which hands an answer on when it has the whole of it."""

    class Gateway(Handler):
        def do_POST(self) -> None:  # noqa: N802 - the library's name
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if change(self):
                return
            upstream = HTTPConnection(url.removeprefix("http://"))
            upstream.request(self.command, self.path, body or None, {"Content-Type": "application/json"})
            response = upstream.getresponse()
            data = response.read()
            upstream.close()
            reply(self, response.status, data, response.headers.get("Content-Type", "application/json"))

        do_GET = do_POST  # noqa: N815

        def log_message(self, *_: object) -> None:
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Gateway)
    server.daemon_threads = True
    serving = threading.Thread(target=server.serve_forever, args=(0.05,))
    serving.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        serving.join()
        server.server_close()


def reply(handler: Handler, status: int, data: bytes, kind: str = "application/json") -> None:
    handler.send_response(status)
    handler.send_header("Content-Type", kind)
    handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data)


def test_a_healthy_server_is_walked_through_with_few_requests() -> None:
    with mock(stop_after=(3, 3)) as url:
        seen: list[str] = []

        def watch(handler: Handler) -> bool:
            seen.append(handler.path)
            return False

        assert states(walked(f"{url}/v1"), "proxy_variables", "tls") == {"ok"}
        with before(url, watch) as gate:
            checks = walked(gate)
    assert checks["base_url"].value == f"{gate}/v1/chat/completions"
    assert (checks["model_list"].value, checks["template"].value, checks["replicas"].value) == (1, 5, 8)
    assert checks["length_fields"].value == "ignore_eos, min_tokens"
    assert len(seen) <= 24


def test_a_server_without_a_tokenizer_is_asked_hardly_more() -> None:
    seen: list[str] = []

    def watch(handler: Handler) -> bool:
        seen.append(handler.path)
        return False

    with mock(tokenize=False, template_tokens=7) as url, before(url, watch) as gate:
        assert walked(gate)["template"].value == 7
    assert len(seen) <= 30


def test_a_server_that_hangs_is_left_when_patience_ends() -> None:
    with mock(ttft_ms=5_000) as url:
        checks = {check.slug: check for check in walk(Spec(target=url), (), url, {}, patience_s=0.2)}
    assert [slug for slug, check in checks.items() if check.state == "fail"] == ["request"]
    assert (checks["request"].error, checks["request"].params["seconds"]) == ("timeout", 0.2)


def test_a_missing_key_is_one_failed_check_and_the_others_are_skipped() -> None:
    with mock(api_key="secret") as url:
        checks = walked(url)
        refused = walked(url, (("Authorization", "Bearer other"),))
        let_in = walked(url, (("Authorization", "Bearer secret"),))
    assert [slug for slug, check in checks.items() if check.state == "fail"] == ["auth"]
    assert checks["auth"].error == "unauthorised"
    assert (checks["address"].state, checks["request"].state) == ("ok", "skipped")
    assert (refused["auth"].error, let_in["auth"].value) == ("key_refused", "key")


def test_a_server_without_a_model_list_is_walked_through_all_the_same() -> None:
    def listless(handler: Handler) -> bool:
        if handler.path.endswith("/models"):
            reply(handler, 404, b"{}")
            return True
        return False

    with mock(any_model=True) as url, before(url, listless) as gate:
        named = walked(gate, model="m")
        unnamed = walked(gate)
    assert (named["model_list"].state, named["request"].state) == ("ok", "ok")
    assert (unnamed["model_list"].state, unnamed["model_list"].said) == ("ok", "unneeded")
    assert unnamed["request"].params["model"] is not None


def test_a_stream_that_is_held_back_is_told() -> None:
    with mock(ttft_ms=20, gap_ms=20) as url, before(url, lambda _: False) as gate:
        assert walked(url)["stream"].state == "ok"
        held = walked(gate)["stream"]
    assert (held.state, held.error) == ("warn", None)


def test_a_slow_server_is_walked_through() -> None:
    with mock(ttft_ms=900, gap_ms=30) as url:
        checks = walked(url)
    assert checks["request"].state == checks["stream"].state == "ok"
    assert float(checks["stream"].value or 0) > 850
    assert checks["length_fields"].said == "together"  # not tried one by one


@pytest.mark.parametrize(
    ("speak", "address", "spec", "said"),
    [
        (speaking.ollama, "", {}, (None, None, "output_length_unheld", None)),
        (speaking.tgi, "", {}, (None, None, "output_length_unheld", None)),
        (speaking.gemini, "/v1beta", {"api": "gemini", "model": "reed"}, ("named", None, "output_length_unheld", None)),
        (speaking.anthropic, "", {"api": "anthropic"}, (None, None, "length_fields_refused", None)),
        (speaking.responses, "", {"api": "responses", "model": "reed"}, ("named", None, "length_fields_refused", None)),
        (
            speaking.azure,
            "/openai/deployments/reed?api-version=2024-10-21",
            {},
            ("unneeded", None, "length_fields_refused", None),
        ),
        (speaking.encoder, "", {"api": "embeddings"}, ("unneeded", "encoded", None, "bare")),
        (speaking.encoder, "", {"api": "rerank"}, ("unneeded", "encoded", None, "bare")),
    ],
)
def test_each_api_is_walked_through(
    speak: speaking.Speak, address: str, spec: dict[str, Any], said: tuple[str | None, ...]
) -> None:
    with Replay(speaking.speaker(speak)) as server:
        checks = walked(server.url + address, **spec)
    assert "fail" not in states(checks)
    assert states(checks, "length_fields") <= {"ok", "skipped"}
    assert (
        checks["model_list"].said,
        checks["request"].said,
        checks["length_fields"].finding,
        checks["template"].said,
    ) == said
    assert spec.get("api") == "rerank" or checks["request"].params["model"]


def test_nobody_there() -> None:
    with Scripted(lambda _: None) as gone:
        url = gone.url
    checks = walked(url)
    assert (checks["address"].state, checks["address"].error) == ("fail", "connect_refused")
    assert states(checks, "address") == {"skipped"}


def test_tls_is_told_and_a_certificate_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = certificate(tmp_path)
    script = Script(ttft_ms=0, gap_ms=0)
    hosting = Hosting(truth=IN_MEMORY, certificate=str(made.certificate), key=str(made.key))
    with launched(script, hosting) as server:
        refused = walked(server.url)
        unchecked = walked(server.url, http=Http(insecure=True))
        monkeypatch.setenv("SSL_CERT_FILE", str(made.certificate))
        checked = walked(server.url)
    assert (refused["tls"].state, refused["tls"].error) == ("fail", "certificate_refused")
    assert refused["address"].state == "ok"
    assert unchecked["tls"].said == "unchecked"
    assert (checked["tls"].state, checked["tls"].params["name"], checked["tls"].params["days"]) == (
        "warn",
        "localhost",
        1,
    )


@pytest.mark.parametrize(
    ("status", "body"),
    [(503, b"{}"), (404, b"{}"), (200, b'{"data": [{"id": "other"}]}')],
)
def test_a_replica_that_is_not_ready_is_told(status: int, body: bytes) -> None:
    """Two replicas behind one address, taken in turn; the second takes part once the first words are said."""
    lists = count()

    def in_turn(handler: Handler) -> bool:
        if not handler.path.endswith("/models"):
            return False
        if next(lists) % 2 == 0:
            return False
        reply(handler, status, body)
        return True

    with mock() as url, before(url, in_turn) as gate:
        check = walked(gate)["replicas"]
    assert (check.state, check.value, check.params["n"]) == ("warn", 4, 8)


def test_each_address_of_a_name_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name stands for two addresses: at one the server, at the other nobody."""
    import socket

    looked_up = socket.getaddrinfo

    def two(host: str, port: int, *more: Any, **named: Any) -> list[Any]:
        if host != "replicas.test":
            return looked_up(host, port, *more, **named)
        return [looked_up(address, port, *more, **named)[0] for address in ("127.0.0.1", "127.0.0.2")]

    with mock() as url:
        monkeypatch.setattr(socket, "getaddrinfo", two)
        checks = walked(url.replace("127.0.0.1", "replicas.test"))
    assert checks["address"].params["n"] == 2
    assert (checks["replicas"].state, checks["replicas"].params["where"]) == ("warn", "127.0.0.2")
    assert checks["replicas"].params["came"] == "connect_refused"


def nilo(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "XDG_DATA_HOME": str(folder), "XDG_CACHE_HOME": str(folder), "NILO_LANG": "en"}
    command = [sys.executable, "-m", "nilometer", "doctor", *words]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=90, check=False)


def test_the_command_takes_a_file_and_stays_within_its_time(tmp_path: Path) -> None:
    with mock() as url:
        file = tmp_path / "spec.toml"
        file.write_text(f'target = "{url}"\n[load]\nconcurrency = 1\n')
        start_s = time.monotonic()
        done = nilo(tmp_path, str(file), "--json")
        took_s = time.monotonic() - start_s
    checks = json.loads(done.stdout)["checks"]
    assert (done.returncode, took_s < 20) == (0, True), done.stderr
    assert [check["slug"] for check in checks][-len(WALK) :] == list(WALK)
    assert all(set(check) == {"slug", "state", "value", "fix"} for check in checks)


def test_an_engine_that_is_not_prepared_is_a_failed_check_with_its_fix(tmp_path: Path) -> None:
    done = nilo(tmp_path, "embedded", "--json")
    last = json.loads(done.stdout)["checks"][-1]
    assert (done.returncode, last["slug"], last["state"]) == (3, "engine", "fail")
    assert "nilo engine prepare" in last["fix"]
    assert not list(tmp_path.rglob("*.gguf"))


@pytest.mark.parametrize(
    ("words", "slug"),
    [
        (("nothing",), "target_unknown"),
        (("http://127.0.0.1:9", "--api", "odd"), "api_unknown"),
        (("{file}",), "lengths"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_looked_at(
    tmp_path: Path, words: tuple[str, ...], slug: str
) -> None:
    file = tmp_path / "spec.toml"
    file.write_text('target = "http://127.0.0.1:9"\n[prompts]\ninput_tokens = "odd"\n')
    done = nilo(tmp_path, *(word.format(file=file) for word in words), "--json")
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert f"({slug}" in done.stderr
