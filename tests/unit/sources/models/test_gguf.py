"""GGUF headers: shapes of each sort of layer, the true bytes, and files that lie or end early."""

from __future__ import annotations

import shutil
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gguf import GGUFReader

from nilometer.core.errors import DataError
from nilometer.engines import model_cache
from nilometer.plan.model.parameters import parameters
from nilometer.plan.model.shape import Attention, Dense, Experts, Latent, Recurrent
from nilometer.plan.model.weights import weight_bytes
from nilometer.sources.models.gguf import read_gguf
from nilometer.sources.models.gguf_header import read_header

from .ggufs import ATTENTION, DENSE, EXPERTS, HEADS, LATENT, MAMBA, Tensors, write

REAL = sorted(model_cache.folder().glob("SmolLM2-135M-Instruct-Q*.gguf"))
"""Files of the embedded engine, where they have been made."""


def layer(*parts: Tensors) -> Tensors:
    return {name: dims for part in parts for name, dims in part.items()}


def same_as_reader(path: Path) -> None:
    theirs = GGUFReader(path)
    ours = read_header(path)
    assert {t.name: (tuple(map(int, t.shape)), int(t.n_bytes)) for t in theirs.tensors} == {
        name: (tensor.dims, tensor.bytes) for name, tensor in ours.tensors.items()
    }
    for key, value in ours.values.items():
        assert theirs.fields[key].contents() == value


def test_a_plain_model(tmp_path: Path) -> None:
    path = write(tmp_path / "m.gguf", [layer(ATTENTION, DENSE)] * 2, general={"general.name": "My model"})
    found = read_gguf(path)
    mixer = Attention(heads=4, kv_heads=2, head_dim=16)
    assert [(block.mixer, block.feed_forward, block.norms) for block in found.shape.kinds] == [
        (mixer, Dense(intermediate=128), 2)
    ]
    assert found.shape.order == (0, 0)
    assert (found.shape.name, found.shape.vocab, found.shape.tied, found.shape.max_context) == (
        "My model",
        96,
        False,
        512,
    )
    assert found.parameters == parameters(found.shape)
    assert found.formats == {"F32": 4 * found.parameters}
    assert found.precision == found.shape.dtype == "fp32"
    assert weight_bytes(found.shape) == 4 * found.parameters
    same_as_reader(path)


def test_a_tied_head_biases_norms_of_heads_and_sinks(tmp_path: Path) -> None:
    more: Tensors = {
        "attn_q.bias": (64,),
        "attn_k.bias": (32,),
        "attn_v.bias": (32,),
        "attn_output.bias": (64,),
        "attn_sinks.weight": (4,),
        "attn_q_norm.weight": (16,),
        "attn_k_norm.weight": (16,),
        "post_attention_norm.weight": (64,),
    }
    found = read_gguf(write(tmp_path / "m.gguf", [layer(ATTENTION, more, DENSE)], tied=True))
    mixer = found.shape.kinds[0].mixer
    assert mixer == Attention(heads=4, kv_heads=2, head_dim=16, qkv_bias=True, out_bias=True, qk_norm=True, sinks=True)
    assert found.shape.tied
    assert found.shape.kinds[0].norms == 3
    assert parameters(found.shape) == found.parameters


def test_a_gate_beside_the_query_and_a_norm_over_all_heads(tmp_path: Path) -> None:
    more: Tensors = {"attn_q.weight": (64, 128), "attn_q_norm.weight": (64,), "attn_k_norm.weight": (32,)}
    found = read_gguf(write(tmp_path / "m.gguf", [layer(ATTENTION, more, DENSE)]))
    mixer = found.shape.kinds[0].mixer
    assert mixer == Attention(heads=4, kv_heads=2, head_dim=16, output_gate=True, wide_norm=True)
    assert parameters(found.shape) == found.parameters


def test_experts_behind_a_dense_layer_and_latent_attention(tmp_path: Path) -> None:
    facts = {
        "attention.head_count": 4,
        "attention.head_count_kv": 1,
        "attention.key_length": 40,
        "attention.key_length_mla": 24,
        "attention.value_length_mla": 16,
        "attention.q_lora_rank": 32,
        "attention.kv_lora_rank": 32,
        "rope.dimension_count": 8,
        "expert_count": 8,
        "expert_used_count": 2,
    }
    layers = [layer(LATENT, DENSE), layer(LATENT, EXPERTS)]
    found = read_gguf(write(tmp_path / "m.gguf", layers, arch="deepseek2", facts=facts))
    first, second = found.shape.kinds
    assert first.mixer == Latent(heads=4, kv_rank=32, rope_dim=8, nope_dim=16, value_dim=16, query_rank=32)
    assert second.feed_forward == Experts(
        experts=8, per_token=2, intermediate=32, shared_intermediate=32, router_bias=True
    )
    assert parameters(found.shape) == found.parameters


