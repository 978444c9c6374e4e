"""What stands on the way from a client to a service, or beside either: a pool, a proxy, tenants, busy cores."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple
from urllib.parse import urlsplit

import psutil

Way = Callable[[str, int], contextlib.AbstractContextManager[str]]
"""From a service's address and pid to the address that the load is sent to."""
Before = Callable[[bytes], Awaitable[None]]


@contextlib.contextmanager
def nothing(url: str, _: int) -> Iterator[str]:
    """The service itself."""
    yield url


class Relay(NamedTuple):
    """What a program on the way does before it passes a question on."""

    most: int = 256
    """Answers at once; others wait with connecting, for the kernel drops what is over its backlog."""
    each_s: float = 0.0
    """Taken for each question, one at a time."""
    lost_share: float = 0.0
    again_s: float = 0.0
    """So many first attempts are lost, and made anew after so long."""
    held_bytes: int = 0
    """An answer is passed on by so many bytes at once."""


def relayed(by: Relay) -> Way:
    """A relay, each question on a connection of its own; what is not asked below /v1/ it passes on at once."""

    @contextlib.contextmanager
    def way(url: str, _: int) -> Iterator[str]:
        parts = urlsplit(url)
        command = [sys.executable, "-m", "benchmarks.faults.on_the_way", str(parts.port), *map(str, by)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE) as child:
            try:
                assert child.stdout is not None
                yield f"http://127.0.0.1:{int(child.stdout.readline())}{parts.path}"
            finally:
                child.kill()

    return way


def pool(most: int) -> Way:
    """A relay that answers so many at once and takes in nobody meanwhile."""
    return relayed(Relay(most=most))


async def relay(listener: socket.socket, port: int, by: Relay) -> None:
    """Serves until cancelled."""
    loop = asyncio.get_running_loop()
    free, alone, random = asyncio.Semaphore(by.most), asyncio.Lock(), Random(1)
    tasks: set[asyncio.Task[None]] = set()
    listener.setblocking(False)

    async def before(question: bytes) -> None:
        if b" /v1/" not in question[:64]:
            return
        if by.each_s:
            async with alone:
                await asyncio.sleep(by.each_s)
        if random.random() < by.lost_share:
            await asyncio.sleep(by.again_s)

    while True:
        async with free:
            pass
        client, _ = await loop.sock_accept(listener)
        task = loop.create_task(_one_answer(client, port, free, before, by.held_bytes))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


async def _one_answer(client: socket.socket, port: int, free: asyncio.Semaphore, before: Before, held: int) -> None:
    reader, writer = await asyncio.open_connection(sock=client)
    with contextlib.suppress(OSError, asyncio.IncompleteReadError):
        if begun := await reader.read(1 << 16):
            async with free:
                await before(begun)
                await _through(begun, reader, writer, port, held)
    writer.close()


async def _through(
    begun: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int, held: int
) -> None:
    up_reader, up_writer = await asyncio.open_connection("127.0.0.1", port)
    asking = asyncio.ensure_future(_question(begun, reader, up_writer))
    try:
        await _answer(up_reader, writer, held)
    finally:
        asking.cancel()
        up_writer.close()


async def _question(begun: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(begun)
    while data := await reader.read(1 << 16):
        writer.write(data)
    writer.write_eof()


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, held: int) -> None:
    """One answer, to its last chunk or as long as its length says."""
    head = await reader.readuntil(b"\r\n\r\n")
    writer.write(head)
    length = re.search(rb"(?i)content-length: (\d+)", head)
    if length is not None:
        writer.write(await reader.readexactly(int(length[1])))
        await writer.drain()
        return
    kept = b""
    while data := await reader.read(1 << 16):
        kept += data
        ended = kept.endswith(b"\r\n0\r\n\r\n")
        if ended or len(kept) >= held:
            writer.write(kept)
            await writer.drain()
            kept = b""
        if ended:
            return


NGINX = """daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 256; }}
http {{
  access_log off; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  {zone}
  server {{
    listen 127.0.0.1:{port};
    location / {{ proxy_pass {url}; }}
    location {path} {{ proxy_pass {url}; {says} }}
  }}
}}
"""
BUFFERS = "proxy_buffering on; proxy_buffer_size 64k; proxy_buffers 8 64k; proxy_busy_buffers_size 128k;"


def has_nginx() -> bool:
    """Whether the real proxy is here."""
    return shutil.which("nginx") is not None


def nginx(says: str, path: str = "/v1/", zone: str = "") -> Way:
    """A real nginx in front, which does to the answers below `path` what it is told and passes the rest on.

    It speaks HTTP/1.0 with the service where it is not told otherwise, as is its default.
    """

    @contextlib.contextmanager
    def way(url: str, _: int) -> Iterator[str]:
        parts = urlsplit(url)
        port, service = _free_port(), f"http://{parts.netloc}"
        with tempfile.TemporaryDirectory(prefix="nilo-nginx-") as folder:
            os.chmod(folder, 0o755)
            config = Path(folder) / "nginx.conf"
            config.write_text(
                NGINX.format(folder=folder, port=port, url=service, path=path, says=says, zone=zone), "utf-8"
            )
            with subprocess.Popen(["nginx", "-c", str(config), "-e", f"{folder}/error.log"]) as child:
                try:
                    _wait_for(port)
                    yield f"http://127.0.0.1:{port}{parts.path}"
                finally:
                    child.terminate()

    return way


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(port: int) -> None:
    for _ in range(200):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=0.05):
            return
        threading.Event().wait(0.02)
    raise TimeoutError(f"nothing listens on {port}")


