"""Requantised weights against slow oracles written from the block formats' definition; the file reads back whole."""

import math
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from gguf import GGUFReader, GGUFWriter, LlamaFileType, dequantize

from nilometer.core.errors import DataError
from nilometer.engines.requantise import REQUANTISED_FROM, Weights, read_weights, requantise

BLOCK = 32
TOKENS = ["<s>", "wörd", "河"]


def silent(_done: int, _total: int) -> None:
    """No progress."""


def half(value: float) -> float:
    """Round to half precision, as a scale is stored."""
    return float(struct.unpack("<e", struct.pack("<e", value))[0])


def oracle_q4_0(block: list[float]) -> list[float]:
    """Q4_0: scale = the value of largest magnitude / -8; each value is one of 16 steps from -8 to 7 times the scale."""
    largest = max(block, key=abs)
    scale = largest / -8
    steps = [0 if scale == 0 else min(15, math.trunc(value / scale + 8.5)) for value in block]
    return [half(scale) * (step - 8) if scale else 0.0 for step in steps]


def oracle_q8_0(block: list[float]) -> list[float]:
    """Q8_0: scale = largest magnitude / 127; each value is the nearest whole number of scales."""
    scale = max(abs(value) for value in block) / 127
    return [half(scale) * round(value / scale) if scale else 0.0 for value in block]


def by_blocks(oracle: Callable[[list[float]], list[float]], rows: np.ndarray) -> np.ndarray:
    flat = rows.astype(np.float64).ravel().tolist()
    told = [value for start in range(0, len(flat), BLOCK) for value in oracle(flat[start : start + BLOCK])]
    return np.array(told, dtype=np.float32).reshape(rows.shape)


def matrices() -> dict[str, np.ndarray]:
    random = np.random.default_rng(7)
    return {
        "token_embd.weight": random.normal(size=(6, 64)).astype(np.float32),
        "blk.0.attn_norm.weight": random.normal(size=64).astype(np.float32),
        "blk.0.attn_q.weight": random.normal(scale=0.02, size=(4, 64)).astype(np.float32),
        "blk.0.zero.weight": np.zeros((2, 32), dtype=np.float32),
        "blk.0.narrow.weight": random.normal(size=(3, 48)).astype(np.float32),
        "blk.0.experts.weight": random.normal(size=(2, 3, 32)).astype(np.float32),
    }


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "model.F32.gguf"
    writer = GGUFWriter(path, arch="llama")
    writer.add_file_type(LlamaFileType.ALL_F32)
    writer.add_name("tiny")
    writer.add_context_length(128)
    writer.add_float32("llama.rope.freq_base", 10_000.5)
    writer.add_array("tokenizer.ggml.tokens", TOKENS)
    writer.add_array("tokenizer.ggml.token_type", [3, 1, 1])
    writer.add_bool("tokenizer.ggml.add_bos_token", False)
    for name, rows in matrices().items():
        writer.add_tensor(name, rows)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def weights_of(path: Path) -> dict[str, tuple[str, np.ndarray]]:
    told = {}
    for tensor in GGUFReader(path).tensors:
        rows = [int(size) for size in reversed(tensor.shape)]
        told[tensor.name] = (tensor.tensor_type.name, dequantize(tensor.data, tensor.tensor_type).reshape(rows))
    return told


