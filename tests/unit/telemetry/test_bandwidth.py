from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from nilometer.core.errors import EngineError
from nilometer.plan.devices import Device
from nilometer.telemetry import bandwidth


@pytest.fixture(scope="module")
def measured() -> Iterator[tuple[Device, float]]:
    started = time.monotonic()
    yield bandwidth.this_device(0.3), time.monotonic() - started


def test_this_machine_is_within_what_machines_can_do(measured: tuple[Device, float]) -> None:
    """From a slow single channel of DDR3 shared by others to the fastest memory of any host; likewise arithmetic."""
    made, _ = measured
    assert made.bandwidth_bytes_per_s is not None
    assert 1e9 < made.bandwidth_bytes_per_s < 3e12
    assert 1e9 < made.flops["fp16"] < 1e15
    assert 0 < made.memory_bytes < 1e14
    assert (made.kind, made.confidence) == ("cpu", "measured")


def test_it_takes_about_as_long_as_asked(measured: tuple[Device, float]) -> None:
    assert measured[1] < 8


def test_the_best_of_the_rounds_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter([0.0, *(0.0, 3.0), *(3.0, 4.0), *(4.0, 6.0), 6.0])
    monkeypatch.setattr(time, "perf_counter", lambda: next(ticks))
    assert bandwidth.best_seconds(lambda: None, 5.0) == 1.0


def test_without_memory_nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bandwidth, "SHARE_OF_FREE", 0.0)
    with pytest.raises(EngineError, match="memory_too_small_to_measure"):
        bandwidth.read_bandwidth(0.1, 1)