BURN = """import os, sys, time
on_s, rest_s, core = float(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
if core >= 0:
    os.sched_setaffinity(0, {core})
end = time.monotonic() + 300
while time.monotonic() < end:
    still = time.monotonic() + on_s
    while time.monotonic() < still:
        pass
    time.sleep(rest_s)
"""
LEAVE = """import subprocess, sys
quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
for _ in range(int(sys.argv[2])):
    print(subprocess.Popen([sys.executable, "-c", sys.argv[1], *sys.argv[3:]], **quiet).pid)
"""


@contextlib.contextmanager
def burning(count: int, on_s: float = 1.0, rest_s: float = 0.0, core: int = -1) -> Iterator[None]:
    """Programs of somebody else, no children of ours, each busy `on_s` and then at rest `rest_s`, again and again.

    They end by themselves after five minutes.
    """
    command = [sys.executable, "-c", LEAVE, BURN, *map(str, (count, on_s, rest_s, core))]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    try:
        yield
    finally:
        for pid in told.split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)


def beside_burners(count: int) -> Way:
    """The load generator shares its one core with programs that never rest; the service has the other."""

    @contextlib.contextmanager
    def way(url: str, pid: int) -> Iterator[str]:
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(pid, {cores[0]})
        os.sched_setaffinity(0, {cores[-1]})  # what it starts inherits this
        try:
            with burning(count, core=cores[-1]):
                yield url
        finally:
            os.sched_setaffinity(0, cores)

    return way


def neighbour(count: int, on_s: float, rest_s: float) -> Way:
    """Somebody else computes now and then on the one core that the service has; the load generator has the other."""

    @contextlib.contextmanager
    def way(url: str, pid: int) -> Iterator[str]:
        cores = sorted(os.sched_getaffinity(0))
        for thread in Path(f"/proc/{pid}/task").iterdir():
            os.sched_setaffinity(int(thread.name), {cores[0]})
        os.sched_setaffinity(0, {cores[-1]})
        try:
            with burning(count, on_s, rest_s, core=cores[0]):
                yield url
        finally:
            os.sched_setaffinity(0, cores)

    return way


def duty(period_s: float, share: float) -> Way:
    """The service stands still for a part of every period, as under a quota of processor time."""

    @contextlib.contextmanager
    def way(url: str, pid: int) -> Iterator[str]:
        with _stopping(lambda: [pid], period_s, share):
            yield url

    return way


def dozing(period_s: float, share: float) -> Way:
    """The load generator stands still for a part of every period, as on a machine with too much to do."""

    @contextlib.contextmanager
    def way(url: str, _: int) -> Iterator[str]:
        with _stopping(_load_workers, period_s, share):
            yield url

    return way


def _load_workers() -> list[int]:
    return [one.pid for one in psutil.Process().children() if "nilometer.load.worker" in one.cmdline()]


@contextlib.contextmanager
def _stopping(of: Callable[[], list[int]], period_s: float, share: float) -> Iterator[None]:
    over = threading.Event()

    def work() -> None:
        while not over.wait(period_s * share):
            with contextlib.suppress(ProcessLookupError, psutil.NoSuchProcess):
                pids = of()
                for sent in (signal.SIGSTOP, signal.SIGCONT):
                    for pid in pids:
                        os.kill(pid, sent)
                    if sent == signal.SIGSTOP:
                        time.sleep(period_s * (1 - share))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def tenants(models: Sequence[str]) -> Way:
    """Others use the same service meanwhile, one after another for each of these models."""

    @contextlib.contextmanager
    def way(url: str, _: int) -> Iterator[str]:
        ended = threading.Event()
        threads = [threading.Thread(target=_tenant, args=(url, model, ended), daemon=True) for model in models]
        for thread in threads:
            thread.start()
        try:
            yield url
        finally:
            ended.set()
            for thread in threads:
                thread.join(20)

    return way


def _tenant(url: str, model: str, ended: threading.Event) -> None:
    parts = urlsplit(url)
    client = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
    body = json.dumps({"model": model, "prompt": "how high " * 40, "max_tokens": 24})
    with contextlib.suppress(OSError, http.client.HTTPException):
        while not ended.is_set():
            client.request("POST", "/v1/completions", body)
            client.getresponse().read()
    client.close()


def _main(port: int, by: Relay) -> None:
    listener = socket.create_server(("127.0.0.1", 0), backlog=0 if by.most < Relay().most else 128)
    print(listener.getsockname()[1], flush=True)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    asyncio.run(relay(listener, port, by))


def _end_with_parent() -> None:
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    port, most, each_s, lost_share, again_s, held_bytes = sys.argv[1:]
    _main(int(port), Relay(int(most), float(each_s), float(lost_share), float(again_s), int(held_bytes)))
