"""The machine of a local server, look by look: who takes its processors, and what holds the server back.

Reads files of /proc and of the server's control groups; on a machine without /proc there is nothing to see. What costs
much, to find the processes of both trees and every thread of the server, is done seldom enough to take little.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from nilometer.core.clock import NS_PER_S
from nilometer.metrics.host_figures import UNSEEN, HostRow

from .control_group import Quotas

SELDOM_NS = 2 * NS_PER_S
"""The costly look comes so often at most,"""
SELDOM_TIMES = 400
"""and takes no more than this part of the time."""
_TICK_NS = NS_PER_S // (os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100)
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_MOST_BYTES = 1 << 16


def is_here() -> bool:
    """Whether this machine shows itself."""
    return bool(_read("/proc/stat"))


class Stat(NamedTuple):
    """What /proc/PID/stat says of a process or a thread."""

    state: bytes
    parent: int
    faults: int
    cpu: int
    """ns."""
    born: int
    rss: int
    """Bytes."""


class Reader:
    """Looks at the machine for a server of this process id."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._server, self._own = _Tally(), _Tally()
        self._pids: tuple[list[int], list[int]] = ([pid], [])
        self._threads: dict[str, int] = {}
        self._next_seldom = 0
        self._quotas = Quotas(pid)

    @property
    def pids(self) -> list[int]:
        """The server's processes, as they were last looked for."""
        return self._pids[0]

    def look(self) -> HostRow | None:
        """The machine now; None where the server's process is gone."""
        thread_cpu = self._seldom()
        server = {pid: stat for pid in self._pids[0] if (stat := stat_of(f"/proc/{pid}/stat")) is not None}
        if not server:
            return None
        own = {pid: stat for pid in self._pids[1] if (stat := stat_of(f"/proc/{pid}/stat")) is not None}
        at = time.monotonic_ns()
        quota = self._quotas.read()
        return HostRow(
            at=at,
            server_cpu=self._server.cpu(server),
            own_cpu=self._own.cpu(own),
            faults=self._server.faults(server),
            rss=sum(stat.rss for stat in server.values()),
            stopped=int(any(stat.state in b"Tt" for stat in server.values())),
            thread_cpu=thread_cpu,
            periods=quota.periods,
            throttled=quota.throttled,
            throttled_ns=quota.throttled_ns,
        )._replace(**machine(_read("/proc/stat")))

    def _seldom(self) -> int:
        """Who belongs to whom, and what the server's busiest thread took since last asked, where it is time."""
        start = time.monotonic_ns()
        if start < self._next_seldom:
            return UNSEEN
        self._pids = trees(_parents(), self._pid, os.getpid())
        threads = dict(_threads(self._pids[0]))
        before, self._threads = self._threads, threads
        end = time.monotonic_ns()
        self._next_seldom = start + max(SELDOM_NS, (end - start) * SELDOM_TIMES)
        return max((cpu - before.get(name, cpu if not before else 0) for name, cpu in threads.items()), default=UNSEEN)


class _Tally:
    """Sums over processes that come and go: what one took stays counted when it has ended."""

    def __init__(self) -> None:
        self._cpu: dict[tuple[int, int], int] = {}
        self._faults: dict[tuple[int, int], int] = {}

    def cpu(self, seen: Mapping[int, Stat]) -> int:
        self._cpu |= {(pid, stat.born): stat.cpu for pid, stat in seen.items()}
        return sum(self._cpu.values())

    def faults(self, seen: Mapping[int, Stat]) -> int:
        self._faults |= {(pid, stat.born): stat.faults for pid, stat in seen.items()}
        return sum(self._faults.values())


def machine(told: bytes) -> dict[str, int]:
    """The columns that /proc/stat tells; of what it does not tell none."""
    rows = {words[0]: words[1:] for line in told.splitlines() if (words := line.split())}
    found: dict[str, int] = {}
    if len(cpu := [int(word) for word in rows.get(b"cpu", ())]) >= 8:
        user, nice, system, idle, waiting, irq, soft, steal = cpu[:8]  # a guest's time is within that of its user
        busy = user + nice + system + irq + soft
        found |= {"machine_cpu": busy * _TICK_NS, "steal": steal * _TICK_NS}
        found["cpu_time"] = (busy + idle + waiting + steal) * _TICK_NS
    if running := rows.get(b"procs_running"):
        found["running"] = max(0, int(running[0]) - 1)
    if switches := rows.get(b"ctxt"):
        found["switches"] = int(switches[0])
    return found


def trees(parents: Mapping[int, int], server: int, own: int) -> tuple[list[int], list[int]]:
    """The processes of the server, and those of ours that are none of the server's.

    A server that we started is within our tree; one that started us (in a test) has us within its own.
    """
    children: dict[int, list[int]] = defaultdict(list)
    for pid, parent in parents.items():
        children[parent].append(pid)
    of_server, of_own = _below(server, children), _below(own, children)
    if own in of_server and own != server:
        of_server -= of_own
    return sorted(of_server), sorted(of_own - of_server)


def _below(root: int, children: Mapping[int, list[int]]) -> set[int]:
    found, left = {root}, [root]
    while left:
        new = [pid for pid in children.get(left.pop(), ()) if pid not in found]
        found.update(new)
        left += new
    return found


def _parents() -> dict[int, int]:
    """Of every process that may be seen."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (stat := stat_of(f"/proc/{name}/stat")) is not None:
            found[int(name)] = stat.parent
    return found


def _threads(pids: list[int]) -> Iterator[tuple[str, int]]:
    """Each thread and the ns that it took so far."""
    for pid in pids:
        folder = f"/proc/{pid}/task"
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        for name in names:
            precise = _read(f"{folder}/{name}/schedstat").split()
            if precise:
                yield name, int(precise[0])
            elif (stat := stat_of(f"{folder}/{name}/stat")) is not None:
                yield name, stat.cpu


def stat_of(path: str) -> Stat | None:
    """The process or thread of such a file; None where it is gone."""
    _, closed, rest = _read(path).rpartition(b")")
    words = rest.split()
    if not closed or len(words) < 22:
        return None
    return Stat(
        state=words[0],
        parent=int(words[1]),
        faults=int(words[9]),
        cpu=(int(words[11]) + int(words[12])) * _TICK_NS,
        born=int(words[19]),
        rss=int(words[21]) * _PAGE_BYTES,
    )


def _read(path: str) -> bytes:
    """The beginning of a file of the kernel's; nothing of one that is not there."""
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return b""
    try:
        return os.read(file, _MOST_BYTES)
    except OSError:
        return b""
    finally:
        os.close(file)
