"""The mock server on a real socket: what a plain client sees agrees with the truth it logs."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from nilometer.core.errors import EngineError, SpecError
from nilometer.engines.mock import Hosting, Mock, launched, serve
from nilometer.engines.mock_script import Fault, Script
from nilometer.engines.mock_truth import TruthLine, read_truth

NS_PER_MS = 1_000_000


class Client:
    """A plain blocking client that stamps each read. No parser of the product is used."""

    def __init__(self, mock: Mock, context: ssl.SSLContext | None = None) -> None:
        parts = urlsplit(mock.url)
        raw = socket.create_connection((parts.hostname or "", parts.port or 0), timeout=20)
        self._socket = raw if context is None else context.wrap_socket(raw, server_hostname="localhost")
        self.reads: list[tuple[int, bytes]] = []

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, body: dict[str, Any], path: str = "/v1/chat/completions", headers: str = "") -> int:
        """Send one request; the ns just before."""
        data = json.dumps(body).encode()
        sent_ns = time.monotonic_ns()
        self._socket.sendall(
            f"POST {path} HTTP/1.1\r\nhost: x\r\n{headers}content-length: {len(data)}\r\n\r\n".encode() + data
        )
        return sent_ns

    def keep_buffer_small(self) -> None:
        """Let the kernel hold little for this client, so that a writer soon has to wait."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)

    def read_to_end(self) -> bytes:
        """Until the end of a chunked body or of the connection."""
        self.reads = []
        data = bytearray()
        while not data.endswith(b"\r\n0\r\n\r\n"):
            piece = self._socket.recv(1 << 16)
            if not piece:
                break
            self.reads.append((time.monotonic_ns(), piece))
            data += piece
        return bytes(data)

    def read_some(self, timeout_s: float) -> bytes:
        """What comes within the time."""
        deadline, data = time.monotonic() + timeout_s, b""
        with contextlib.suppress(TimeoutError):
            while (left_s := deadline - time.monotonic()) > 0:
                self._socket.settimeout(left_s)
                piece = self._socket.recv(1 << 16)
                if not piece:
                    break
                data += piece
        self._socket.settimeout(20)
        return data


def asked(tokens: int, stream: bool = True) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": "how high"}], "max_tokens": tokens, "stream": stream}


def content_reads(client: Client) -> list[int]:
    return [ns for ns, piece in client.reads if b'"content":"' in piece and b'"content":""' not in piece]


@contextlib.contextmanager
def one_answer(script: Script, tokens: int = 5, **more: Any) -> Iterator[tuple[bytes, TruthLine, Client, int]]:
    with launched(script) as mock, Client(mock) as client:
        sent_ns = client.send(asked(tokens) | more)
        data = client.read_to_end()
        (line,) = mock.truth()
        yield data, line, client, sent_ns


def test_truth_lies_between_what_the_client_did_and_saw() -> None:
    with one_answer(Script(ttft_ms=40, gap_ms=15)) as (_, line, client, sent_ns):
        seen = content_reads(client)
        assert sent_ns <= line.read_ns
        assert [tokens for _, tokens in line.writes] == [1] * 5
        for (write_ns, _), seen_ns in zip(line.writes, seen, strict=True):
            assert write_ns <= seen_ns
        assert line.end_ns is not None
        assert line.writes[-1][0] <= line.end_ns <= client.reads[-1][0]


def test_tokens_are_written_at_the_scripted_times_or_later() -> None:
    with one_answer(Script(ttft_ms=40, gap_ms=15, prefill_ms_per_token=2, template_tokens=3)) as (_, line, _, _):
        late_ms = [
            (ns - line.read_ns) / NS_PER_MS - (40 + 2 * 5 + 15 * number) for number, (ns, _) in enumerate(line.writes)
        ]
        assert line.prompt_tokens == 5
        assert min(late_ms) >= 0
        assert sorted(late_ms)[2] < 15  # loose: the machine may be busy


def test_the_role_frame_is_no_token_of_the_truth() -> None:
    with one_answer(Script(ttft_ms=60, gap_ms=5, role_lead_ms=40)) as (data, line, _, _):
        assert data.count(b'"role":"assistant"') == 1
        assert line.head_ns is not None
        assert line.head_ns < line.writes[0][0]
        assert line.writes[0][0] - line.read_ns >= 60 * NS_PER_MS


