"""Responses without measure: the worker's memory stays within a few times the longest line, its time linear."""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.loopback.driving import DONE, calls, drive_here, event, finish, left, order, usage, wait_until
from tests.loopback.scripted import Scripted, take_request

from nilometer.core.record import Record
from nilometer.load import lane
from nilometer.load.counters import Field
from nilometer.load.crew import Crew

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")

MIB = 1 << 20
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


class Cost(NamedTuple):
    """What one response cost its worker."""

    record: Record
    memory_bytes: int
    cpu_s: float


def status_bytes(pid: int, name: str) -> int:
    """A size of /proc/PID/status; 0 when the process is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(name)), 0)


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cost(folder: Path, body: Callable[[], Iterator[bytes]]) -> Cost:
    """Serve one response of these parts to a worker; its peak and CPU are read while a second request waits."""
    folder.mkdir()
    waiting = threading.Event()

    def handle(sock: socket.socket) -> None:
        if b"X-Seq: 0\r" not in take_request(sock):
            waiting.set()
            server.over.wait(20)
            return
        sock.sendall(HEAD)
        for part in body():
            sock.sendall(part)

    with Scripted(handle) as server:
        told = order(folder, server.url, requests=2)
        with Crew([told], calls(2)) as crew:
            crew.wait_ready()
            pid = crew.workers[0].process.pid
            memory, cpu = status_bytes(pid, "VmHWM"), cpu_s(pid)
            crew.go()
            wait_until(lambda: waiting.is_set() and crew.total(Field.RECORDED) == 1)  # the first is recorded
            peak, cpu = status_bytes(pid, "VmHWM") - memory, cpu_s(pid) - cpu
            crew.cancel()
            wait_until(lambda: not crew.running)
    records = [record for record in left(told.journal).records if record.seq == 0]
    return Cost(records[0], peak, cpu)


def line_of(size: int) -> Callable[[], Iterator[bytes]]:
    """A stream with one frame of this size among its frames."""

    def parts() -> Iterator[bytes]:
        yield event("a") + b'data: {"choices":[{"index":0,"delta":{"content":"'
        for _ in range(size // MIB):
            yield b"x" * MIB
        yield b'"}}]}\n\n' + finish() + usage(7, 9) + DONE

    return parts


def test_64_mib_in_one_line(tmp_path: Path) -> None:
    small, large = cost(tmp_path / "16", line_of(16 * MIB)), cost(tmp_path / "64", line_of(64 * MIB))
    for one in (small, large):
        assert (one.record.outcome, one.record.output_tokens, len(one.record.frames)) == ("ok", 9, 2)
    assert large.memory_bytes < 4 * 64 * MIB
    assert small.memory_bytes < 4 * 16 * MIB
    assert large.cpu_s < 8 * max(small.cpu_s, 0.1)  # four times the bytes: sixteen times were quadratic
    assert large.cpu_s < 8


@pytest.mark.parametrize("line", [b"<html>" + b"x" * 1000, b"x" * 1000 + b"\n"], ids=["html", "words"])
def test_much_of_what_is_no_answer_is_dropped_as_it_comes(line: bytes, tmp_path: Path) -> None:
    seen = cost(tmp_path / "x", lambda: iter([line] + [line * 1000] * 32))
    assert (seen.record.outcome, seen.record.error) == ("error", "not_a_model_answer")
    assert seen.memory_bytes < 8 * MIB


def test_a_very_long_stream_is_read_as_it_comes(tmp_path: Path) -> None:
    """32 MB in frames of 1 kB: its bytes go, stamps and counts stay."""
    word = event("x" * 950)
    seen = cost(tmp_path / "x", lambda: iter([*[word * 100] * 320, finish() + usage(7, 32_000) + DONE]))
    assert (seen.record.outcome, seen.record.output_tokens, len(seen.record.frames)) == ("ok", 32_000, 32_000)
    assert seen.memory_bytes < 12 * MIB


def test_an_answer_beyond_all_measure_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane, "GIANT_BYTES", MIB)
    body = event("x" * 950)

    def handle(sock: socket.socket) -> None:
        take_request(sock)
        sock.sendall(HEAD)
        while not server.over.is_set():
            sock.sendall(body * 100)

    with Scripted(handle) as server:
        record = drive_here(order(tmp_path, server.url, requests=1), calls(1)).one()
    assert (record.outcome, record.error) == ("error", "malformed")
    assert record.error_detail == "an answer of more than 1 MiB"
    assert len(record.frames) > 500
