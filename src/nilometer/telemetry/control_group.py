"""The processor quotas that a process is under, as its control groups (cgroup v2 or v1) count them.

A quota may be set on any group above the process, and each counts for itself; one that has none counts no periods.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from nilometer.metrics.host_figures import UNSEEN

ROOT = Path("/sys/fs/cgroup")
_NS_PER_US = 1_000
_V1_FOLDERS = ("cpu", "cpu,cpuacct", "cpuacct,cpu")


class Quota(NamedTuple):
    """Periods so far, those in which the process was held back, and for how long (ns); -1 where none is told."""

    periods: int = UNSEEN
    throttled: int = UNSEEN
    throttled_ns: int = UNSEEN


class Quotas:
    """The groups of one process, looked for once."""

    def __init__(self, pid: int, root: Path = ROOT, told: str | None = None) -> None:
        self._files = [path for path in _files(_groups(pid) if told is None else told, root) if path.is_file()]

    def read(self) -> Quota:
        """The sums over all its groups."""
        seen = [quota for path in self._files if (quota := quota_of(_text(path))) is not None]
        return Quota(*map(sum, zip(*seen, strict=True))) if seen else Quota()


def quota_of(text: str) -> Quota | None:
    """What a `cpu.stat` tells: v2 in us (`throttled_usec`), v1 in ns (`throttled_time`); None of the root group's."""
    rows = (line.partition(" ") for line in text.splitlines())
    found = {name: int(value) for name, _, value in rows if value.isdigit()}
    if "nr_periods" not in found or "nr_throttled" not in found:
        return None
    held_ns = found.get("throttled_time", found.get("throttled_usec", 0) * _NS_PER_US)
    return Quota(found["nr_periods"], found["nr_throttled"], held_ns)


def _files(told: str, root: Path) -> Iterator[Path]:
    """The `cpu.stat` of the process's group and of each above it, by its /proc/PID/cgroup."""
    for line in told.splitlines():
        _, controllers, group = (*line.split(":", 2), "", "")[:3]
        if "cpu" in controllers.split(","):
            folders = [root / name for name in dict.fromkeys((controllers, *_V1_FOLDERS)) if (root / name).is_dir()][:1]
        elif not controllers:
            folders = [root]
        else:
            continue
        for folder in folders:
            yield from (folder / part / "cpu.stat" for part in _upwards(group))


def _upwards(group: str) -> Iterator[str]:
    """A group and those above it, below the mount; one that lies outside of what is mounted is seen as its root."""
    parts = [part for part in PurePosixPath(group).parts if part not in ("/", "..")]
    for n in range(len(parts), -1, -1):
        yield os.path.join(*parts[:n]) if n else ""


def _groups(pid: int) -> str:
    return _text(Path(f"/proc/{pid}/cgroup"))


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