EXPECTED = {
    "http_400": (b"HTTP/1.1 400 ", "error", "http_4xx"),
    "http_429": (b"HTTP/1.1 429 ", "error", "http_429"),
    "http_500": (b"HTTP/1.1 500 ", "error", "http_5xx"),
    "http_503": (b"HTTP/1.1 503 ", "error", "http_5xx"),
    "html200": (b"<!DOCTYPE html>", "error", "not_a_model_answer"),
    "noise": (b"\x80\x81\x82", "error", "malformed"),
    "stream_error": (b'"message":"scripted stream_error"', "error", "stream_error"),
    "garbage": (b'{"id":"mock, ', "error", "malformed"),
}


@pytest.mark.parametrize("kind", EXPECTED)
def test_each_answered_fault_is_what_it_says(kind: str) -> None:
    script = Script(ttft_ms=5, gap_ms=2, faults=[Fault(kind, 1.0, 3)])
    with launched(script) as mock, Client(mock) as client:
        client.send(asked(8), headers="connection: close\r\n")
        data = client.read_to_end()
        (line,) = mock.truth()
    marker, outcome, error = EXPECTED[kind]
    assert marker in data
    assert (line.meant, line.outcome, line.error) == (kind, outcome, error)
    assert line.output_tokens == (3 if kind in ("stream_error", "garbage") else 0)
    assert (b"retry-after: 3" in data) == (kind == "http_429")


def test_a_client_of_http_1_0_reads_to_the_end_of_the_connection() -> None:
    with launched(Script(ttft_ms=5, gap_ms=2)) as mock:
        parts = urlsplit(mock.url)
        body = json.dumps(asked(4)).encode()
        with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=10) as client:
            client.sendall(b"POST /v1/chat/completions HTTP/1.0\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
            data = b"".join(iter(lambda: client.recv(1 << 16), b""))
    head, _, rest = data.partition(b"\r\n\r\n")
    assert b"transfer-encoding" not in head
    assert b"connection: close" in head
    events = rest.decode().strip().split("\n\n")
    assert all(event.startswith("data: ") for event in events)
    assert events[-1] == "data: [DONE]"
    assert len(events) == 4 + 2


def test_a_dropped_request_gets_no_byte() -> None:
    with one_answer(Script(ttft_ms=5, faults=[Fault("drop", 1.0, 0)])) as (data, line, _, _):
        assert data == b""
        assert (line.meant, line.outcome, line.head_ns) == ("drop", "incomplete", None)


def test_a_cut_stream_ends_after_its_tokens_without_an_end() -> None:
    with one_answer(Script(ttft_ms=5, gap_ms=2, faults=[Fault("cut", 1.0, 3)]), 8) as (data, line, client, _):
        assert len(content_reads(client)) == 3
        assert b"[DONE]" not in data
        assert not data.endswith(b"0\r\n\r\n")
        assert (line.meant, line.outcome, line.output_tokens) == ("cut", "incomplete", 3)


@pytest.mark.parametrize(("kind", "frames"), [("stall", 3), ("mute", 0)])
def test_a_silent_stream_stays_open_until_the_client_leaves(kind: str, frames: int) -> None:
    with launched(Script(ttft_ms=5, gap_ms=2, faults=[Fault(kind, 1.0, 3)])) as mock:
        with Client(mock) as client:
            client.send(asked(8))
            data = client.read_some(0.4)
            assert data.count(b'"content":"') == frames
            assert bool(data) == (kind == "stall")
            assert mock.truth() == []
        for _ in range(200):
            if mock.truth():
                break
            time.sleep(0.01)
        (line,) = mock.truth()
    assert line.left_ns is not None
    assert line.end_ns is None


def test_slots_queue_in_order_of_arrival() -> None:
    with launched(Script(ttft_ms=30, gap_ms=10, slots=1)) as mock:
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(Client(mock)) for _ in range(3)]
            for client in clients:
                client.send(asked(3))
                time.sleep(0.005)
            for client in clients:
                client.read_to_end()
        lines = mock.truth()
    assert [line.n for line in lines] == [1, 2, 3]
    for before, after in itertools.pairwise(lines):
        assert after.start_ns is not None
        assert before.end_ns is not None
        assert after.start_ns >= before.end_ns
        assert after.read_ns < after.start_ns
        assert after.writes[0][0] >= after.start_ns + 30 * NS_PER_MS


