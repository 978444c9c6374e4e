from __future__ import annotations

import pytest

from nilometer.core.errors import SpecError
from nilometer.plan.device_table import SOURCES
from nilometer.plan.devices import DEVICES, Device, cuda_bytes, device, device_of, nearest, shown_share
from nilometer.plan.memory.budget import LABEL_SPREAD

GIB = 2.0**30
SEEN = [one for one in DEVICES.values() if one.visible_bytes is not None]
OWN_MEMORY = [one for one in SEEN if one.memory != "shared"]


def test_the_table_as_its_sources_have_it() -> None:
    h100 = device("H100-SXM-80G")
    assert (h100.memory_bytes, h100.bandwidth_bytes_per_s, h100.link_bytes_per_s) == (80 * GIB, 3350e9, 450e9)
    assert dict(h100.flops) == {"fp16": 989e12, "fp8": 1978e12, "int8": 1978e12}
    assert h100.visible_bytes == pytest.approx(79.19 * GIB)
    assert h100.source.startswith("aiconfigurator")
    assert len(DEVICES) == 92


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("h100", "H100-SXM-80G"),
        ("NVIDIA H100 80GB HBM3", "H100-SXM-80G"),
        ("NVIDIA H100 PCIe", "H100-PCIe-80G"),
        ("NVIDIA GH200 480GB", "GH200-96G"),
        ("rtx 4090", "RTX-4090"),
        ("NVIDIA GeForce RTX 4090", "RTX-4090"),
        ("4090", "RTX-4090"),
        ("NVIDIA GeForce RTX 4070 Ti SUPER", "RTX-4070-Ti-Super"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "RTX-PRO-6000-Workstation"),
        ("NVIDIA B300 SXM6 AC", "B300-SXM"),
        ("Tesla T4", "T4"),
        ("Tesla P100-PCIE-16GB", "P100-PCIe-16G"),
        ("NVIDIA A100-SXM4-40GB", "A100-SXM-40G"),
        ("NVIDIA A100 80GB PCIe", "A100-PCIe-80G"),
        ("amd instinct mi300x", "MI300X"),
        ("AMD Radeon RX 7900 XTX", "RX-7900-XTX"),
        ("Apple M4 Max", "Apple-M4-Max"),
        ("Apple M1", "Apple-M1"),
        ("l40s", "L40S"),
    ],
)
def test_a_device_goes_by_many_names(said: str, meant: str) -> None:
    assert device(said).name == meant


def test_every_row_says_where_it_is_from() -> None:
    assert all(one.source for one in DEVICES.values())
    assert all(bool(one.visible_source) == (one.visible_bytes is not None) for one in DEVICES.values())
    assert {one.name for one in DEVICES.values() if one.bandwidth_bytes_per_s is None} == {"Ascend-910B-64G"}
    assert {one.name for one in DEVICES.values() if "fp16" not in one.flops} == {
        one.name for one in DEVICES.values() if one.kind == "cpu"
    }
    assert {one.confidence for one in DEVICES.values()} == {"high", "medium", "low"}


def test_no_figure_is_from_memory() -> None:
    words = " ".join(f"{one.source} {one.note}" for one in DEVICES.values()).lower()
    assert not [said for said in ("memory: check", "common knowledge", "recalled", "from memory") if said in words]


def test_a_row_that_is_not_sure_says_what_is_unproven() -> None:
    assert not [one.name for one in DEVICES.values() if one.confidence != "high" and not one.note]


def test_no_source_stands_without_a_row() -> None:
    used = {one.source for one in DEVICES.values()}
    assert [key for key, said in SOURCES.items() if said not in used] == []


@pytest.mark.parametrize(
    ("name", "precision", "said"),
    [
        ("MI100", "fp16", 1024 * 120 * 1.502e9),  # per unit and clock, units, clock: AMD CDNA 2 white paper, table 1
        ("MI250X", "int8", 1024 * 220 * 1.7e9),
        ("MI355X", "fp16", 2.5e15),  # CDNA 4 white paper, table 2
        ("MI355X", "fp4", 10e15),
        ("RTX-5000-Ada", "fp8", 1044.4e12 / 2),  # the sheet's tensor performance: fp8, sparse
        ("RTX-6000-Ada", "fp8", 1457e12 / 2),
        ("RTX-A5000", "fp16", 222.2e12 / 2),  # fp16, sparse
        ("RTX-PRO-6000-Workstation", "fp4", 4000e12 / 2),
        ("RTX-4080-Super", "int8", 836e12 / 2),  # AI TOPS of nvidia.com's compare page, sparse
        ("RTX-4070", "int8", 466e12 / 2),
        ("RTX-5070", "fp4", 988e12 / 2),
        ("RTX-5060-Ti-16G", "fp4", 759e12 / 2),
        ("RTX-5070", "fp16", 61.7e12),  # its whitepaper, accumulated in fp32
        ("RTX-3080-10G", "fp16", 4 * 8704 * 1.71e9),
        ("RX-9070-XT", "int8", 779e12 / 2),
        ("DGX-Spark-GB10", "fp4", 1e15 / 2),
    ],
)
def test_a_rate_is_what_its_vendor_says(name: str, precision: str, said: float) -> None:
    assert DEVICES[name].flops[precision] == pytest.approx(said, rel=0.01)