def test_a_hybrid_by_its_tensors(tmp_path: Path) -> None:
    facts = {
        **HEADS,
        "attention.head_count": [0, 4],
        "attention.head_count_kv": [0, 2],
        "ssm.inner_size": 128,
        "ssm.state_size": 16,
        "ssm.group_count": 1,
        "ssm.conv_kernel": 4,
        "ssm.time_step_rank": 8,
    }
    layers = [layer(MAMBA, DENSE), layer(ATTENTION, DENSE)]
    found = read_gguf(write(tmp_path / "m.gguf", layers, arch="granitehybrid", facts=facts))
    state = found.shape.kinds[0].mixer
    assert isinstance(state, Recurrent)
    assert state.kind == "mamba2"
    assert state.state_elements == 128 * 16 + 160 * 3
    assert state.convolution_elements == 160 * 3
    assert parameters(found.shape) == found.parameters


@pytest.mark.parametrize(
    ("arch", "facts", "windows"),
    [
        ("gemma3", {"attention.sliding_window": 128}, [128] * 5 + [None, 128]),
        ("gemma2", {"attention.sliding_window": 128}, [128, None] * 3 + [128]),
        ("gpt-oss", {"attention.sliding_window": 128}, [128, None] * 3 + [128]),
        ("llama4", {}, [8192, 8192, 8192, None, 8192, 8192, 8192]),
        ("phi3", {"attention.sliding_window": 128}, [128] * 7),
        ("llama", {"attention.sliding_window": 128}, [None] * 7),
        (
            "some",
            {"attention.sliding_window": 128, "attention.sliding_window_pattern": [True] * 6 + [False]},
            [128] * 6 + [None],
        ),
    ],
)
def test_windows(arch: str, facts: dict[str, Any], windows: list[int | None], tmp_path: Path) -> None:
    path = write(tmp_path / "m.gguf", [layer(ATTENTION, DENSE)] * 7, arch=arch, facts={**HEADS, **facts})
    shape = read_gguf(path).shape
    assert [mixer.window for i in shape.order if isinstance(mixer := shape.kinds[i].mixer, Attention)] == windows


def test_derived_tables_are_bytes_but_no_parameters(tmp_path: Path) -> None:
    path = write(tmp_path / "m.gguf", [layer(ATTENTION, DENSE)], whole={"rope_freqs.weight": (32,)})
    found = read_gguf(path)
    assert found.parameters == parameters(found.shape)
    assert sum(found.formats.values()) == 4 * (found.parameters + 32)


def test_draft_layers_stand_beside(tmp_path: Path) -> None:
    facts = {**HEADS, "nextn_predict_layers": 1}
    draft = layer(ATTENTION, DENSE, {"nextn.eh_proj.weight": (128, 64)})
    found = read_gguf(write(tmp_path / "m.gguf", [layer(ATTENTION, DENSE), draft], arch="glm4moe", facts=facts))
    assert found.shape.layers == 1
    (extra,) = found.shape.extras
    assert extra.parameters == found.parameters - parameters(found.shape)
    assert not extra.loaded


def test_a_part_that_is_not_known_is_refused_by_name(tmp_path: Path) -> None:
    path = write(tmp_path / "m.gguf", [layer(ATTENTION, DENSE, {"altup.weight": (64, 640)})], arch="gemma3n")
    with pytest.raises(DataError) as refused:
        read_gguf(path)
    assert refused.value.slug == "architecture_unknown"
    assert refused.value.params["name"] == "gemma3n"
    assert "block_count=1" in str(refused.value.params["read"])


def test_a_state_and_a_cache_in_one_layer_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="architecture_unknown"):
        read_gguf(write(tmp_path / "m.gguf", [layer(MAMBA, ATTENTION, DENSE)], arch="falcon-h1"))


def test_a_split_model_is_read_from_all_its_parts(tmp_path: Path) -> None:
    whole = [layer(ATTENTION, DENSE)] * 2
    one, two = tmp_path / "m-00001-of-00002.gguf", tmp_path / "m-00002-of-00002.gguf"
    write(one, [whole[0], {}], general={"split.count": 2})
    made = write(tmp_path / "other.gguf", whole, general={"split.count": 2})
    with pytest.raises(DataError, match="model_shard_missing"):
        read_gguf(made)
    with pytest.raises(DataError, match="model_shard_missing"):
        read_gguf(one)
    shutil.copy(made, two)
    found = read_gguf(one)
    assert found.shape.layers == 2
    with pytest.raises(DataError, match="model_shard_first"):
        read_gguf(two)


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name)
def test_a_real_file(path: Path) -> None:
    found = read_gguf(path)
    assert found.parameters == parameters(found.shape) == 134_515_008
    held = sum(found.formats.values())
    assert weight_bytes(found.shape, found.precision) == held
    assert 0 < path.stat().st_size - held < 2_000_000
    assert found.shape.max_context == 8192