def test_a_client_that_leaves_the_queue_frees_its_place() -> None:
    with launched(Script(ttft_ms=30, gap_ms=10, slots=1)) as mock:
        with Client(mock) as first, Client(mock) as third:
            first.send(asked(5))
            with Client(mock) as second:
                second.send(asked(3))
                time.sleep(0.01)
            third.send(asked(2))
            first.read_to_end()
            assert len(content_reads(first)) == 5
            third.read_to_end()
            assert len(content_reads(third)) == 2
        left = [line for line in mock.truth() if line.left_ns is not None]
    assert [line.start_ns for line in left] == [None]


@pytest.mark.parametrize("stream", [True, False])
def test_decoding_slows_down_with_every_other_stream_in_service(stream: bool) -> None:
    """Three at once, 10 ms a token and 10 more for each other: 30 ms a token, whether streamed or not."""
    with launched(Script(ttft_ms=30, gap_ms=10, gap_ms_per_stream=10)) as mock, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Client(mock)) for _ in range(3)]
        for client in clients:
            client.send(asked(5, stream=stream), headers="connection: close\r\n")
        for client in clients:
            client.read_to_end()
        lines = mock.truth()
    for line in lines:
        assert line.start_ns is not None
        took_ms = (line.writes[-1][0] - line.start_ns) / NS_PER_MS
        assert 30 + 4 * 30 - 15 < took_ms < 30 + 4 * 30 + 15  # the first was alone for a moment; 10 ms a gap: 70


