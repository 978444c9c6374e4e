"""A canary in every place where a secret may stand, and servers that say back all they are told: nothing is leaked.

The servers tell windows of the request they got, head and body, so that each secret comes back whole, spelled in many
ways, and cut off in its middle.
"""

from __future__ import annotations

import html
import json
import os
import signal
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from socket import socket
from urllib.parse import quote

import pytest
from tests.loopback.scripted import Scripted, take_request

from nilometer.cli.session import error_line
from nilometer.core.errors import NiloError
from nilometer.core.mask import BEGUN_CHARS
from nilometer.core.spec import Http, Sampling, Spec
from nilometer.experiment.approach import approach
from nilometer.text.i18n import Catalogue

WINDOW_BYTES = 230
"""More than is kept of an error: a secret in its end is cut."""
PROXY = b64encode(b"gate:canary-proxy").decode()
USER = b64encode(b"user:canary/p&ss").decode()
LEAKS = ("canary", PROXY[:8], USER[:8])
BODY = {"user_token": 'canary "body"', "tools": [{"headers": {"authorization": "Bearer canary-tool"}}], "top_k": 4}
SECRETS = (
    *("--header", "X-Secret: canary-header", "--header", "Cookie: sid=canary-cookie"),
    *("--extra-body", json.dumps(BODY), "--label", "password=canary-label", "--label", "team=blue"),
)
LOAD = ("-c", "2", "--warmup", "0s", "--requests", "160", "--input-tokens", "8", "--output-tokens", "4")

Env = dict[str, str]
Way = Callable[[bytes], bytes]


@pytest.fixture
def env(tmp_path: Path) -> Env:
    return {
        **os.environ,
        **{f"XDG_{name}_HOME": str(tmp_path / name.lower()) for name in ("DATA", "STATE")},
        "LC_ALL": "C.UTF-8",
        "NILO_LANG": "en",
        "CANARY": "canary-key",
    }


def nilo(env: Env, *words: str) -> str:
    """All that the program told on both ways."""
    command = [sys.executable, "-m", "nilometer", *words]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


def leaks(text: str | bytes) -> list[str]:
    text = text.decode("latin-1") if isinstance(text, bytes) else text
    return [text[at : at + 60] for leak in LEAKS for at in [text.find(leak)] if at >= 0]


def leaks_in(folder: Path) -> dict[str, list[str]]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    return {path.name: found for path in files if (found := leaks(path.read_bytes()))}


def answer(status: str, kind: str, body: bytes, *head: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(body)}", *head]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def message(said: str) -> bytes:
    return json.dumps({"error": {"message": said}}).encode()


def stream(said: str) -> bytes:
    """A proper answer, whose names, reason and times are the request's, and its text whole lines of it."""
    lines = said.partition("\n")[2].rpartition("\n")[0] or "hm"
    choice = {"index": 0, "delta": {"content": lines}, "finish_reason": said}
    told = {"id": said, "model": said, "choices": [choice], "timings": {said: said}}
    return b"data: " + json.dumps(told).encode() + b"\n\ndata: [DONE]\n\n"


WAYS: tuple[Callable[[str], bytes], ...] = (
    lambda said: answer("401 Unauthorized", "application/json", message(said)),
    lambda said: answer("422 Bad", "application/json", message(quote(said))),
    lambda said: answer("500 Oops", "text/html", f"<h1>{html.escape(said)}</h1>".encode()),
    lambda said: answer("200 OK", "text/html", f"<html>{said}".encode()),
    lambda said: answer("200 OK", "application/json", message(said)),
    lambda said: answer("200 OK", "text/event-stream", b"event: error\ndata: " + message(said) + b"\n\n"),
    lambda said: answer("200 OK", "text/event-stream", stream(said), f"X-Request-Id: {' '.join(said.split())}"),
    lambda said: answer("400 Bad", "application/json", json.dumps({"detail": quote(said, safe="")}).encode()),
)


def windows(request: bytes) -> Iterator[str]:
    """Parts of a request, the secrets of its head and its body in each place of them."""
    said = request.decode("latin-1")
    for start in range(0, len(said), 23):
        yield said[start : start + WINDOW_BYTES]


class Echo:
    """Says back one window after the other, in one way after the other, or in the one that is given."""

    def __init__(self, *ways: Callable[[str], bytes]) -> None:
        self._ways = ways or WAYS
        self._said: list[str] = []
        self.asked = 0
        self.seen = b""

    def __call__(self, sock: socket) -> None:
        while request := take_request(sock):
            self.seen += request
            self._said = self._said or list(windows(request))
            sock.sendall(self._ways[self.asked % len(self._ways)](self._said.pop(0)))
            self.asked += 1


@pytest.fixture
def echo() -> Iterator[tuple[Echo, str]]:
    said_back = Echo()
    with Scripted(said_back) as server:
        yield said_back, server.url


