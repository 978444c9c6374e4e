"""Devices through a driver of the test's own: which hold the server, and what they tell."""

# ruff: noqa: N802 - the names are those of NVML

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from nilometer.metrics.host_figures import UNSEEN
from nilometer.telemetry.gpu import Counters, Devices, Held


class Driver:
    """Three devices; the server's process 7 computes on the first two, the second of which is too hot."""

    NVML_CLOCK_SM = 1

    class NVMLError(Exception):
        pass

    def __init__(self) -> None:
        self.shut = 0
        self.asked = 0

    def nvmlDeviceGetCount(self) -> int:
        return 3

    def nvmlDeviceGetHandleByIndex(self, i: int) -> int:
        return i

    def nvmlDeviceGetComputeRunningProcesses(self, i: int) -> list[Any]:
        self.asked += 1
        return [SimpleNamespace(pid=7 if i < 2 else 8)]

    def nvmlDeviceGetMemoryInfo(self, i: int) -> Any:
        return SimpleNamespace(used=100 * (i + 1))

    def nvmlDeviceGetUtilizationRates(self, i: int) -> Any:
        return SimpleNamespace(gpu=80 + 10 * i, memory=40)

    def nvmlDeviceGetClockInfo(self, i: int, kind: int) -> int:
        assert kind == self.NVML_CLOCK_SM
        return (1800, 1200, 300)[i]

    def nvmlDeviceGetPowerUsage(self, i: int) -> int:
        if i == 1:
            raise self.NVMLError
        return 250_000

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, i: int) -> int:
        return (0x1, 0x20, 0x0)[i]

    def nvmlShutdown(self) -> None:
        self.shut += 1


def test_only_what_holds_the_server_is_told() -> None:
    driver = Driver()
    devices = Devices(driver)
    held = devices.holding([7, 9])
    assert held is not None
    assert held.devices == 2
    assert held.columns() == {
        "gpu_busy": 85,
        "gpu_memory_busy": 40,
        "gpu_clock_mhz": 1200,
        "gpu_power_mw": UNSEEN,  # the second does not tell
        "gpu_throttled": 1,
    }
    assert devices.used_bytes() == 600
    for _ in range(7):
        devices.holding([7, 9])
    assert driver.asked == 3  # who computes where is not asked each time
    devices.close()
    devices.close()
    assert driver.shut == 1
    assert devices.holding([7]) is None
    assert devices.used_bytes() is None


def test_none_holds_a_server_that_no_device_knows() -> None:
    assert Devices(Driver()).holding([1]) is None


def test_idleness_and_a_clock_that_was_set_hold_nothing_back() -> None:
    """Bits 0x1 and 0x2 of NVML; a power cap is 0x4."""
    assert Held((Counters(reasons=0x3), Counters(reasons=0x100))).columns()["gpu_throttled"] == 0
    assert Held((Counters(reasons=0x3), Counters(reasons=0x4))).columns()["gpu_throttled"] == 1
