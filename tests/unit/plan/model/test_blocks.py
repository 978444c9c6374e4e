"""GGUF's formats against the package of their makers, its mixtures against the bits they publish."""

from __future__ import annotations

import pytest
from gguf.constants import GGML_QUANT_SIZES
from tests.unit.plan.shapes import LLAMA_8B, SMOL

from nilometer.plan.model.blocks import BLOCKS, MIXES, block_bits, mixed_bits
from nilometer.plan.model.parameters import parameters
from nilometer.plan.model.weights import weight_bytes

LLAMA_8B_BITS = {
    "iq1_s": 2.0042,
    "iq1_m": 2.1460,
    "iq2_xxs": 2.3824,
    "iq2_xs": 2.5882,
    "iq2_s": 2.7403,
    "iq2_m": 2.9294,
    "iq3_xxs": 3.2548,
    "iq3_xs": 3.4977,
    "iq3_s": 3.6606,
    "iq3_m": 3.7628,
    "q2_k_s": 2.9697,
    "q2_k": 3.1593,
    "q3_k_s": 3.6429,
    "q3_k_l": 4.2979,
    "q4_k_s": 4.6672,
    "q4_k_m": 4.8944,
    "q5_k_s": 5.5704,
    "q5_k_m": 5.7036,
    "q6_k": 6.5633,
    "q8_0": 8.5008,
}
"""llama.cpp, tools/quantize/README.md: bits per weight of Llama-3.1-8B. Its i-quants of 4 bits are not here: they were
made without an importance matrix."""


@pytest.mark.parametrize("name", LLAMA_8B_BITS)
def test_bits_as_published(name: str) -> None:
    bits = weight_bytes(LLAMA_8B, name) * 8 / parameters(LLAMA_8B)
    assert bits == pytest.approx(LLAMA_8B_BITS[name], abs=6e-5)


def test_every_format_as_its_makers_have_it() -> None:
    theirs = {kind.name: sizes for kind, sizes in GGML_QUANT_SIZES.items()}
    assert {name: theirs[name] for name in BLOCKS if name in theirs} == dict(BLOCKS)


def test_rows_that_are_no_whole_blocks_fall_back() -> None:
    assert block_bits("Q4_K", 576) == block_bits("Q5_0")
    assert block_bits("Q4_K", 33) == 16
    assert mixed_bits(MIXES["q4_k_m"], "head", 576, tied=True) == block_bits("Q8_0")
    assert mixed_bits(MIXES["q4_0"], "embedding", 576, tied=True) == block_bits("Q8_0")
    assert mixed_bits(MIXES["q4_0"], "embedding", 4096, tied=False) == 4.5


@pytest.mark.parametrize("name", MIXES)
def test_no_mixture_is_below_its_smallest_format(name: str) -> None:
    mix = MIXES[name]
    kinds = {mix.base, mix.head, mix.embedding or mix.base, *(kind for row in mix.others.values() for kind, _ in row)}
    assert all(sum(share for _, share in row) == pytest.approx(1) for row in mix.others.values())
    bits = weight_bytes(LLAMA_8B, name) * 8 / parameters(LLAMA_8B)
    assert min(map(block_bits, kinds)) <= bits <= max(map(block_bits, kinds)) * 1.001


def test_a_small_model_takes_more_bits() -> None:
    assert weight_bytes(SMOL, "q4_k_m") > weight_bytes(SMOL, "q4_0")
