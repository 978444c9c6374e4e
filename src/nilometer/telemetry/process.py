"""Memory of a local server's process tree."""

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


def _rss(process: psutil.Process) -> int | None:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return None
