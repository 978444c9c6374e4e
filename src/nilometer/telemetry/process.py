"""Memory and processor time of a local server's process tree."""

from __future__ import annotations

import psutil

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def listening_pid(host: str, port: int) -> int | None:
    """The process that listens on this port of this machine; None where it is remote or may not be seen."""
    if host not in _LOOPBACK:
        return None
    try:
        found = psutil.net_connections(kind="tcp")
    except psutil.Error:
        return None
    pids = (c.pid for c in found if c.status == psutil.CONN_LISTEN and c.laddr and c.laddr.port == port)
    return next((pid for pid in pids if pid is not None), None)


def tree_rss_bytes(pid: int) -> int | None:
    """Resident memory of a process and all its children; shared pages count in each. None when it is gone."""
    try:
        root = psutil.Process(pid)
        family = [root, *root.children(recursive=True)]
    except psutil.Error:
        return None
    sizes = [size for process in family if (size := _rss(process)) is not None]
    return sum(sizes) if sizes else None


def tree_cpu_s(pid: int) -> dict[int, float]:
    """Processor time so far of a process and each of its children, by process; none of those that are gone."""
    try:
        root = psutil.Process(pid)
        family = [root, *root.children(recursive=True)]
    except psutil.Error:
        return {}
    return {process.pid: used for process in family if (used := _cpu_s(process)) is not None}


def _cpu_s(process: psutil.Process) -> float | None:
    try:
        times = process.cpu_times()
    except psutil.Error:
        return None
    return float(times.user + times.system)


def _rss(process: psutil.Process) -> int | None:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return None
