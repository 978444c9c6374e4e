"""Headers of safetensors: the true bytes by format, folders with shards, files that lie or end early."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Any

import pytest

from nilometer.core.errors import DataError
from nilometer.sources.models.read import read_model
from nilometer.sources.models.safetensors import INDEX, plain_precision, read_header, read_index, read_weights

from .configs import CONFIGS

GOOD: dict[str, Any] = {
    "__metadata__": {"format": "pt"},
    "a": {"dtype": "BF16", "shape": [4, 8], "data_offsets": [0, 64]},
    "b": {"dtype": "F32", "shape": [4], "data_offsets": [64, 80]},
    "c": {"dtype": "F4", "shape": [5], "data_offsets": [80, 83]},
    "d": {"dtype": "U8", "shape": [0, 7], "data_offsets": [83, 83]},
}


def write(path: Path, header: Any, size: int = 83) -> Path:
    data = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(data)) + data + bytes(size))
    return path


def test_bytes_by_format(tmp_path: Path) -> None:
    assert read_header(write(tmp_path / "model.safetensors", GOOD)) == {"BF16": 64, "F32": 16, "F4": 3, "U8": 0}


@pytest.mark.parametrize(
    "tensor",
    [
        7,
        [],
        {},
        {"dtype": "BF16", "shape": [4, 8]},
        {"dtype": "Q4", "shape": [4, 8], "data_offsets": [0, 64]},
        {"dtype": "BF16", "shape": [4, 8], "data_offsets": [0, 65]},
        {"dtype": "BF16", "shape": [4, -8], "data_offsets": [0, 64]},
        {"dtype": "BF16", "shape": [4, 8.0], "data_offsets": [0, 64]},
        {"dtype": "BF16", "shape": [4, 8], "data_offsets": [64, 0]},
        {"dtype": "BF16", "shape": [4, 8], "data_offsets": [-64, 0]},
        {"dtype": "BF16", "shape": [4, 8], "data_offsets": [0, 32, 64]},
        {"dtype": "BF16", "shape": [4, True], "data_offsets": [0, 8]},
        {"dtype": "BF16", "shape": [2**49] * 30, "data_offsets": [0, 8]},
        {"dtype": ["BF16"], "shape": [4, 8], "data_offsets": [0, 64]},
    ],
)
def test_a_tensor_that_cannot_be(tensor: object, tmp_path: Path) -> None:
    with pytest.raises(DataError) as refused:
        read_header(write(tmp_path / "m.safetensors", {"t": tensor}))
    assert (refused.value.slug, refused.value.params["field"]) == ("model_field_bad", "t")


@pytest.mark.parametrize(
    ("data", "slug"),
    [
        (b"", "model_file_cut"),
        (b"1234567", "model_file_cut"),
        (struct.pack("<Q", 1 << 60), "model_header_too_large"),
        (struct.pack("<Q", 5000) + b"{}", "model_file_cut"),
        (struct.pack("<Q", 3) + b"abc", "model_file_not"),
        (struct.pack("<Q", 0), "model_file_not"),
        (struct.pack("<Q", 2) + b"{]", "model_json_broken"),
        (struct.pack("<Q", 2) + b"{\xff", "model_json_broken"),
    ],
)
def test_files_that_are_none(data: bytes, slug: str, tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    path.write_bytes(data)
    with pytest.raises(DataError, match=slug):
        read_header(path)


def test_weights_cut_short(tmp_path: Path) -> None:
    with pytest.raises(DataError) as refused:
        read_header(write(tmp_path / "m.safetensors", GOOD, size=82))
    assert refused.value.slug == "model_file_cut"
    assert refused.value.params["needs"] == 83


def test_a_folder_of_shards(tmp_path: Path) -> None:
    placed = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
    index = tmp_path / INDEX
    index.write_text(json.dumps({"metadata": {"total_size": 999}, "weight_map": placed}))
    assert read_index(index) == {"?": 999}
    one = {"a": GOOD["a"]}
    write(tmp_path / placed["a"], one, size=64)
    with pytest.raises(DataError) as refused:
        read_weights(tmp_path)
    assert refused.value.params["shard"] == placed["b"]
    write(tmp_path / placed["b"], {"b": {**GOOD["b"], "data_offsets": [0, 16]}}, size=16)
    assert read_weights(tmp_path) == {"BF16": 64, "F32": 16}


@pytest.mark.parametrize("name", ["../secret.safetensors", "/etc/passwd", "model.bin", "", "a/b.safetensors"])
def test_an_index_names_files_beside_it_alone(name: str, tmp_path: Path) -> None:
    index = tmp_path / INDEX
    index.write_text(json.dumps({"weight_map": {"a": name}}))
    with pytest.raises(DataError, match="model_field_bad"):
        read_index(index)


@pytest.mark.parametrize("content", ["{}", '{"weight_map": {}}', '{"weight_map": []}', '{"weight_map": null}'])
def test_an_index_without_a_map(content: str, tmp_path: Path) -> None:
    index = tmp_path / INDEX
    index.write_text(content)
    with pytest.raises(DataError, match=r"model_field_missing|model_field_bad"):
        read_index(index)


def test_with_its_config_it_is_a_model(tmp_path: Path) -> None:
    path = sparse(tmp_path / "model.safetensors", 8_030_261_248)
    with pytest.raises(DataError, match="model_config_missing"):
        read_model(str(path))
    (tmp_path / "config.json").write_text(json.dumps(CONFIGS["llama"][1]))
    for way in (path, tmp_path):
        found = read_model(str(way))
        assert (found.origin, found.weight_bytes, found.precision) == ("safetensors", 2 * 8_030_261_248, "bf16")
        assert found.precision_from == "header"
        assert found.shape is not None
        assert found.shape.layers == 32


def sparse(path: Path, elements: int) -> Path:
    """A file of so many weights in BF16 that takes no room on the disk."""
    write(path, {"w": {"dtype": "BF16", "shape": [elements], "data_offsets": [0, 2 * elements]}}, size=0)
    os.truncate(path, path.stat().st_size + 2 * elements)
    return path


@pytest.mark.parametrize("elements", [0, 2, 8_030_261_248 // 17, 5 * 8_030_261_248])
def test_files_that_cannot_be_the_weights_of_their_config_are_refused(elements: int, tmp_path: Path) -> None:
    """An adapter, a part of a model, another model's: under 1 bit of a parameter, or over 64."""
    (tmp_path / "config.json").write_text(json.dumps(CONFIGS["llama"][1]))
    path = sparse(tmp_path / "model.safetensors", elements)
    for way in (path, tmp_path):
        with pytest.raises(DataError) as refused:
            read_model(str(way))
        assert refused.value.slug == "model_weights_unlike"
        assert refused.value.params["bytes"] == 2 * elements


def test_one_part_stands_for_all_parts(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIGS["llama"][1]))
    first = sparse(tmp_path / "model-00001-of-00002.safetensors", 4_000_000_000)
    with pytest.raises(DataError) as refused:
        read_model(str(first))
    assert refused.value.params["shard"] == "model-00002-of-00002.safetensors"
    second = sparse(tmp_path / "model-00002-of-00002.safetensors", 4_030_261_248)
    for part in (first, second):
        assert read_model(str(part)).weight_bytes == 2 * 8_030_261_248


def test_the_precision_of_most_bytes() -> None:
    assert plain_precision({"F16": 100, "F32": 4}) == "fp16"
    assert plain_precision({"I32": 100, "F16": 4}) is None
    assert plain_precision({}) is None