def test_aligned_streams_write_their_tokens_on_one_grid() -> None:
    gap_ns = 20 * NS_PER_MS
    with launched(Script(ttft_ms=30, gap_ms=20, aligned=True)) as mock:
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(Client(mock)) for _ in range(4)]
            for client in clients:
                client.send(asked(6))
                time.sleep(0.006)
            for client in clients:
                client.read_to_end()
        lines = mock.truth()
    for line in lines:
        points = [ns // gap_ns for ns, _ in line.writes]
        assert points == list(range(points[0], points[0] + 6))
        assert points[0] * gap_ns >= line.read_ns + 30 * NS_PER_MS
    late_ms = sorted((ns % gap_ns) / NS_PER_MS for line in lines for ns, _ in line.writes)
    assert late_ms[len(late_ms) // 2] < 8  # loose: spread over the whole gap it would be 10


def outcomes(seed: int) -> tuple[list[tuple[str, int]], list[bytes]]:
    faults = [Fault("http_500", 0.3, 0), Fault("stream_error", 0.3, 2)]
    script = Script(ttft_ms=1, gap_ms=0, faults=faults, stop_after=(2, 9), seed=seed)
    bodies = []
    with launched(script) as mock:
        for _ in range(30):
            with Client(mock) as client:
                client.send(asked(8), headers="connection: close\r\n")
                bodies.append(client.read_to_end())
        lines = mock.truth()
    return [(line.meant, line.output_tokens) for line in lines], bodies


def test_the_same_seed_repeats_every_byte_and_another_does_not() -> None:
    first, second = outcomes(5), outcomes(5)
    assert first == second
    assert {meant for meant, _ in first[0]} == {"ok", "http_500", "stream_error"}
    assert outcomes(6)[0] != first[0]


def test_probes_are_answered() -> None:
    with launched(Script(models=("river", "delta"), api_key="sesame")) as mock:
        parts = urlsplit(mock.url)
        client = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=10)

        def fetch(method: str, path: str, body: Any = None, key: str = "sesame") -> tuple[int, Any]:
            headers = {"Authorization": f"Bearer {key}"}
            client.request(method, path, None if body is None else json.dumps(body), headers)
            answer = client.getresponse()
            return answer.status, json.loads(answer.read())

        status, models = fetch("GET", "/v1/models")
        assert (status, [row["id"] for row in models["data"]]) == (200, ["river", "delta"])
        assert fetch("GET", "/health")[0] == 200
        assert len(fetch("POST", "/tokenize", {"content": "a b c"})[1]["tokens"]) == 3
        assert fetch("GET", "/v1/models", key="wrong")[0] == 401
        assert fetch("POST", "/chat/completions", asked(1))[0] == 404
        assert fetch("GET", "/v1/chat/completions")[0] == 405
        status, told = fetch("POST", "/v1/chat/completions", asked(1) | {"model": "nile"})
        assert status == 404
        assert "river, delta" in told["error"]["message"]
        assert fetch("POST", "/v1/chat/completions", {"model": "river"})[0] == 400
        status, told = fetch("POST", "/v1/completions", {"prompt": "x", "model": "delta", "max_tokens": 2})
        assert (status, told["model"], told["usage"]["completion_tokens"]) == (200, "delta", 2)
        client.close()


def test_switches_refuse_what_they_say() -> None:
    with launched(Script(refuse_stream_options=True, tokenize=False, any_model=True, ttft_ms=0)) as mock:
        with Client(mock) as client:
            client.send(asked(1) | {"stream_options": {"include_usage": True}}, headers="connection: close\r\n")
            assert client.read_to_end().startswith(b"HTTP/1.1 400 ")
        with Client(mock) as client:
            client.send({"content": "x"}, path="/tokenize", headers="connection: close\r\n")
            assert client.read_to_end().startswith(b"HTTP/1.1 404 ")
        with Client(mock) as client:
            client.send(asked(1) | {"model": "whatever"})
            assert b'"model":"whatever"' in client.read_to_end()
        assert [(line.meant, line.status) for line in mock.truth()] == [("refused", 400), ("ok", 200)]


def test_nonsense_on_the_wire_is_refused_and_the_server_lives_on() -> None:
    with launched(Script(ttft_ms=0)) as mock:
        parts = urlsplit(mock.url)
        with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=10) as raw:
            raw.sendall(b"\x16\x03\x01nonsense\r\n\r\n")
            assert raw.recv(1000).startswith(b"HTTP/1.1 400 ")
        with Client(mock) as client:
            client.send(asked(2))
            assert b"[DONE]" in client.read_to_end()


def test_pipelined_requests_are_answered_one_after_the_other() -> None:
    with launched(Script(ttft_ms=20, gap_ms=5)) as mock, Client(mock) as client:
        client.send(asked(2))
        client.send(asked(2))
        told = b""
        while told.count(b"\r\n0\r\n\r\n") < 2:  # the second head may come in the read that ends the first answer
            told += client.read_to_end() if not told else client.read_some(1.0)
        first, _, second = told.partition(b"\r\n0\r\n\r\n")
        assert b'"id":"mock-1"' in first
        assert b'"id":"mock-2"' in second
        before, after = mock.truth()
        assert before.end_ns is not None
        assert after.writes[0][0] > before.end_ns
        assert before.connection == after.connection


def test_the_null_server_sends_as_many_tokens_as_asked_and_waits_for_a_slow_reader() -> None:
    with launched(Script(null=True)) as mock, Client(mock) as client:
        client.keep_buffer_small()
        client.send(asked(40_000))
        time.sleep(0.7)  # the kernel's buffers fill up
        data = client.read_to_end()
        assert data.count(b'"content":"') == 40_000
        (line,) = mock.truth()
        assert line.output_tokens == 40_000
        assert line.blocked > 0


def test_truth_can_be_cleared_and_is_refused_where_none_is_kept() -> None:
    with launched(Script(ttft_ms=0)) as mock:
        with Client(mock) as client:
            client.send(asked(1))
            client.read_to_end()
        assert len(mock.truth()) == 1
        mock.clear_truth()
        assert mock.truth() == []
    with launched(Script(), Hosting()) as mock, Client(mock) as client:
        client.send({}, path="/v1/nothing", headers="connection: close\r\n")
        assert client.read_to_end().startswith(b"HTTP/1.1 404 ")


