"""NVIDIA devices through NVML, where the extra `gpu` and a device are there; nothing elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any, NamedTuple

from nilometer.metrics.host_figures import UNSEEN

HELD_BACK = 0x04 | 0x08 | 0x20 | 0x40 | 0x80
"""Bits of NVML's reasons why a clock is low that a load does not explain: power cap, hardware slowdown, heat as the
driver or the device sees it, power brake. Idleness and clocks that somebody set are none."""
_LOOKS_BETWEEN = 8
"""Who computes where is asked for anew after so many looks."""


class Counters(NamedTuple):
    """A device at a moment: percent, percent, MHz, mW, bits; None where it does not tell."""

    busy: int | None = None
    memory_busy: int | None = None
    clock_mhz: int | None = None
    power_mw: int | None = None
    reasons: int | None = None


class Held(NamedTuple):
    """The devices that hold a server."""

    counters: tuple[Counters, ...]

    @property
    def devices(self) -> int:
        return len(self.counters)

    @property
    def power_mw(self) -> int | None:
        """Of all of them, None where one does not tell."""
        return self._all("power_mw", sum)

    def columns(self) -> dict[str, int]:
        """The columns of `HostRow` that are of devices; -1 where one of them does not tell."""
        slow = self._all("reasons", lambda reasons: int(any(bits & HELD_BACK for bits in reasons)))
        told = {
            "gpu_busy": self._all("busy", _mean),
            "gpu_memory_busy": self._all("memory_busy", _mean),
            "gpu_clock_mhz": self._all("clock_mhz", min),
            "gpu_power_mw": self.power_mw,
            "gpu_throttled": slow,
        }
        return {name: UNSEEN if value is None else value for name, value in told.items()}

    def _all(self, name: str, of: Callable[[Sequence[int]], int]) -> int | None:
        values = [getattr(one, name) for one in self.counters]
        return None if not values or None in values else of(values)


def _mean(values: Sequence[int]) -> int:
    return round(sum(values) / len(values))


class Seen(NamedTuple):
    """A device as its driver shows it."""

    name: str
    total_bytes: int


@contextmanager
def _nvml() -> Iterator[ModuleType | None]:
    nvml = _opened()
    try:
        yield nvml
    finally:
        if nvml is not None:
            nvml.nvmlShutdown()


def _opened() -> ModuleType | None:
    try:
        import pynvml  # noqa: PLC0415 - an extra
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    return pynvml  # type: ignore[no-any-return,unused-ignore]


def device_names() -> list[str]:
    """Names of the devices NVML sees, in its order."""
    with _nvml() as nvml:
        return [] if nvml is None else [str(nvml.nvmlDeviceGetName(handle)) for handle in _handles(nvml)]


def first() -> Seen | None:
    """The first device NVML sees; None where there is none."""
    with _nvml() as nvml:
        if nvml is None or not nvml.nvmlDeviceGetCount():
            return None
        handle = nvml.nvmlDeviceGetHandleByIndex(0)
        return Seen(str(nvml.nvmlDeviceGetName(handle)), int(nvml.nvmlDeviceGetMemoryInfo(handle).total))


def used_bytes() -> int | None:
    """Memory in use over all devices; None where none can be seen."""
    devices = Devices()
    try:
        return devices.used_bytes()
    finally:
        devices.close()


def _handles(nvml: ModuleType) -> list[object]:
    return [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]


class Devices:
    """All devices, looked at again and again; close it after use. To open the driver takes long, to look does not."""

    def __init__(self, nvml: Any = None) -> None:
        self._nvml: Any = nvml or _opened()
        self._handles = [] if self._nvml is None else _handles(self._nvml)
        self._held: list[object] = []
        self._looks = 0

    def close(self) -> None:
        """May be called twice."""
        nvml, self._nvml, self._handles = self._nvml, None, []
        if nvml is not None:
            nvml.nvmlShutdown()

    def used_bytes(self) -> int | None:
        """Memory in use over all of them; None where there are none."""
        memory = [self._told(lambda n, h: n.nvmlDeviceGetMemoryInfo(h).used, handle) for handle in self._handles]
        known = [used for used in memory if used is not None]
        return sum(known) if known else None

    def holding(self, pids: Collection[int]) -> Held | None:
        """Those on which one of these processes computes; None where none is seen to.

        In a container NVML may know processes by numbers of the host's: then none is seen.
        """
        if not self._handles:
            return None
        if self._looks % _LOOKS_BETWEEN == 0:
            self._held = [handle for handle in self._handles if self._computes(handle, pids)]
        self._looks += 1
        return Held(tuple(map(self._counters, self._held))) if self._held else None

    def _computes(self, handle: object, pids: Collection[int]) -> bool:
        try:
            return any(one.pid in pids for one in self._nvml.nvmlDeviceGetComputeRunningProcesses(handle))
        except self._nvml.NVMLError:
            return False

    def _counters(self, handle: object) -> Counters:
        return Counters(
            busy=self._told(lambda n, h: n.nvmlDeviceGetUtilizationRates(h).gpu, handle),
            memory_busy=self._told(lambda n, h: n.nvmlDeviceGetUtilizationRates(h).memory, handle),
            clock_mhz=self._told(lambda n, h: n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_SM), handle),
            power_mw=self._told(lambda n, h: n.nvmlDeviceGetPowerUsage(h), handle),
            reasons=self._told(lambda n, h: n.nvmlDeviceGetCurrentClocksThrottleReasons(h), handle),
        )

    def _told(self, ask: Callable[[Any, object], int], handle: object) -> int | None:
        """What a device says; None where it, or this driver, says no such thing."""
        try:
            return int(ask(self._nvml, handle))
        except (self._nvml.NVMLError, AttributeError):
            return None
