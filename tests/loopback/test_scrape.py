"""The sampler on real sockets: its pace, what it keeps, and that it ends with whoever started it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
from tests.loopback.scripted import Scripted, take_request

from nilometer.metrics.engine_pages import FAMILIES
from nilometer.metrics.pages import read
from nilometer.metrics.server_figures import figures
from nilometer.sources.metrics_page import read_url
from nilometer.telemetry.scrape import Scraper, looks

SECRET = "canary-4471"
WAIT_S = 10.0


class Counting:
    """A server whose counter grows by ten a look; the third look finds it in trouble."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []

    def __call__(self, sock: socket.socket) -> None:
        self.asked.append(take_request(sock))
        n = len(self.asked)
        status = b"503 X" if n == 3 else b"200 OK"
        body = b"# HELP vllm:generation_tokens_total x\nvllm:generation_tokens_total %d\nother 1\n" % (10 * n)
        sock.sendall(b"HTTP/1.1 " + status + b"\r\nConnection: close\r\n\r\n" + body)


def wait_for(file: Path, n: int) -> None:
    end = time.monotonic() + WAIT_S
    while len(list(looks(file))) < n:
        assert time.monotonic() < end, "no looks came"
        time.sleep(0.02)


def test_it_looks_at_a_steady_pace_and_keeps_what_is_worth_it(tmp_path: Path) -> None:
    served, file = Counting(), tmp_path / "looks"
    before_ns = time.monotonic_ns()
    with (
        Scripted(served) as server,
        Scraper(f"{server.url}/metrics", file, every_s=0.1, headers={"Authorization": f"Bearer {SECRET}"}) as scraper,
    ):
        wait_for(file, 5)
    found = list(scraper.looks())
    assert before_ns < found[0].asked_ns <= found[0].answered_ns < time.monotonic_ns()
    at_s = [(one.asked_ns - found[0].asked_ns) / 1e9 for one in found]
    assert all(at > 0.1 * i - 0.03 for i, at in enumerate(at_s)), at_s  # never before its beat
    assert [one.text for one in found[:2]] == [f"vllm:generation_tokens_total {n}" for n in (10, 20)]
    assert (found[2].text, found[2].fault) == (None, "http_503")
    first, last = (read(found[i].text or "", FAMILIES) for i in (0, 3))
    assert figures(last, first, 0.3).generation_tps == 100.0
    assert all(f"Bearer {SECRET}".encode() in asked for asked in served.asked)
    assert SECRET.encode() not in file.read_bytes()


def test_a_page_that_was_found_can_be_looked_at_again(tmp_path: Path) -> None:
    with Scripted(Counting()) as server:
        found = read_url(f"{server.url}/v1")
        assert found.address == f"{server.url}/metrics"
        with Scraper(found.address, tmp_path / "looks", every_s=0.1) as scraper:
            wait_for(scraper.file, 1)
    assert next(scraper.looks()).text == "vllm:generation_tokens_total 20"


def test_a_server_that_is_not_there_is_told_look_by_look(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with Scraper(f"http://127.0.0.1:{port}/metrics", tmp_path / "looks", every_s=0.05) as scraper:
        wait_for(scraper.file, 2)
    assert {one.fault for one in scraper.looks()} == {"connect_refused"}


def test_it_ends_with_its_parent_however_that_ends(tmp_path: Path) -> None:
    file = tmp_path / "looks"
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom nilometer.telemetry.scrape import Scraper\n"
        "with Scraper('http://127.0.0.1:1/metrics', Path(sys.argv[1]), every_s=0.05) as s:\n"
        "    print(s._process.pid, flush=True)\n    time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code, str(file)], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    wait_for(file, 1)
    os.kill(parent.pid, signal.SIGKILL)
    parent.communicate()
    end = time.monotonic() + WAIT_S
    while child.is_running() and child.status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < end, "the child outlives its parent"
        time.sleep(0.02)
