"""What is seen of real processes: whose port it is, how large a tree of them is, and was at its largest."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
from tests.loopback.driving import wait_until

from nilometer.metrics.host_figures import host_told
from nilometer.telemetry import gpu, host
from nilometer.telemetry.process import listening_pid, tree_rss_bytes
from nilometer.telemetry.sampler import Sampler

MIB = 1 << 20
HOLDS = """
import subprocess, sys, time
held = bytearray(b"x" * ({own} << 20))
child = subprocess.Popen([sys.executable, "-c", '''
import time
held = bytearray(b"x" * ({child} << 20))
print("up", flush=True)
time.sleep(60)
''']) if {child} else None
print("up", flush=True)
sys.stdin.readline()
if child:
    child.kill()
    child.wait()
del held
print("down", flush=True)
sys.stdin.readline()
"""


@contextmanager
def holding(own: int, child: int) -> Iterator[subprocess.Popen[str]]:
    """A process that holds so many MiB, with a child that holds others; a line on its stdin makes it let go."""
    command = [sys.executable, "-c", HOLDS.format(own=own, child=child)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for _ in range(2 if child else 1):
            assert process.stdout.readline() == "up\n"
        yield process
        process.communicate("\n\n", timeout=20)


def let_go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "down\n"


def test_a_port_belongs_to_the_process_that_listens_on_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert listening_pid("127.0.0.1", port) == os.getpid()
        assert listening_pid("localhost", port) == os.getpid()
        assert listening_pid("198.51.100.1", port) is None, "another machine's port is not ours"
    assert listening_pid("127.0.0.1", port) is None


def test_a_tree_is_as_large_as_all_of_it() -> None:
    with holding(60, 0) as alone, holding(60, 80) as family:
        one, both = tree_rss_bytes(alone.pid), tree_rss_bytes(family.pid)
    assert one is not None
    assert both is not None
    assert 60 * MIB < one < 90 * MIB
    assert 80 * MIB < both - one < 110 * MIB, "the child: what it holds, and a Python"
    assert tree_rss_bytes(alone.pid) is None, "it is gone"


def test_the_peak_stays_when_the_memory_is_given_back() -> None:
    with holding(120, 0) as process:
        with Sampler(process.pid) as memory:
            let_go(process)
            wait_until(lambda: (tree_rss_bytes(process.pid) or 0) < 60 * MIB)
        peaks = memory.peaks()
    assert peaks.server_rss_peak_bytes is not None
    assert 120 * MIB < peaks.server_rss_peak_bytes < 160 * MIB
    assert (peaks.source or "").startswith("process tree")


def test_memory_that_comes_later_is_seen() -> None:
    grows = "import time; time.sleep(0.3); held = bytearray(b'x' * (100 << 20)); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", grows]) as process:
        with Sampler(process.pid) as memory:
            wait_until(lambda: (tree_rss_bytes(process.pid) or 0) > 100 * MIB)
            time.sleep(1.2)
        process.kill()
    assert (memory.peaks().server_rss_peak_bytes or 0) > 100 * MIB


def test_a_server_elsewhere_is_not_measured() -> None:
    with Sampler(None) as memory:
        pass
    peaks = memory.peaks()
    assert (peaks.server_rss_peak_bytes, peaks.device_used_peak_bytes, peaks.source) == (None, None, None)


def test_without_a_device_none_is_named() -> None:
    """With one, what it uses is a number; on a machine without, nothing is claimed."""
    assert (gpu.used_bytes() is None) == (gpu.device_names() == [])


def test_a_busy_server_is_seen_to_take_its_processor_time() -> None:
    """One that spins takes nearly all of the time it is given."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        try:
            with Sampler(process.pid) as sampler:
                time.sleep(1.7)
        finally:
            process.kill()
    drawn = sampler.drawn()
    cpu, at = memoryview(drawn.cpu).cast("q"), memoryview(drawn.at).cast("q")
    assert len(cpu) == len(at) >= 3
    assert list(cpu) == sorted(cpu)
    assert cpu[-1] > 0.3e9


def somebody_elses() -> int:
    """The id of a process that spins and is no child of ours: who started it has ended. It leaves by itself too."""
    spins = "import time\nend = time.monotonic() + 30\nwhile time.monotonic() < end: pass"
    quiet = "stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL"
    starts = f"import subprocess, sys\nprint(subprocess.Popen([sys.executable, '-c', {spins!r}], {quiet}).pid)"
    return int(subprocess.run([sys.executable, "-c", starts], capture_output=True, text=True, check=True).stdout)


def test_the_machine_of_a_server_is_seen() -> None:
    """A server that spins, beside another who does; it has a child, is stopped for a while, and pages nothing in."""
    server_spins = (
        "import subprocess, sys; c = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
    )
    start_ns = time.monotonic_ns()
    other = somebody_elses()
    with subprocess.Popen([sys.executable, "-c", server_spins + "while True: pass"]) as server:
        try:
            with Sampler(server.pid) as sampler:
                time.sleep(2.6)
                os.kill(server.pid, signal.SIGSTOP)
                time.sleep(1.2)
            end_ns = time.monotonic_ns()
            family = psutil.Process(server.pid).children()
        finally:
            os.kill(server.pid, signal.SIGCONT)
            for child in family:
                child.kill()
            server.kill()
            os.kill(other, signal.SIGKILL)
    columns = sampler.host()
    told = host_told(columns, start_ns, end_ns, cores=2)
    assert {len(column) for column in columns.values()} == {len(columns["at"])}
    assert 0.1 < told["server_cpu_cores"] < 1.05
    assert told["other_cpu_cores"] > 0.1
    assert 0.1 < told["busiest_thread_share"] < 1.05
    assert 0 < told["stopped_share"] < 0.6
    assert told["rss_end_bytes"] > 4 * MIB
    assert told["rss_start_bytes"] > 0
    assert told["context_switches_per_s"] > 0
    assert told["run_queue_mean"] > 0
    assert 0 <= told["steal_share"] <= 1
    late = host_told(columns, end_ns - 900_000_000, end_ns)
    assert late["server_cpu_cores"] < 0.2, "it was stopped"


def test_to_look_takes_next_to_nothing() -> None:
    """Of a server with 200 threads: in 20 looks, as in 10 s, less than a hundredth of that time."""
    thread = "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()"
    many = f"import threading, time\nfor _ in range(200): {thread}\ntime.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", many]) as process:
        try:
            wait_until(lambda: len(os.listdir(f"/proc/{process.pid}/task")) == 201)
            reader = host.Reader(process.pid)
            begun = time.thread_time()
            rows = [reader.look() for _ in range(20)]
            taken_s = time.thread_time() - begun
        finally:
            process.kill()
    assert all(rows)
    assert taken_s < 0.1


def test_what_an_ended_child_took_stays_counted() -> None:
    sampler = Sampler(None)
    for seen in ({1: 2.0, 7: 3.0}, {1: 2.5}):
        sampler.note(seen)
    assert list(memoryview(sampler.drawn().cpu).cast("q")) == [5_000_000_000, 5_500_000_000]
