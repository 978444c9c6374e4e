"""A canary in every place where a secret may stand, and a server that sends all it is sent back: no output holds it."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
from tests.loopback.scripted import Scripted, take_request
from tests.loopback.test_measure import Env, env, nilo

__all__ = ["env"]

QUICK = ("--warmup", "0", "--duration", "1s", "--model", "m", "--input-tokens", "16", "--output-tokens", "4")
BODY = json.dumps({"api_key": "canary-body", "nested": {"password": "canary-nested"}})


def echoing(how: str) -> Scripted:
    """Answers with the head and the body of the request, as an error of this kind."""

    def handle(sock: socket.socket) -> None:
        while request := take_request(sock):
            head, _, body = request.partition(b"\r\n\r\n")
            said = head.decode("latin-1") + " " + body.decode("latin-1")[-400:]
            sock.sendall(answer(how, said))

    return Scripted(handle)


def answer(how: str, said: str) -> bytes:
    error = json.dumps({"error": {"message": said}}).encode()
    reply = {
        "401": (b"401 Unauthorized", b"application/json", error),
        "500": (b"500 Oops", b"text/plain", said.encode()),
        "html": (b"200 OK", b"text/html", b"<html>" + said.encode()),
        "stream": (b"200 OK", b"text/event-stream", b"data: " + error + b"\n\ndata: [DONE]\n\n"),
        "ok": (b"200 OK", b"text/event-stream", streamed(said)),
    }[how]
    status, kind, body = reply
    lines = [b"HTTP/1.1 " + status, b"Content-Type: " + kind, b"Content-Length: %d" % len(body)]
    lines.append(b"X-Request-Id: " + said.replace("\r\n", " ")[:900].encode("latin-1"))
    return b"\r\n".join([*lines, b"", body])


def streamed(said: str) -> bytes:
    """A good answer that says it all in its text and its finish reason."""
    frames = [
        {"choices": [{"index": 0, "delta": {"content": said}}]},
        {"choices": [{"index": 0, "delta": {"reasoning_content": said}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": said}], "timings": {"said": said, "n": 1}},
    ]
    return b"".join(b"data: " + json.dumps(frame).encode() + b"\n\n" for frame in frames) + b"data: [DONE]\n\n"


@pytest.mark.parametrize("probe", [(), ("--no-probe",)])
@pytest.mark.parametrize("how", ["401", "500", "html", "stream", "ok"])
def test_what_is_sent_back_is_not_kept(how: str, probe: tuple[str, ...], env: Env, tmp_path: Path) -> None:
    env["CANARY_KEY"] = "canary-key"
    records = tmp_path / "r.jsonl"
    with echoing(how) as server:
        url = server.url.replace("//", "//user:canary-password@") + "?api_key=canary-query&v=1"
        options = (
            "--header", "X-Secret: canary-header", "--header", "X-Basic: Basic dXNlcjpjYW5hcnktYmFzaWM=",
            "--api-key-env", "CANARY_KEY", "--extra-body", BODY, "--label", "api_key=canary-label", "--keep-text",
        )  # fmt: skip
        done = nilo(env, "measure", url, *QUICK, *probe, *options, "--records", str(records), "--json")
        shown = [nilo(env, "runs", "show", "latest", *more) for more in ((), ("--errors",), ("--errors", "--json"))]
        doctor = nilo(env, "doctor", url, *options[:8]) if how == "401" and not probe else None
    assert done.returncode in (3, 4, 5), done.stderr
    told = [done.stdout, done.stderr, *(out for each in shown for out in (each.stdout, each.stderr))]
    told += [doctor.stdout, doctor.stderr] if doctor else []
    told += [records.read_text()] if records.exists() else []
    assert [text for text in told if leaks(text)] == []
    kept = {path: path.read_bytes().decode("latin-1") for path in (tmp_path / "data").rglob("*") if path.is_file()}
    assert [path for path, text in kept.items() if leaks(text)] == []
    if probe:
        assert "***" in done.stdout, "the run is there, and what was sent back with it"
        assert any("latest" not in each.stderr for each in shown)


def leaks(text: str) -> bool:
    return "canary" in text.lower().replace("canary_key", "") or "dXNlcjpjYW5hcnk" in text


def test_a_proxy_that_sends_its_credentials_back(env: Env, tmp_path: Path) -> None:
    with echoing("500") as proxy:
        through = proxy.url.replace("//", "//user:canary-proxy@")
        for probe in ((), ("--no-probe",)):
            done = nilo(env, "measure", "http://model.test:80", *QUICK, *probe, "--proxy", through, "--json")
            assert done.returncode in (3, 4), done.stderr
            assert not leaks(done.stdout + done.stderr)
    kept = [path.read_bytes().decode("latin-1") for path in (tmp_path / "data").rglob("*") if path.is_file()]
    assert kept
    assert not any(map(leaks, kept))


@pytest.mark.parametrize(
    ("option", "value"),
    [("--extra-body", '{"api_key": "canary-again"}'), ("--proxy", "http://u:canary-again@127.0.0.1:9")],
)
def test_what_was_never_stored_is_asked_for_again(option: str, value: str, env: Env) -> None:
    with echoing("stream") as server:
        via = value.replace("127.0.0.1:9", f"127.0.0.1:{server.port}")
        first = nilo(env, "measure", server.url, *QUICK, "--no-probe", option, via)
        assert first.returncode == 4, first.stderr
        again = nilo(env, "measure", "--like", "latest")
        assert again.returncode == 2
        assert "value_masked" in again.stderr
        assert option in again.stderr
        assert nilo(env, "measure", "--like", "latest", option, via).returncode == 4
