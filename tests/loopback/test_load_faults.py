"""Servers that answer nonsense, processes that are killed, a disk that fills: the load ends, and says what it saw."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from tests.loopback.driving import (
    DONE,
    MS,
    SHORT,
    S,
    alive,
    calls,
    drive,
    drive_here,
    event,
    frame,
    free_port,
    left,
    order,
    request,
    wait_until,
)
from tests.loopback.replay import Replay, Reply
from tests.loopback.scripted import Scripted, answering, take_request

from nilometer.core.errors import EngineError
from nilometer.core.record import Call
from nilometer.engines.mock import launched
from nilometer.engines.mock_script import FAULTS, Fault, Script
from nilometer.experiment.conclude import conclude
from nilometer.load import journal
from nilometer.load.counters import Field
from nilometer.load.crew import Crew
from nilometer.load.order import Limits, Order
from nilometer.load.worker import EXIT_JOURNAL, EXIT_TARGET

CHAT = (
    b'{"model":"mock","messages":[{"role":"user","content":"a b"}],'
    b'"stream":true,"stream_options":{"include_usage":true},"max_tokens":%d}'
)


def asks(n: int, tokens: int = 8) -> Iterator[Call]:
    """Chat requests that the mock understands."""
    for seq in range(n):
        yield Call(seq=seq, request=request("test", body=CHAT % tokens))


# -- answers ----------------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize(
    ("retry_after", "seconds"),
    [("2", 2.0), ("0.5", 0.5), ("Wed, 21 Oct 2026 07:28:00 GMT", None), ("-1", None), ("nan", None), ("1e999", None)],
)
def test_retry_after_is_kept_where_it_is_a_span(retry_after: str, seconds: float | None, tmp_path: Path) -> None:
    body = b'{"error":{"message":"slow down"}}'
    reply = Reply(body, (), 429, "application/json", "length", "keep", (("retry-after", retry_after),))
    with Replay(reply) as replay:
        record = drive_here(order(tmp_path, replay.url, requests=1), calls(1)).one()
        assert len(replay.exchanges) == 1  # nothing is tried again
    assert (record.outcome, record.error, record.status) == ("error", "http_429", 429)
    assert (record.retry_after_s, record.error_detail) == (seconds, "slow down")


@pytest.mark.parametrize(
    ("body", "kind", "error"),
    [
        (b'{"error":{"message":"engine gone"}}', "application/json", "stream_error"),
        (b'data: {"error":{"message":"engine gone"}}\n\n', "text/event-stream", "stream_error"),
        (b'event: error\ndata: {"error":{"message":"engine gone"}}\n\n' + DONE, "text/event-stream", "stream_error"),
        (event("a") + frame(error={"message": "engine gone"}) + DONE, "text/event-stream", "stream_error"),
        (b"<html><body>engine gone</body></html>", "text/html", "not_a_model_answer"),
        (b"<html><body>engine gone</body></html>", "text/event-stream", "not_a_model_answer"),
        (b"engine gone", "text/plain", "not_a_model_answer"),
        (b'data: {"choices": engine gone\n\n', "text/event-stream", "malformed"),
    ],
)
def test_what_fails_inside_a_200(body: bytes, kind: str, error: str, tmp_path: Path) -> None:
    with Replay(Reply(body, content_type=kind, ending="keep")) as replay:
        outcome = drive_here(order(tmp_path, replay.url, requests=2), calls(2))
    assert outcome.kinds() == {("error", error): 2}
    assert all("engine gone" in (record.error_detail or "") for record in outcome.records)
    assert all(record.output_tokens is None for record in outcome.records)


@pytest.mark.parametrize(
    "garbage", [bytes(range(256)) * 8, b"SSH-2.0-OpenSSH_9.6\r\n", b"\r\n\r\n\r\n" * 40, b"HTTP/1."]
)
def test_bytes_that_are_not_http(garbage: bytes, tmp_path: Path) -> None:
    with Scripted(answering(garbage, close=True)) as server:
        outcome = drive_here(order(tmp_path, server.url, lanes=2, requests=6), calls(6))
    assert set(outcome.kinds()) <= {("error", "malformed"), ("incomplete", None)}
    assert len(outcome.records) == 6
    assert all(record.output_tokens is None and record.first_token_ns is None for record in outcome.records)


def test_64_mib_in_one_line_do_not_fill_the_memory(tmp_path: Path) -> None:
    peaks: list[int] = []

    def watch(crew: Crew) -> None:
        pid = crew.workers[0].process.pid
        wait_until(lambda: crew.total(Field.RECORDED) >= 2 or not alive(pid))
        status = Path(f"/proc/{pid}/status").read_text()
        peaks.append(int(status.partition("VmHWM:")[2].split()[0]) >> 10)
        crew.drain("interrupted")

    script = Script(ttft_ms=1, gap_ms=1, faults=[Fault("flood", 1.0, 64)])
    with launched(script) as mock:
        told = order(tmp_path, mock.url, lanes=1, duration_ns=30 * S)
        outcome = drive(told, asks(200), watch)
    assert outcome.kinds().keys() <= {("incomplete", None), ("error", "malformed"), ("cancelled", None),
                                      ("error", "not_a_model_answer")}  # fmt: skip
    assert all(len(record.frames) == 0 for record in outcome.records)
    assert peaks[0] < 400  # MiB: a line may be held once or twice, but not one for each request


# -- servers that die -------------------------------------------------------------------------------------------------


def test_nothing_listens_from_the_start(tmp_path: Path) -> None:
    told = order(tmp_path, f"http://127.0.0.1:{free_port()}", lanes=3, duration_ns=S)
    outcome = drive(told, calls(100_000))
    assert set(outcome.kinds()) == {("error", "connect")}
    assert 3 <= len(outcome.records) < 60  # it is not stormed
    assert all("refused" in (record.error_detail or "").lower() for record in outcome.records)
    assert all(record.sent_ns is None and record.end_ns is not None for record in outcome.records)


def test_a_server_that_dies_in_the_middle(tmp_path: Path) -> None:
    """What was on its way is incomplete, what came after could not connect; the load goes on to its end."""
    with launched(Script(ttft_ms=20, gap_ms=20)) as mock:

        def kill(crew: Crew) -> None:
            wait_until(lambda: crew.total(Field.RECORDED) >= 4)
            os.kill(mock.pid, signal.SIGKILL)

        told = order(tmp_path, mock.url, lanes=4, duration_ns=2 * S)
        outcome = drive(told, asks(10_000), kill)
    kinds = outcome.kinds()
    assert outcome.status == 0
    assert kinds["ok", None] >= 4
    assert 1 <= kinds["incomplete", None] <= 8  # the listener may live a moment longer than the connections
    assert 4 <= kinds["error", "connect"] < 100
    assert set(kinds) <= {("ok", None), ("incomplete", None), ("error", "connect")}
    assert outcome.phases.stop_ns - outcome.phases.measured_ns == 2 * S


def test_a_name_that_is_lost_ends_the_worker_before_the_load(tmp_path: Path) -> None:
    told = order(tmp_path, "http://nobody.invalid:1", requests=1)
    with Crew([told], calls(1)) as crew, pytest.raises(EngineError) as caught:
        crew.wait_ready()
    assert caught.value.slug == "worker_not_ready"
    assert caught.value.params["status"] == EXIT_TARGET


# -- makers of calls --------------------------------------------------------------------------------------------------


def test_a_maker_of_calls_that_fails_is_heard_of_and_what_was_sent_is_kept(tmp_path: Path) -> None:
    started = threading.Event()

    def failing() -> Iterator[Call]:
        yield from calls(80)
        started.wait(10)
        raise LookupError("no more prompts")

    faults: list[BaseException] = []

    def listen(crew: Crew) -> None:
        started.set()
        wait_until(lambda: not crew.running)
        try:
            crew.check()
        except LookupError as fault:
            faults.append(fault)

    with Replay(Reply(SHORT, ending="keep")) as replay:
        outcome = drive(order(tmp_path, replay.url, lanes=2, duration_ns=30 * S), failing(), listen)
    assert [str(fault) for fault in faults] == ["no more prompts"]
    assert outcome.kinds() == {("ok", None): 80}
    assert outcome.status == 0


def test_a_maker_of_calls_that_fails_at_once_is_heard_of_before_the_load(tmp_path: Path) -> None:
    def failing() -> Iterator[Call]:
        raise LookupError("no prompt at all")
        yield

    told = order(tmp_path, f"http://127.0.0.1:{free_port()}", lanes=2, duration_ns=30 * S)
    with pytest.raises(LookupError, match="no prompt at all"):
        drive(told, failing())


# -- processes that die -----------------------------------------------------------------------------------------------


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


PARENT = """
import sys
from pathlib import Path
from tests.loopback.driving import S, calls, order, wait_until
from nilometer.load.counters import Field
from nilometer.load.crew import Crew

