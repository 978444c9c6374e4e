from __future__ import annotations

import json

import pytest

from nilometer.plan.advice.support import FLAGS, computes, flags, generation, tiers
from nilometer.plan.devices import DEVICES, device
from nilometer.plan.memory.budget import ENGINES
from nilometer.plan.model.precision import precision_of


@pytest.mark.parametrize(
    ("name", "precision", "how"),
    [
        ("h100", "fp8", "native"),
        ("a100", "fp8", "weight_only"),
        ("t4", "fp8", "weight_only"),
        ("v100", "fp8", "no"),
        ("a100", "int8", "native"),
        ("b200", "int8", "no"),
        ("a100", "int4", "weight_only"),
        ("a100", "nvfp4", "no"),
        ("h100", "nvfp4", "no"),
        ("b200", "nvfp4", "native"),
        ("mi300x", "fp8", "native"),
        ("mi300x", "int4", "unproven"),
        ("mi300x", "nvfp4", "no"),
        ("gaudi2", "fp8", "unproven"),
        ("v100", "bf16", "native"),
    ],
)
def test_what_a_device_does_with_a_precision(name: str, precision: str, how: str) -> None:
    assert computes(device(name), precision_of(precision), "vllm") == how


def test_llamacpp_runs_its_formats_everywhere() -> None:
    assert {computes(one, precision_of("q4_k_m"), "llama.cpp") for one in DEVICES.values()} == {"native"}


def test_every_common_card_has_a_generation() -> None:
    left = {one.name for one in DEVICES.values() if one.kind == "gpu" and generation(one) is None}
    assert left == {"P100-PCIe-16G", "P40", "RX-7900-XTX", "RX-9070-XT", "R9700", "Arc-B580"}, "no page spoke of these"


def test_flags_are_filled_in() -> None:
    assert flags("vllm", "tensor", n=4) == ("--tensor-parallel-size 4",)
    assert flags("llama.cpp", "kv_8bit") == ("-ctk q8_0", "-ctv q8_0", "-fa on")
    assert flags("llama.cpp", "weights_gguf", name="Q4_K_M")[0].endswith("Q4_K_M")
    assert flags("vllm", "weights_int4") == (), "it reads that from the checkpoint"
    assert flags("ollama", "tensor", n=2) == ()


@pytest.mark.parametrize("method", ["ngram", "head", "draft"])
def test_vllms_speculation_is_json_that_a_shell_takes(method: str) -> None:
    (flag,) = flags("vllm", f"speculate_{method}", k=3, k1=4)
    name, _, value = flag.partition(" ")
    assert name == "--speculative-config"
    assert json.loads(value.strip("'"))["num_speculative_tokens"] == 3


def test_the_tables_speak_of_the_engines_that_are_planned_for() -> None:
    assert set(FLAGS) == set(ENGINES)
    assert all(tiers(engine) for engine in ENGINES)
    assert tiers("ollama") == ()


def test_every_flag_can_be_filled_in() -> None:
    for engine, rows in FLAGS.items():
        for change in rows:
            assert all("{n" not in one for one in flags(engine, change, n=2, k=3, k1=4, name="X"))
