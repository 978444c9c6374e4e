"""NVIDIA devices through NVML, where the extra `gpu` and a device are there; nothing elsewhere."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import NamedTuple


class Held(NamedTuple):
    """The devices that hold a server. `power_mw` of all of them, None where one does not tell."""

    devices: int
    power_mw: int | None


class Seen(NamedTuple):
    """A device as its driver shows it."""

    name: str
    total_bytes: int


@contextmanager
def _nvml() -> Iterator[ModuleType | None]:
    try:
        import pynvml  # noqa: PLC0415 - an extra
    except ImportError:
        yield None
        return
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        yield None
        return
    try:
        yield pynvml
    finally:
        pynvml.nvmlShutdown()


def device_names() -> list[str]:
    """Names of the devices NVML sees, in its order."""
    with _nvml() as nvml:
        if nvml is None:
            return []
        return [
            str(nvml.nvmlDeviceGetName(nvml.nvmlDeviceGetHandleByIndex(i))) for i in range(nvml.nvmlDeviceGetCount())
        ]


def first() -> Seen | None:
    """The first device NVML sees; None where there is none."""
    with _nvml() as nvml:
        if nvml is None or not nvml.nvmlDeviceGetCount():
            return None
        handle = nvml.nvmlDeviceGetHandleByIndex(0)
        return Seen(str(nvml.nvmlDeviceGetName(handle)), int(nvml.nvmlDeviceGetMemoryInfo(handle).total))


def used_bytes() -> int | None:
    """Memory in use over all devices; None where none can be seen."""
    with _nvml() as nvml:
        if nvml is None or not nvml.nvmlDeviceGetCount():
            return None
        handles = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
        return sum(int(nvml.nvmlDeviceGetMemoryInfo(handle).used) for handle in handles)


def holding(pids: Collection[int]) -> Held | None:
    """The devices on which one of these processes computes; None where none is seen to.

    In a container NVML may know processes by numbers of the host's: then none is seen.
    """
    with _nvml() as nvml:
        if nvml is None:
            return None
        handles = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
        held = [handle for handle in handles if _computes(nvml, handle, pids)]
        powers = [_power_mw(nvml, handle) for handle in held]
        known = [power for power in powers if power is not None]
        return Held(len(held), sum(known) if len(known) == len(held) else None) if held else None


def _computes(nvml: ModuleType, handle: object, pids: Collection[int]) -> bool:
    try:
        return any(one.pid in pids for one in nvml.nvmlDeviceGetComputeRunningProcesses(handle))
    except nvml.NVMLError:
        return False


def _power_mw(nvml: ModuleType, handle: object) -> int | None:
    try:
        return int(nvml.nvmlDeviceGetPowerUsage(handle))
    except nvml.NVMLError:
        return None