def ways_to(url: str) -> list[tuple[str, ...]]:
    """The target with a key, and with a user of its own and a user of its proxy."""
    query = "?api_key=canary%2Fquery&version=2"
    proxy = url.replace("//", "//gate:canary-proxy@")
    named = url.replace("//", "//user:canary%2Fp%26ss@")
    return [(url + query, "--api-key-env", "CANARY"), (named + query, "--proxy", proxy)]


@pytest.mark.parametrize("way", [0, 1], ids=["key", "credentials"])
def test_a_server_that_says_back_all_it_is_told_gets_no_secret_into_what_is_kept(
    env: Env, tmp_path: Path, echo: tuple[Echo, str], way: int
) -> None:
    target = ways_to(echo[1])[way]
    kept = ("--keep-text", "--records", str(tmp_path / "data" / "r.jsonl"))
    (tmp_path / "data").mkdir()
    told = nilo(env, "measure", *target, *SECRETS, *LOAD, "--no-probe", *kept, "--json")
    for words in (("show", "latest", "--errors"), ("show", "latest", "--json"), ("list",)):
        told += nilo(env, "runs", *words)
    for form in ("html", "markdown", "csv", "json"):
        told += nilo(env, "report", "latest", "--format", form, "-o", "-")
    assert echo[0].asked >= 160
    sent = ("canary-header", "canary-cookie", r"canary \"body\"", "canary-tool", "canary%2Fquery")
    for secret in (*sent, *(("Bearer canary-key",) if way == 0 else (USER, PROXY))):
        assert secret.encode() in echo[0].seen  # what is stored is masked, not what is sent
    assert "***" in told
    assert '"top_k": 4' in told
    assert leaks(told) == []
    assert leaks_in(tmp_path) == {}


@pytest.mark.parametrize("way", [0, 1], ids=["key", "credentials"])
@pytest.mark.parametrize("reply", range(len(WAYS)))
def test_what_a_probe_meets_is_told_without_secrets(way: int, reply: int) -> None:
    told = ""
    said_back = Echo(WAYS[reply])
    with Scripted(said_back) as server:
        url = ways_to(server.url)[way][0]
        proxy = ways_to(server.url)[1][-1] if way else None
        spec = Spec(target=url, http=Http(proxy=proxy), sampling=Sampling(extra_body=BODY))
        headers = (("X-Secret", "canary-header"), *((("Authorization", "Bearer canary-key"),) if not way else ()))
        while said_back.asked < 60:
            try:
                found = approach(spec, headers, address=url, salt="")
                told += repr((found.spec, found.engine, found.model, found.findings))
            except NiloError as fault:
                told += error_line(Catalogue("en"), fault) + repr(fault)
    assert told
    assert leaks(told) == []


@pytest.mark.parametrize("before", range(0, 40, 3))
def test_a_proxy_that_opens_no_tunnel_tells_no_secret(before: int) -> None:
    def handle(sock: socket) -> None:
        head = take_request(sock).decode()
        said = head[head.index("Proxy-Authorization: ") :].partition("\r\n")[0]
        sock.sendall(f"HTTP/1.1 407 {'x' * before} {said}\r\n\r\n".encode())

    with Scripted(handle) as server:
        spec = Spec(target="https://127.0.0.1:1", http=Http(proxy=server.url.replace("//", "//gate:canary-proxy@")))
        with pytest.raises(NiloError) as refused:
            approach(spec, (), address=spec.target, salt="")
    assert refused.value.slug == "proxy_refused"
    assert PROXY[:BEGUN_CHARS] not in str(refused.value)


def test_what_the_doctor_meets_is_told_without_secrets(env: Env) -> None:
    (target, *more) = ways_to("http://127.0.0.1:1")[0]
    with Scripted(Echo(WAYS[0])) as server:
        target = target.replace("http://127.0.0.1:1", server.url)
        told = nilo(env, "doctor", target, *more, "--header", "X-Secret: canary-header")
    assert "api_key=***" in told
    assert leaks(told) == []


