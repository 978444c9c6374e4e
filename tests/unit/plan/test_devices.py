from __future__ import annotations

import pytest

from nilometer.core.errors import SpecError
from nilometer.plan.devices import DEVICES, device, device_of, nearest


def test_the_table_as_its_sources_have_it() -> None:
    h100 = device("H100-SXM-80G")
    assert (h100.memory_bytes, h100.bandwidth_bytes_per_s, h100.link_bytes_per_s) == (80e9, 3350e9, 450e9)
    assert dict(h100.flops) == {"fp16": 989e12, "fp8": 1978e12, "int8": 1978e12}
    assert h100.visible_bytes == pytest.approx(79.19 * 2**30)
    assert h100.source.startswith("aiconfigurator")
    assert len(DEVICES) == 52


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("h100", "H100-SXM-80G"),
        ("NVIDIA H100 80GB HBM3", "H100-SXM-80G"),
        ("rtx 4090", "RTX-4090"),
        ("NVIDIA GeForce RTX 4090", "RTX-4090"),
        ("4090", "RTX-4090"),
        ("Tesla T4", "T4"),
        ("NVIDIA A100-SXM4-40GB", "A100-SXM-40G"),
        ("amd instinct mi300x", "MI300X"),
        ("Apple M4 Max", "Apple-M4-Max"),
        ("l40s", "L40S"),
    ],
)
def test_a_device_goes_by_many_names(said: str, meant: str) -> None:
    assert device(said).name == meant


def test_every_row_says_where_it_is_from() -> None:
    assert all(one.source for one in DEVICES.values())
    assert {one.name for one in DEVICES.values() if one.bandwidth_bytes_per_s is None} == {"Ascend-910B-64G"}
    assert {one.confidence for one in DEVICES.values()} == {"high", "medium", "low"}


def test_an_unknown_device_is_refused_with_the_nearest() -> None:
    with pytest.raises(SpecError) as refused:
        device("h1000")
    assert refused.value.slug == "device_unknown"
    assert "H100-SXM-80G" in str(refused.value.params["nearest"])
    assert nearest("zzzz")


def test_two_numbers_make_a_device() -> None:
    made = device_of(100e9, 2e12, 16e9)
    assert (made.bandwidth_bytes_per_s, made.flops["fp16"], made.memory_bytes) == (100e9, 2e12, 16e9)


@pytest.mark.parametrize(("bandwidth", "flops"), [(0.0, 1e12), (1e9, -1.0), (float("nan"), 1e12), (1e9, float("inf"))])
def test_rates_that_are_none_are_refused(bandwidth: float, flops: float) -> None:
    with pytest.raises(SpecError, match="device_rate_unusable"):
        device_of(bandwidth, flops)
