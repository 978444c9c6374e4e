"""Each fault of the mock by its name, requests too large for the buffers, and workers that lose what they live on."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from tests.loopback.driving import (
    MS,
    SHORT,
    S,
    calls,
    drive,
    drive_here,
    order,
    request,
    wait_until,
)
from tests.loopback.replay import Replay, Reply
from tests.loopback.scripted import Scripted, take_request

from nilometer.core.record import Call
from nilometer.engines.mock import launched
from nilometer.engines.mock_script import FAULTS, Fault, Script
from nilometer.experiment.conclude import conclude
from nilometer.load import journal
from nilometer.load.counters import Field
from nilometer.load.crew import Crew
from nilometer.load.order import Limits, Order

CHAT = (
    b'{"model":"mock","messages":[{"role":"user","content":"a b"}],'
    b'"stream":true,"stream_options":{"include_usage":true},"max_tokens":%d}'
)


def asks(n: int, tokens: int = 8) -> Iterator[Call]:
    """Chat requests that the mock understands."""
    for seq in range(n):
        yield Call(seq=seq, request=request("test", body=CHAT % tokens))


@pytest.mark.parametrize("kind", [kind for kind, fault in FAULTS.items() if fault.outcome is not None])
def test_each_fault_of_the_mock_is_called_by_its_name(kind: str, tmp_path: Path) -> None:
    expected = FAULTS[kind]
    script = Script(ttft_ms=5, gap_ms=1, faults=[Fault(kind, 1.0, expected.after)])
    limits = Limits(first_ns=400 * MS, idle_ns=200 * MS)
    with launched(script) as mock:
        told = order(tmp_path, mock.url, lanes=2, requests=4, limits=limits)
        outcome = drive_here(told, asks(9))
    assert outcome.kinds() == {(expected.outcome, expected.error): 4}
    assert outcome.health.death is None
    for record in outcome.records:
        assert record.finish_reason is None
        assert (record.output_tokens, record.token_source) == (None, "none")
        matter = 5 if kind in ("cut", "stall", "stream_error", "garbage") else 0
        assert len(record.frames) == matter
        assert record.retry_after_s == (2.0 if kind == "http_429" else None)
        if expected.error in ("http_4xx", "http_429", "http_5xx", "stream_error"):
            assert f"scripted {kind}" in (record.error_detail or "")


def test_a_share_of_faults_spoils_only_its_own(tmp_path: Path) -> None:
    script = Script(ttft_ms=2, gap_ms=0.5, faults=[Fault("cut", 0.2, 3), Fault("http_500", 0.2, 0)], seed=4)
    with launched(script) as mock:
        outcome = drive_here(order(tmp_path, mock.url, lanes=4, requests=100), asks(120))
        truth = mock.truth()
    assert len(truth) == len(outcome.records) == 100
    kinds = outcome.kinds()
    assert kinds["ok", None] + kinds["incomplete", None] + kinds["error", "http_5xx"] == 100
    assert min(kinds.values()) > 5
    assert sum(len(line.writes) for line in truth) == sum(len(record.frames) for record in outcome.records)
    assert all(record.output_tokens == 8 for record in outcome.records if record.outcome == "ok")


def test_a_killed_worker_leaves_a_journal_to_conclude_from(tmp_path: Path) -> None:
    counted: list[int] = []

    def kill(crew: Crew) -> None:
        wait_until(lambda: crew.total(Field.RECORDED) >= 10)
        crew.workers[0].process.kill()
        crew.workers[0].process.wait()
        counted.append(crew.total(Field.RECORDED))

    with Replay(Reply(SHORT, ((5, 1),), ending="keep")) as replay:
        told = order(tmp_path, replay.url, lanes=4, duration_ns=30 * S)
        header = whole_header(told)
        outcome = drive(told, calls(100_000), kill)
    assert outcome.status == -signal.SIGKILL
    assert outcome.trailer is None
    assert len(outcome.records) >= counted[0] >= 10  # what was counted was written before
    assert set(outcome.kinds()) == {("ok", None)}
    run = conclude(header, [Path(told.journal)])
    assert run.health.death == "killed"
    assert "worker_died" in [finding.slug for finding in run.findings]
    assert run.verdict == "inadmissible"
    assert run.summary.run_requests.ok == len(outcome.records)
    assert run.phases.interrupted


def whole_header(told: Order) -> journal.Header:
    """A header with a spec, in place of the one that `order` wrote."""
    (entry,) = journal.read(Path(told.journal))
    assert isinstance(entry, journal.Header)
    spec = {"target": told.target, "model": "m", "load": {"concurrency": 4, "duration_s": 30.0}}
    return msgspec.structs.replace(entry, spec=spec)


@pytest.mark.parametrize("message", [b"\x05\x00\x00\x00hello", b"\x01\x00\x00\x00\xc1"])
def test_an_order_that_is_none_ends_the_worker(message: bytes) -> None:
    """Nobody but the parent can send it one; still it must not hang."""
    said = _worker_on(lambda control: control.sendall(message))
    assert "Error" in said


def test_a_parent_that_dies_before_its_order_leaves_no_worker() -> None:
    assert _worker_on(lambda control: None) == ""


def _worker_on(act: Callable[[socket.socket], None]) -> str:
    """What a worker says that gets this on its control pipe, and then its end."""
    (calls_ours, calls_theirs), (control, control_theirs) = socket.socketpair(), socket.socketpair()
    with calls_ours, calls_theirs, control, control_theirs:
        fds = (calls_theirs.fileno(), control_theirs.fileno())
        command = [sys.executable, "-m", "nilometer.load.worker", *map(str, fds)]
        with subprocess.Popen(command, pass_fds=fds, stderr=subprocess.PIPE) as worker:
            calls_theirs.close()
            control_theirs.close()
            act(control)
            control.close()
            _, said = worker.communicate(timeout=20)
    return said.decode()


def test_a_request_that_the_server_leaves_unread_is_no_hang(tmp_path: Path) -> None:
    """A body larger than all buffers, to a server that answers and closes without reading it."""

    def refuse(sock: socket.socket) -> None:
        sock.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    big = Call(seq=0, request=request("test", body=b"x" * (8 << 20)))
    with Scripted(refuse) as server:
        record = drive_here(order(tmp_path, server.url, requests=1), [big], batch=1).one()
    assert (record.outcome, record.error) in (("error", "http_4xx"), ("incomplete", None))
    assert record.status in (413, None)


def test_a_large_request_gets_there_whole(tmp_path: Path) -> None:
    sizes: list[int] = []

    def handle(sock: socket.socket) -> None:
        sizes.append(len(take_request(sock)))
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
        sock.sendall(head + SHORT)

    big = Call(seq=0, request=request("test", body=b"x" * (8 << 20)))
    with Scripted(handle) as server:
        record = drive_here(order(tmp_path, server.url, requests=1), [big], batch=1).one()
    assert sizes == [len(big.request)]
    assert (record.outcome, record.output_tokens) == ("ok", 3)
    assert record.sent_ns is not None
    assert record.sent_end_ns is not None
    assert record.first_byte_ns is not None
    assert record.sent_ns < record.sent_end_ns <= record.first_byte_ns + 5 * MS