def test_q4_0_matches_the_oracle_and_keeps_what_must_stay_finer(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "q4.gguf"
    assert requantise(source, target, "Q4_0", silent) == Weights("Q4_0", "ALL_F32")
    written, former = weights_of(target), matrices()
    assert {name: kind for name, (kind, _) in written.items()} == {
        "token_embd.weight": "Q8_0",
        "blk.0.attn_norm.weight": "F32",
        "blk.0.attn_q.weight": "Q4_0",
        "blk.0.zero.weight": "Q4_0",
        "blk.0.narrow.weight": "F16",
        "blk.0.experts.weight": "Q4_0",
    }
    for name in ("blk.0.attn_q.weight", "blk.0.zero.weight", "blk.0.experts.weight"):
        np.testing.assert_allclose(written[name][1], by_blocks(oracle_q4_0, former[name]), rtol=1e-6, atol=1e-9)
    embedding = by_blocks(oracle_q8_0, former["token_embd.weight"])
    np.testing.assert_allclose(written["token_embd.weight"][1], embedding, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(written["blk.0.attn_norm.weight"][1], former["blk.0.attn_norm.weight"])


def test_q8_0_matches_the_oracle(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "q8.gguf"
    requantise(source, target, "Q8_0", silent)
    written, former = weights_of(target), matrices()
    for name in ("blk.0.attn_q.weight", "blk.0.experts.weight", "token_embd.weight"):
        assert written[name][0] == "Q8_0"
        np.testing.assert_allclose(written[name][1], by_blocks(oracle_q8_0, former[name]), rtol=1e-6, atol=1e-9)


def test_quantised_weights_are_read_before_they_are_quantised_again(source: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "q4.gguf", tmp_path / "q8.gguf"
    requantise(source, first, "Q4_0", silent)
    assert requantise(first, second, "Q8_0", silent) == Weights("Q8_0", "Q4_0")
    name = "blk.0.attn_q.weight"
    coarse, fine = weights_of(first)[name][1], weights_of(second)[name][1]
    blocks = np.abs(coarse.reshape(-1, BLOCK))
    half_steps = blocks.max(axis=1, keepdims=True) / 127 / 2
    of_half_precision_scale = blocks * 2.0**-11
    assert np.all(np.abs(fine - coarse).reshape(-1, BLOCK) <= (half_steps + of_half_precision_scale) * 1.001)
    assert np.abs(fine - coarse).max() > 0


def test_f16_is_the_nearest_half(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "f16.gguf"
    requantise(source, target, "F16", silent)
    kind, rows = weights_of(target)["blk.0.attn_q.weight"]
    assert kind == "F16"
    expected = [half(value) for value in matrices()["blk.0.attn_q.weight"].astype(float).ravel().tolist()]
    np.testing.assert_array_equal(rows.ravel(), np.array(expected, dtype=np.float32))


def test_metadata_is_copied_and_the_former_precision_recorded(source: Path, tmp_path: Path) -> None:
    target, again = tmp_path / "q4.gguf", tmp_path / "q8.gguf"
    requantise(source, target, "Q4_0", silent)
    requantise(target, again, "Q8_0", silent)
    former, written = GGUFReader(source).fields, GGUFReader(again).fields
    changed = {"general.file_type", "GGUF.kv_count", REQUANTISED_FROM}
    for name in set(former) - changed:
        assert written[name].contents() == former[name].contents(), name
        assert written[name].types == former[name].types, name
    assert set(written) - set(former) == {REQUANTISED_FROM}
    assert written["tokenizer.ggml.tokens"].contents() == TOKENS
    assert read_weights(again) == Weights("Q8_0", "Q4_0")


def test_progress_counts_every_tensor(source: Path, tmp_path: Path) -> None:
    heard: list[tuple[int, int]] = []
    requantise(source, tmp_path / "out.gguf", "F16", lambda done, total: heard.append((done, total)))
    assert heard == [(count, 6) for count in range(1, 7)]


@pytest.mark.parametrize(
    "content", [b"", b"GGUF", b"GGUF\x03\x00\x00\x00" + b"\xff" * 64, b"<html>not found</html>" * 9]
)
def test_what_is_no_gguf_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        read_weights(path)
    assert caught.value.slug == "model_file_bad"
    assert caught.value.params["file"] == str(path)


def test_a_missing_file_is_unreadable(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        read_weights(tmp_path / "none.gguf")
    assert caught.value.slug == "file_unreadable"