def test_a_finding_of_the_probe_holds_no_secret(env: Env, tmp_path: Path) -> None:
    """Chat is refused with the request's own words, the other API answers: a run with a finding, and with facts."""

    def handle(sock: socket) -> None:
        while request := take_request(sock):
            at = request.find(b"X-Secret")
            said = request[at : at + WINDOW_BYTES].decode("latin-1").replace("\r\n", " ")
            if b"/models" in request.partition(b"\r\n")[0]:
                listed = {"data": [{"id": "m", "owned_by": "vllm"}]}
                sock.sendall(answer("200 OK", "application/json", json.dumps(listed).encode(), f"Server: {said}"))
            elif b"/version" in request.partition(b"\r\n")[0]:
                sock.sendall(answer("200 OK", "application/json", json.dumps({"version": said * 20}).encode()))
            elif b"/chat/" in request.partition(b"\r\n")[0]:
                sock.sendall(answer("400 Bad", "application/json", message(said)))
            else:
                choice = {"index": 0, "text": "a", "finish_reason": "stop"}
                whole = json.dumps({"choices": [choice]}).encode()
                sock.sendall(answer("200 OK", "application/json", whole))

    with Scripted(handle) as server:
        words = (server.url, "--no-stream", *SECRETS, "--api-key-env", "CANARY", *LOAD)
        told = nilo(env, "measure", *words, "--json")
    run = json.loads(told[told.index("{") : told.rindex("}") + 1])
    assert "api_refused" in [finding["slug"] for finding in run["findings"]]
    assert run["spec"]["sampling"]["extra_body"] == {
        "user_token": "***",
        "tools": [{"headers": {"authorization": "***"}}],
        "top_k": 4,
    }
    assert run["spec"]["labels"]["extra"] == {"password": "***", "team": "blue"}
    engine = run["environment"]["engine"]
    assert "X-Secret: ***" in engine["server_header"]
    assert len(engine["version"]) <= 200
    assert leaks(told) == []
    assert leaks_in(tmp_path) == {}
    refused = nilo(env, "measure", "--like", "latest", "--header", "X-Secret: a", "--header", "Cookie: b")
    assert "--extra-body" in refused
    assert "value_masked" in refused


def test_the_journal_of_a_killed_run_holds_no_secret(env: Env, tmp_path: Path, echo: tuple[Echo, str]) -> None:
    said_back, url = echo
    endless = [word if word != "160" else "100000000" for word in LOAD]
    words = ("measure", *ways_to(url)[1], *SECRETS, *endless, "--no-probe", "--repeat", "2")
    running = subprocess.Popen(
        [sys.executable, "-m", "nilometer", *words], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    limit_s = time.monotonic() + 30
    journals = tmp_path / "data" / "nilometer" / "journals"
    while sum(path.stat().st_size for path in journals.glob("*")) < 50_000 and time.monotonic() < limit_s:
        time.sleep(0.02)
    running.send_signal(signal.SIGKILL)
    running.wait(20)
    assert said_back.asked > 160
    assert leaks_in(tmp_path) == {}
    while "filed" not in (told := nilo(env, "runs", "check")) and time.monotonic() < limit_s:
        time.sleep(0.2)
    assert leaks(told) == []
    assert leaks_in(tmp_path) == {}


ENGINE = """
import json, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
words = sys.argv[1:]
if words in (["--help"], ["--version"]):
    sys.exit()
if "--die" in words:
    print("bad:", *words, file=sys.stderr)
    sys.exit(3)
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    asked = 0
    def respond(self):
        length = int(self.headers.get("Content-Length") or 0)
        streamed = b'"stream":true' in self.rfile.read(length)
        said = "got " + str(self.headers["Authorization"])
        told = {"data": [{"id": "m"}], "usage": {"completion_tokens": 1}}
        body = json.dumps({"error": {"message": said}} if streamed else told).encode()
        self.send_response(500 if streamed else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    do_GET = do_POST = respond
    def log_message(self, *words): pass
ThreadingHTTPServer(("127.0.0.1", int(words[words.index("--port") + 1])), Handler).serve_forever()
"""


@pytest.fixture
def engine(tmp_path: Path) -> str:
    path = tmp_path / "llama-server"
    path.write_text(f"#!{sys.executable}\n{ENGINE}")
    path.chmod(0o755)
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    return f"{path}:-m {tmp_path / 'm.gguf'} --api-key canary-engine,canary-second --hf-token=canary-hf"


def test_the_flags_of_an_engine_are_kept_without_their_secrets(env: Env, tmp_path: Path, engine: str) -> None:
    env["XDG_CACHE_HOME"] = str(tmp_path / "cache")
    told = nilo(env, "measure", engine, *LOAD, "--no-probe", "--json")
    run = json.loads(told[told.index("{") : told.rindex("}") + 1])
    assert run["spec"]["target"].endswith("--api-key '***' '--hf-token=***'")
    assert {"--api-key", "***", "--hf-token=***"} <= set(run["environment"]["engine"]["flags"])
    assert run["run_requests"]["errors"]["http_5xx"] > 100
    told += nilo(env, "runs", "show", "latest", "--errors")
    assert "got Bearer ***" in told
    assert leaks(told) == []
    assert leaks_in(tmp_path / "data") == leaks_in(tmp_path / "state") == {}
    assert "TARGET" in nilo(env, "measure", "--like", "latest")


@pytest.mark.parametrize("command", ["measure", "engine start"])
def test_the_last_words_of_an_engine_are_told_without_secrets(
    env: Env, tmp_path: Path, engine: str, command: str
) -> None:
    env["XDG_CACHE_HOME"] = str(tmp_path / "cache")
    told = nilo(env, *command.split(), f"{engine} --die")
    assert "engine_died" in told
    assert "bad:" in told
    assert leaks(told) == []
