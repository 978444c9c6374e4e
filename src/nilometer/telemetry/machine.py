"""The facts of this machine that figures depend on. What cannot be read is None; nothing is changed."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import psutil

from nilometer import __version__
from nilometer.core.environment import Client, Machine

from .gpu import device_names

_CPUINFO = Path("/proc/cpuinfo")
_GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
_CGROUP = Path("/sys/fs/cgroup")


def read_machine() -> Machine:
    """Operating system, processor, memory, container limits, load, devices."""
    return Machine(
        os=platform.platform(terse=True),
        kernel=platform.release(),
        cpu_model=cpu_model(),
        cpu_count=os.cpu_count(),
        cpu_governor=_line(_GOVERNOR),
        memory_bytes=psutil.virtual_memory().total,
        container_cpu_limit=container_cpus(_line(_CGROUP / "cpu.max")),
        container_memory_limit_bytes=container_bytes(_line(_CGROUP / "memory.max")),
        load_average_1m=round(psutil.getloadavg()[0], 2),
        devices=device_names(),
    )


def read_client(event_loop: str | None = None, workers: int | None = None) -> Client:
    """This program: version, Python, event loop and number of the workers, HTTP parser."""
    import httptools  # noqa: PLC0415 - only its version is wanted

    return Client(
        nilometer=__version__,
        python=platform.python_version(),
        event_loop=event_loop,
        http_parser=f"httptools {httptools.__version__}",
        workers=workers,
    )


def cpu_model() -> str | None:
    """The processor's name as the kernel or the platform gives it."""
    text = _text(_CPUINFO) or ""
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return value.strip()
    return platform.processor() or None


def container_cpus(cpu_max: str | None) -> float | None:
    """cgroup v2 `cpu.max` ("QUOTA PERIOD" in us, or "max PERIOD") in processors; None = no limit."""
    quota, _, period = (cpu_max or "max").partition(" ")
    if quota == "max" or not quota.isdigit() or not period.isdigit() or not int(period):
        return None
    return int(quota) / int(period)


def container_bytes(memory_max: str | None) -> int | None:
    """cgroup v2 `memory.max` in bytes; None = no limit."""
    return int(memory_max) if memory_max and memory_max.isdigit() else None


def container_free_bytes() -> int | None:
    """What is left of the container's memory limit (cgroup v2); None = no limit, or it cannot be read."""
    limit, used = container_bytes(_line(_CGROUP / "memory.max")), container_bytes(_line(_CGROUP / "memory.current"))
    return None if limit is None else max(0, limit - (used or 0))


def _text(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return None


def _line(path: Path) -> str | None:
    text = _text(path)
    return text.strip() if text else None