with Crew([order(Path(sys.argv[1]), sys.argv[2], lanes=4, duration_ns=60 * S)], calls(10 ** 6)) as crew:
    crew.wait_ready()
    crew.go()
    wait_until(lambda: crew.total(Field.RECORDED) >= 10)
    print(crew.workers[0].process.pid, flush=True)
    sys.stdin.read()
"""


def test_a_worker_whose_parent_was_killed_ends_with_what_it_has(tmp_path: Path) -> None:
    with Replay(Reply(SHORT, ((5, 1),), ending="keep")) as replay:
        command = [sys.executable, "-c", PARENT, str(tmp_path), replay.url]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment) as parent:
            assert parent.stdout is not None
            worker = int(parent.stdout.readline())
            assert alive(worker)
            parent.kill()
            parent.wait()
            wait_until(lambda: not alive(worker), 5)
    outcome = left(str(tmp_path / "0.journal"))
    assert outcome.phases.interrupted
    kinds = outcome.kinds()
    assert kinds["ok", None] >= 10
    assert set(kinds) <= {("ok", None), ("cancelled", None)}
    assert journal.abandoned(tmp_path / "0.journal")


# -- a disk that fills ------------------------------------------------------------------------------------------------

LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
sys.argv = sys.argv[2:]
from nilometer.load.worker import main
main()
"""


def test_a_full_disk_ends_the_load_with_what_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker alone meets the limit: Python ignores SIGXFSZ, so a write over it fails as on a full disk."""
    started = subprocess.Popen

    def limited(command: list[str], **options: object) -> object:
        assert command[1:3] == ["-m", "nilometer.load.worker"]
        return started([command[0], "-c", LIMITED, "20000", "worker", *command[3:]], **options)  # type: ignore[call-overload]

    monkeypatch.setattr("nilometer.load.crew.subprocess.Popen", limited)
    with Replay(Reply(SHORT, ending="keep")) as replay:
        told = order(tmp_path, replay.url, lanes=2, duration_ns=15 * S)
        outcome = drive(told, calls(1_000_000))
    assert outcome.status == EXIT_JOURNAL
    assert Path(told.journal).stat().st_size <= 20_000
    assert outcome.said == ""
    assert len(outcome.records) > 10
    assert set(outcome.kinds()) == {("ok", None)}
    if outcome.trailer is not None:  # it may still have fitted in
        assert "journal" in (outcome.trailer.health.death or "")


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