def header(tensors: int, keys: int, *, version: int = 3, magic: bytes = b"GGUF", order: str = "<") -> bytes:
    return magic + struct.pack(f"{order}IQQ", version, tensors, keys)


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


LONG_LIST = text(b"k") + struct.pack("<IIQ", 9, 0, 1 << 62)
TEXT_LIST = text(b"k") + struct.pack("<IIQ", 9, 8, (1 << 22)) + struct.pack("<Q", 0) * 8
NESTED = text(b"k") + struct.pack("<IIQ", 9, 9, 1)
LONG_TEXT = text(b"k") + struct.pack("<IQ", 8, 1 << 60)


@pytest.mark.parametrize(
    ("data", "slug"),
    [
        (b"", "model_file_cut"),
        (b"GG", "model_file_cut"),
        (b"GGUF", "model_file_cut"),
        (b"GGML" + bytes(100), "model_file_not"),
        (b"<html>" + bytes(100), "model_file_not"),
        (header(0, 0, version=1), "model_field_bad"),
        (header(0, 0, version=9), "model_field_bad"),
        (header(1 << 60, 0), "model_header_too_large"),
        (header(0, 1 << 60), "model_header_too_large"),
        (header(1 << 19, 0), "model_file_cut"),
        (header(0, 1) + struct.pack("<Q", 1 << 63), "model_header_too_large"),
        (header(0, 1) + text(b"k") + struct.pack("<I", 99), "model_field_bad"),
        (header(0, 1) + LONG_LIST, "model_header_too_large"),
        (header(0, 1) + TEXT_LIST, "model_file_cut"),
        (header(0, 1) + NESTED, "model_field_bad"),
        (header(0, 1) + LONG_TEXT, "model_header_too_large"),
        (header(1, 0) + text(b"t") + struct.pack("<I", 9), "model_field_bad"),
        (header(1, 0) + text(b"t") + struct.pack("<IQQI", 2, 1 << 49, 1 << 49, 0), "model_field_bad"),
        (header(1, 0) + text(b"t") + struct.pack("<IQIQ", 1, 64, 77, 0), "model_field_bad"),
        (header(1, 0) + text(b"t") + struct.pack("<IQIQ", 1, 33, 2, 0), "model_field_bad"),
        (header(1, 0) + text(b"t") + struct.pack("<IQIQ", 1, 64, 0, 0), "model_file_cut"),
        (header(1, 0) + text(b"t") + struct.pack("<IQIQ", 1, 64, 0, 1 << 63), "model_file_cut"),
        (header(0, 0), "architecture_unknown"),
        (header(0, 0, order=">"), "architecture_unknown"),
    ],
)
def test_hostile_headers_are_refused_at_once(data: bytes, slug: str, tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(data)
    started = time.monotonic()
    with pytest.raises(DataError) as refused:
        read_gguf(path)
    assert refused.value.slug == slug
    assert refused.value.params["file"] == str(path)
    assert time.monotonic() - started < 1


CHANGES: list[tuple[Callable[[dict[str, Any]], dict[str, Any]], str]] = [
    (lambda facts: {**facts, "attention.head_count": 0}, "model_field_bad"),
    (lambda facts: {**facts, "attention.head_count_kv": 3}, "model_fields_differ"),
    (lambda facts: {**facts, "attention.head_count": [4]}, "model_field_bad"),
    (lambda facts: {key: facts[key] for key in facts if key != "attention.head_count"}, "model_field_missing"),
    (lambda facts: {**facts, "block_count": 4_000_000_000}, "model_field_bad"),
    (lambda facts: {**facts, "block_count": 3}, "architecture_unknown"),
    (lambda facts: {**facts, "nextn_predict_layers": 2}, "model_field_bad"),
    (lambda facts: {**facts, "attention.key_length": 4096}, "architecture_unknown"),
]


@pytest.mark.parametrize(("change", "slug"), CHANGES)
def test_metadata_that_cannot_be(change: Callable[[dict[str, Any]], dict[str, Any]], slug: str, tmp_path: Path) -> None:
    path = write(tmp_path / "m.gguf", [layer(ATTENTION, DENSE)] * 2, facts=change(dict(HEADS)))
    with pytest.raises(DataError) as refused:
        read_gguf(path)
    assert refused.value.slug == slug


def test_a_file_cut_short_anywhere(tmp_path: Path) -> None:
    path = write(tmp_path / "m.gguf", [layer(ATTENTION, DENSE)])
    data = path.read_bytes()
    for length in range(0, len(data), max(1, len(data) // 300)):
        path.write_bytes(data[:length])
        with pytest.raises(DataError, match=r"model_file_cut|architecture_unknown"):
            read_gguf(path)
