from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from nilometer.core.environment import Machine
from nilometer.core.errors import EngineError, SpecError
from nilometer.plan.devices import Device
from nilometer.telemetry import bandwidth, gpu


@pytest.fixture(scope="module")
def measured() -> Iterator[tuple[Device, float]]:
    started = time.monotonic()
    yield bandwidth.this_device(0.3, processor=True), time.monotonic() - started


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


@pytest.mark.parametrize(("cut", "took"), [(False, 1.0), (True, 2.0)])
def test_the_best_of_the_rounds_counts_and_under_a_quota_their_mean(
    cut: bool, took: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = iter([0.0, *(0.0, 3.0), *(3.0, 4.0), *(4.0, 6.0)])
    monkeypatch.setattr(time, "perf_counter", lambda: next(ticks))
    assert bandwidth.round_seconds(lambda: None, 5.0, cut=cut) == took


def test_without_memory_nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bandwidth, "SHARE_OF_FREE", 0.0)
    with pytest.raises(EngineError, match="memory_too_small_to_measure"):
        bandwidth.read_bandwidth(0.1, 1)


def test_a_container_that_is_full_leaves_nothing_to_measure_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bandwidth, "container_free_bytes", lambda: 128 << 20)
    with pytest.raises(EngineError) as refused:
        bandwidth.read_bandwidth(0.1, 1)
    assert refused.value.params == {"free_mb": 32, "least_mb": 64}


@pytest.mark.parametrize(
    ("cores", "limit", "threads", "cut"),
    [(8, None, 8, False), (8, 1.5, 2, True), (2, 4.0, 2, False), (4, 0.5, 1, True)],
)
def test_the_containers_limits_are_heeded(
    cores: int, limit: float | None, threads: int, cut: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = Machine(
        cpu_model="EPYC", memory_bytes=64 << 30, container_cpu_limit=limit, container_memory_limit_bytes=4 << 30
    )
    asked: dict[str, object] = {}

    def reads(seconds: float, threads: int, *, cut: bool) -> float:
        asked.update(reading=seconds, threads=threads, cut=cut)
        return 40e9

    def multiplies(seconds: float, *, cut: bool) -> float:
        assert cut is asked["cut"]
        return seconds * 1e11

    monkeypatch.setattr(bandwidth, "read_machine", lambda: there)
    monkeypatch.setattr(bandwidth, "usable_cores", lambda: cores)
    monkeypatch.setattr(bandwidth, "read_bandwidth", reads)
    monkeypatch.setattr(bandwidth, "multiply_rate", multiplies)
    made = bandwidth.this_device(1.2, processor=True)
    assert asked == {"reading": pytest.approx(0.7), "threads": threads, "cut": cut}
    assert (made.name, made.memory_bytes, made.bandwidth_bytes_per_s) == ("EPYC", 4 << 30, 40e9)
    assert made.flops["fp16"] == pytest.approx(0.5e11)


def test_a_gpu_is_its_row_with_the_memory_its_driver_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "first", lambda: gpu.Seen("NVIDIA H100 80GB HBM3", 85_028_503_552))
    made = bandwidth.this_device()
    assert (made.name, made.visible_bytes, made.bandwidth_bytes_per_s) == ("H100-SXM-80G", 85_028_503_552, 3350e9)


def test_a_gpu_that_no_row_knows_is_refused_not_replaced_by_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "first", lambda: gpu.Seen("NVIDIA Z9000", 1 << 30))
    with pytest.raises(SpecError, match="device_unknown"):
        bandwidth.this_device()
