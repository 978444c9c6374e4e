"""NVIDIA devices through NVML, where the extra `gpu` and a device are there; nothing elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType


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


def used_bytes() -> int | None:
    """Memory in use over all devices; None where none can be seen."""
    with _nvml() as nvml:
        if nvml is None or not nvml.nvmlDeviceGetCount():
            return None
        handles = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
        return sum(int(nvml.nvmlDeviceGetMemoryInfo(handle).used) for handle in handles)
