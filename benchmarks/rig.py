"""The bench's machine side: the C programs, who runs on which core, what a client costs. Knows no metric."""

from __future__ import annotations

import contextlib
import itertools
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
BIN = HERE / "bin"
OUT = HERE / "out"
SERVER_CORE = 0
CLIENT_CORE = 1
SERVER_PRIORITY = 50
PLAIN: Mapping[str, float] = {}
"""A script with nothing special: TTFT 200 ms, gap 20 ms."""


class RigError(Exception):
    """The bench cannot run here; the text says why."""


def build() -> None:
    """Compile the C programs where their sources are newer; needs gcc."""
    BIN.mkdir(exist_ok=True)
    OUT.mkdir(exist_ok=True)
    newest = max(path.stat().st_mtime for path in (HERE / "native").iterdir())
    for name in ("truth_server", "drain_client"):
        program = BIN / name
        if program.exists() and program.stat().st_mtime > newest:
            continue
        source = HERE / "native" / f"{name}.c"
        subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-o", str(program), str(source)], check=True)


def check() -> list[str]:
    """What about this machine weakens the figures; raises RigError where the bench makes no sense."""
    cores = os.sched_getaffinity(0)
    if not {SERVER_CORE, CLIENT_CORE} <= cores:
        raise RigError("needs two cores: one for the server, one for the client")
    notes = []
    load = os.getloadavg()[0]
    if load > 0.7:
        notes.append(f"load average {load:.1f} at the start: figures of a busy machine")
    if not _may_be_realtime():
        notes.append("no right to SCHED_FIFO: the server may be late")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 4096:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))
    return notes


def _may_be_realtime() -> bool:
    before, priority = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        os.sched_setscheduler(0, before, priority)
    except PermissionError:
        return False
    return True


def on_server_core(pid: int) -> None:
    """Pin to the server's core, ahead of everything else there where that is allowed."""
    os.sched_setaffinity(pid, {SERVER_CORE})
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(pid, os.SCHED_FIFO, os.sched_param(SERVER_PRIORITY))


def start_client(
    command: Sequence[str], cores: Set[int] = frozenset({CLIENT_CORE}), **how: Any
) -> subprocess.Popen[bytes]:
    """Start a program on the client's core; everything it starts stays there. `how` is for Popen."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)  # a child inherits it
    try:
        return subprocess.Popen(command, **how)
    finally:
        os.sched_setaffinity(0, before)


class Server:
    """A running truth server; its log is there after it has ended."""

    def __init__(self, url: str, port: int, log: Path) -> None:
        self.url = url
        self.port = port
        self.log = log


@contextlib.contextmanager
def truth_server(folder: Path, script: Mapping[str, float] = PLAIN, *, log: bool = True) -> Iterator[Server]:
    """The C server on its core; the script's keys as in native/truth_answer.h."""
    file = folder / "truth.jsonl"
    told = [f"{name}={value}" for name, value in script.items()] + ([f"truth={file}"] if log else [])
    with subprocess.Popen([str(BIN / "truth_server"), *told], stdout=subprocess.PIPE) as process:
        on_server_core(process.pid)
        assert process.stdout is not None
        try:
            port = int(process.stdout.readline())
            yield Server(f"http://127.0.0.1:{port}", port, file)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(120)


@contextlib.contextmanager
def hogs(count: int) -> Iterator[None]:
    """Busy processes on the client's core, in the client's own session: elsewhere autogroups would tame them."""
    spin = "while True: pass"
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            process = start_client([sys.executable, "-c", spin])
            stack.callback(process.wait)
            stack.callback(process.kill)
        yield


class Cost:
    """CPU and memory of a process tree over time, sampled from /proc by a thread."""

    EVERY_S = 0.05

    def __init__(self, root: int) -> None:
        self._root = root
        self._cpu: dict[int, list[tuple[int, int]]] = {}
        self.rss_peak_bytes: dict[int, int] = {}
        self.names: dict[int, str] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Cost:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self.EVERY_S):
            for pid in tree(self._root):
                self._sample(pid)

    def _sample(self, pid: int) -> None:
        try:
            cpu_ns = _cpu_ns(pid)
            rss = _rss_bytes(pid)
            if pid not in self.names:
                self.names[pid] = Path(f"/proc/{pid}/comm").read_text("utf-8").strip()
        except (OSError, IndexError, ValueError):
            return  # it has just ended
        self._cpu.setdefault(pid, []).append((time.monotonic_ns(), cpu_ns))
        self.rss_peak_bytes[pid] = max(rss, self.rss_peak_bytes.get(pid, 0))

    def spent_ns(self, from_ns: int, to_ns: int) -> dict[int, int]:
        """CPU of each process between two moments, interpolated between samples."""
        return {pid: _at(rows, to_ns) - _at(rows, from_ns) for pid, rows in self._cpu.items()}


def tree(root: int) -> list[int]:
    """A process and its descendants."""
    found, pending = [], [root]
    while pending:
        pid = pending.pop()
        found.append(pid)
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                pending.extend(map(int, task.read_text("ascii").split()))
    return found


def _cpu_ns(pid: int) -> int:
    return sum(int(path.read_text("ascii").split()[0]) for path in Path(f"/proc/{pid}/task").glob("*/schedstat"))


def _rss_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _at(rows: Sequence[tuple[int, int]], at_ns: int) -> int:
    """CPU at a moment: 0 before the first sample (it started after that), its last value after the end."""
    if at_ns <= rows[0][0]:
        return 0
    for (t0, c0), (t1, c1) in itertools.pairwise(rows):
        if at_ns <= t1:
            return c0 + (c1 - c0) * (at_ns - t0) // (t1 - t0)
    return rows[-1][1]


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder that goes away."""
    with tempfile.TemporaryDirectory(prefix="nilo-bench-") as folder:
        yield Path(folder)


def client_environment(folder: Path) -> Mapping[str, str]:
    """The client's environment: its archive in the scratch folder, no proxies; prepared models stay where they are."""
    kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    homes = {f"XDG_{kind}_HOME": str(folder / kind.lower()) for kind in ("DATA", "STATE", "RUNTIME")}
    return {**kept, **homes, "NILO_ARCHIVE": archive_url(folder), "PYTHONDONTWRITEBYTECODE": "1"}


def archive_url(folder: Path) -> str:
    """Where a client of this bench files its runs."""
    return f"sqlite:///{archive_file(folder)}"


def archive_file(folder: Path) -> Path:
    """The file behind it."""
    return folder / "archive.sqlite"