def test_fp4_is_of_devices_that_multiply_it() -> None:
    assert {one.name for one in DEVICES.values() if "fp4" in one.flops} == {
        one.name
        for one in DEVICES.values()
        if one.name.startswith(("B200", "GB200", "B300", "GB300", "RTX-5", "RTX-PRO", "MI355X", "DGX-Spark"))
        and one.name != "RTX-5000-Ada"
    }


@pytest.mark.parametrize(
    ("name", "gib"),
    [
        ("L4", 22.03),  # "has a total capacity of 22.03 GiB"
        ("T4", 14.56),
        ("B200-SXM", 178.36),  # a vLLM log
        ("A100-PCIe-80G", 79.25),
        ("RTX-4070", 11.72),
        ("MI250X", 127.97),  # two dies of 65520 MiB
        ("Apple-M4-Max", 107.52),  # 115448.73 MB of 1e6
    ],
)
def test_what_was_printed_is_read(name: str, gib: float) -> None:
    assert device(name).visible_bytes == pytest.approx(gib * GIB, abs=0.005 * GIB)


def test_no_driver_shows_more_than_the_label_or_much_less() -> None:
    assert len(SEEN) == 83
    assert all(0.85 < (one.visible_bytes or 0.0) / one.memory_bytes < 1.0 for one in OWN_MEMORY)


@pytest.mark.parametrize(
    ("name", "smi_mib"),
    [
        ("T4", 15_360),
        ("L4", 23_034),
        ("RTX-3090", 24_576),
        ("RTX-5090", 32_607),
        ("A100-SXM-40G", 40_960),
        ("L40S", 46_068),
        ("H100-SXM-80G", 81_559),
        ("A100-SXM-80G", 81_920),
        ("RTX-PRO-6000-Workstation", 97_887),
        ("H200-SXM-141G", 143_771),
        ("B200-SXM", 183_359),
    ],
)
def test_nvidia_smi_shows_more_than_cuda_by_a_rule(name: str, smi_mib: float) -> None:
    assert cuda_bytes(smi_mib * 2**20) == pytest.approx(device(name).visible_bytes, rel=0.003)


def _like(one: Device) -> dict[str, Device]:
    """The others with such memory."""
    return {other.name: other for other in OWN_MEMORY if other is not one and other.memory == one.memory}


@pytest.mark.parametrize("one", [one for one in OWN_MEMORY if _like(one)], ids=lambda one: one.name)
def test_the_estimate_without_the_device_itself_is_within_the_spread(one: Device) -> None:
    estimate = shown_share(one.memory, _like(one)) * one.memory_bytes
    assert estimate == pytest.approx(one.visible_bytes, rel=LABEL_SPREAD)


def test_what_was_not_seen_is_estimated_by_like_memory() -> None:
    unseen = {one.name: one for one in DEVICES.values() if one.visible_bytes is None and one.kind != "cpu"}
    assert set(unseen) == {"L2", "RTX-5070", "MI100", "Arc-B580", "Gaudi3"}
    assert not any(one.shown_bytes.known for one in unseen.values())
    assert 22.0 < unseen["L2"].shown_bytes.bytes / GIB < 22.2  # as L4 and A10, error correction on
    assert 126.0 < unseen["Gaudi3"].shown_bytes.bytes / GIB < 127.0


def test_what_was_seen_is_known() -> None:
    shown = device("l4").shown_bytes
    assert (shown.bytes, shown.known) == (22563 * 2**20, True)


def test_a_processor_may_use_all_that_was_built_in() -> None:
    built = Device(name="c", kind="cpu", memory_bytes=64 * GIB, bandwidth_bytes_per_s=5e10, flops={}, source="s")
    assert built.shown_bytes.bytes == 64 * GIB
    assert device("ddr5").shown_bytes.bytes == 0.0


def test_shared_memory_is_never_guessed() -> None:
    assert all(one.visible_bytes is not None for one in DEVICES.values() if one.memory == "shared")


def test_consumer_cards_keep_the_ratios_of_their_generation() -> None:
    for name in ("RTX-4090", "RTX-4060-Ti-16G", "RTX-5080", "RTX-5060-Ti-16G"):
        flops = device(name).flops
        assert [flops[key] / flops["fp16"] for key in ("fp8", "int8")] == pytest.approx([2, 4], rel=0.01)
    for name in ("RTX-5090", "RTX-5080", "RTX-5070-Ti", "RTX-5070", "RTX-5060-Ti-16G"):
        assert device(name).flops["fp4"] / device(name).flops["fp16"] == pytest.approx(8, rel=0.01)


def test_an_unknown_device_is_refused_with_the_nearest() -> None:
    with pytest.raises(SpecError) as refused:
        device("h1000")
    assert refused.value.slug == "device_unknown"
    assert "H100-SXM-80G" in str(refused.value.params["nearest"])
    assert nearest("zzzz")


def test_two_numbers_make_a_device() -> None:
    made = device_of(100e9, 2e12, 16e9)
    assert (made.bandwidth_bytes_per_s, made.flops["fp16"], made.memory_bytes) == (100e9, 2e12, 16e9)
    assert (made.shown_bytes.bytes, made.shown_bytes.known) == (16e9, True)
    assert not device_of(100e9, 2e12).shown_bytes.known


@pytest.mark.parametrize(("bandwidth", "flops"), [(0.0, 1e12), (1e9, -1.0), (float("nan"), 1e12), (1e9, float("inf"))])
def test_rates_that_are_none_are_refused(bandwidth: float, flops: float) -> None:
    with pytest.raises(SpecError, match="device_rate_unusable"):
        device_of(bandwidth, flops)