def test_a_mock_that_cannot_start_says_why_in_its_parent(capfd: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(EngineError) as caught, launched(Script(models=("m",)), Hosting(port=port)):
            pass
    assert (caught.value.slug, caught.value.params["port"]) == ("mock_port", port)
    assert capfd.readouterr() == ("", "")


def test_tls_carries_the_same_stream() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with launched(Script(ttft_ms=20, gap_ms=5), Hosting(tls=True, truth="-")) as mock:
        assert mock.url.startswith("https://")
        with Client(mock, context) as client:
            client.send(asked(4))
            data = client.read_to_end()
        assert data.count(b'"content":"') == 4
        assert [line.output_tokens for line in mock.truth()] == [4]


def test_what_is_no_tls_is_closed_at_once(capfd: pytest.CaptureFixture[str]) -> None:
    with launched(Script(ttft_ms=20, gap_ms=5), Hosting(tls=True, truth="-")) as mock, Client(mock) as client:
        client.send(asked(4))
        assert client.read_to_end() == b""
    assert "Traceback" not in capfd.readouterr().err


def test_the_truth_file_is_written_at_the_end_with_what_was_unfinished(tmp_path: Path) -> None:
    file = tmp_path / "truth.jsonl"
    with launched(Script(ttft_ms=5, gap_ms=2), Hosting(truth=str(file))) as mock:
        with Client(mock) as client:
            client.send(asked(2))
            client.read_to_end()
            client.send(asked(100_000))
            client.read_some(0.05)
            os.kill(mock.pid, signal.SIGTERM)
            client.read_to_end()
        assert mock.pid > 0
    first, second = read_truth(file.read_bytes())
    assert (first.output_tokens, first.left_ns) == (2, None)
    assert second.end_ns is None
    assert second.output_tokens > 0


def test_bounds_end_the_server(tmp_path: Path) -> None:
    file = tmp_path / "truth.jsonl"
    with launched(Script(ttft_ms=0, gap_ms=0), Hosting(truth=str(file), requests_limit=2)) as mock:
        for _ in range(2):
            with Client(mock) as client:
                client.send(asked(1))
                client.read_to_end()
        for _ in range(500):
            if file.stat().st_size:
                break
            time.sleep(0.01)
    assert len(read_truth(file.read_bytes())) == 2
    started = time.monotonic()
    thread_urls: list[str] = []
    assert serve(Script(), Hosting(for_s=0.1), thread_urls.append) == 0
    assert time.monotonic() - started >= 0.1
    assert thread_urls[0].startswith("http://127.0.0.1:")


def test_an_unwritable_truth_file_is_refused_before_anything_is_served(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as refused:
        serve(Script(), Hosting(truth=str(tmp_path / "no" / "such")), pytest.fail)
    assert refused.value.slug == "file_unwritable"


def test_the_child_ends_when_its_parent_is_killed() -> None:
    code = (
        "import time\nfrom nilometer.engines.mock import launched\nfrom nilometer.engines.mock_script import Script\n"
        "with launched(Script()) as mock:\n    print(mock.pid, flush=True)\n    time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.kill()
    for _ in range(500):
        try:
            state = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
        except OSError:
            return
        if state == "Z":
            return
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    pytest.fail("the mock outlived its parent")


def test_many_clients_at_once_get_their_own_tokens() -> None:
    with launched(Script(ttft_ms=20, gap_ms=4, tokens_per_frame=3)) as mock:
        frames: dict[str, int] = {}

        def run(number: int) -> None:
            with Client(mock) as client:
                for tokens in (number + 1, number + 2):
                    name = f"c{number}-{tokens}"
                    client.send(asked(tokens), headers=f"x-request-id: {name}\r\n")
                    frames[name] = client.read_to_end().count(b'"content":"')

        threads = [threading.Thread(target=run, args=(number,)) for number in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        told = {line.client_id: line.output_tokens for line in mock.truth()}
    assert told == {f"c{number}-{tokens}": tokens for number in range(12) for tokens in (number + 1, number + 2)}
    assert frames == {name: -(-tokens // 3) for name, tokens in told.items()}
