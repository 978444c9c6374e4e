"""Every reader against the table; and configs that cannot be, each refused with its file and field."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import msgspec
import pytest

from nilometer.core.errors import DataError
from nilometer.plan.model.shape import Attention, Shape
from nilometer.sources.models.architectures import KINDS
from nilometer.sources.models.config import read_config
from nilometer.sources.models.known import Known, look_up, shape_of_row, table

from .configs import CONFIGS, Config

LLAMA = CONFIGS["llama"][1]
GEMMA = CONFIGS["gemma 3, nested and terse"][1]
DEEPSEEK = CONFIGS["deepseek v3"][1]
NEMOTRON = CONFIGS["nemotron-h"][1]


def written(folder: Path, config: Any) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(config))
    return path


def bare(shape: Shape) -> Shape:
    return msgspec.structs.replace(shape, name="", source="")


@pytest.mark.parametrize("what", CONFIGS)
def test_a_config_gives_the_shape_of_the_table(what: str, tmp_path: Path) -> None:
    name, config = CONFIGS[what]
    shape, _ = read_config(written(tmp_path, config))
    assert bare(shape) == bare(shape_of_row(look_up(name).row))


@pytest.mark.parametrize("row", table(), ids=lambda row: row.name)
def test_a_row_written_as_a_config_gives_the_row(row: Known, tmp_path: Path) -> None:
    shape, _ = read_config(written(tmp_path, row.facts))
    assert bare(msgspec.structs.replace(shape, dtype=row.dtype)) == bare(shape_of_row(row))


def test_every_kind_is_held_to_a_published_count() -> None:
    """Those that are not are written down here, each with the kind whose layers it shares."""
    shared = {"chatglm": "glm", "olmo3": "olmo2", "cohere2": "cohere"}
    held = {row.facts["model_type"] for row in table()}
    assert set(KINDS) - held == set(shared)
    assert set(shared.values()) <= held


def test_what_a_family_leaves_unsaid_is_its_default(tmp_path: Path) -> None:
    shape, precision = read_config(written(tmp_path, GEMMA))
    assert (shape.vocab, shape.max_context, shape.tied, precision) == (262_208, 131_072, True, None)
    assert shape.name == tmp_path.name


def test_the_path_in_a_config_is_its_name(tmp_path: Path) -> None:
    shape, _ = read_config(written(tmp_path, {**LLAMA, "_name_or_path": "org/model"}))
    assert shape.name == "org/model"


@pytest.mark.parametrize(
    ("quantised", "precision"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8_block"),
        ({"quant_method": "fp8", "activation_scheme": "static", "weight_block_size": None}, "fp8"),
        ({"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}, "int4"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 32}, "int4_g32"),
        ({"quant_method": "gptq", "bits": 8, "group_size": -1}, "w8a16"),
        ({"quant_method": "mxfp4"}, "mxfp4_experts"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "nf4"),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "int8"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4"),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, "fp8"),
        ({"quant_method": "fbgemm_fp8"}, "fp8"),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "int", "group_size": 128}}},
                "ignore": ["lm_head"],
            },
            "w4a16",
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {
                    "group_0": {"weights": {"num_bits": 8, "type": "int"}, "input_activations": {"num_bits": 8}}
                },
            },
            "int8",
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "int"}}},
            },
            "w8a16",
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "float"}, "input_activations": {}}},
            },
            "fp8",
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"g": {"weights": {"num_bits": 8, "type": "float", "strategy": "block"}}},
            },
            "fp8_block",
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"g": {"weights": {"num_bits": 4, "type": "float", "group_size": 16}}},
            },
            "nvfp4",
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"g": {"weights": {"num_bits": 4, "type": "int", "group_size": 32}}},
                "ignore": ["lm_head", "re:.*self_attn.*", "re:.*shared_experts.*"],
            },
            "int4_experts",
        ),
    ],
)
def test_the_precision_that_a_config_names(quantised: Config, precision: str, tmp_path: Path) -> None:
    shape, found = read_config(written(tmp_path, {**LLAMA, "quantization_config": quantised}))
    assert (found, shape.dtype) == (precision, precision)


@pytest.mark.parametrize(("dtype", "name"), [("float16", "fp16"), ("bfloat16", "bf16"), ("float32", "fp32")])
def test_the_precision_of_its_files(dtype: str, name: str, tmp_path: Path) -> None:
    assert read_config(written(tmp_path, {**LLAMA, "torch_dtype": dtype}))[0].dtype == name
    assert read_config(written(tmp_path, {**LLAMA, "torch_dtype": None, "dtype": dtype}))[0].dtype == name


@pytest.mark.parametrize(
    ("changes", "slug", "field"),
    [
        ({"hidden_size": None}, "model_field_missing", "hidden_size"),
        ({"num_hidden_layers": None}, "model_field_missing", "num_hidden_layers"),
        ({"vocab_size": None}, "model_field_missing", "vocab_size"),
        ({"num_attention_heads": None}, "model_field_missing", "num_attention_heads"),
        ({"intermediate_size": None}, "model_field_missing", "intermediate_size"),
        ({"num_hidden_layers": -1}, "model_field_bad", "num_hidden_layers"),
        ({"num_hidden_layers": 0}, "model_field_bad", "num_hidden_layers"),
        ({"num_hidden_layers": 10**6}, "model_field_bad", "num_hidden_layers"),
        ({"hidden_size": 10**12}, "model_field_bad", "hidden_size"),
        ({"hidden_size": "4096"}, "model_field_bad", "hidden_size"),
        ({"hidden_size": 4096.5}, "model_field_bad", "hidden_size"),
        ({"hidden_size": True}, "model_field_bad", "hidden_size"),
        ({"hidden_size": [4096]}, "model_field_bad", "hidden_size"),
        ({"tie_word_embeddings": "no"}, "model_field_bad", "tie_word_embeddings"),
        ({"attention_bias": 1}, "model_field_bad", "attention_bias"),
        ({"num_key_value_heads": 7}, "model_fields_differ", "num_attention_heads"),
        ({"num_key_value_heads": 64}, "model_fields_differ", "num_attention_heads"),
        ({"num_attention_heads": 24, "num_key_value_heads": 8}, "model_fields_differ", "hidden_size"),
        ({"layer_types": ["full_attention"] * 31}, "model_fields_differ", "len(layer_types)"),
        ({"layer_types": "full_attention"}, "model_field_bad", "layer_types"),
        ({"quantization_config": {"quant_method": "secret"}}, "model_field_bad", "quantization_config.quant_method"),
        ({"quantization_config": {"quant_method": "gptq", "bits": 3}}, "model_field_bad", "bits"),
        ({"quantization_config": "fp8"}, "model_field_bad", "quantization_config"),
        ({"quantization_config": {"quant_method": "compressed-tensors"}}, "model_field_bad", "config_groups"),
        ({"model_type": "mamba", "architectures": []}, "architecture_unknown", None),
        ({"model_type": 7}, "model_field_bad", "model_type"),
        ({"text_config": 7}, "model_field_bad", "text_config"),
        ({"vision_config": {"model_type": "pixtral"}}, "model_field_missing", "hidden_size"),
    ],
)
def test_fields_that_cannot_be(changes: Config, slug: str, field: str | None, tmp_path: Path) -> None:
    path = written(tmp_path, {**LLAMA, **changes})
    with pytest.raises(DataError) as refused:
        read_config(path)
    assert refused.value.slug == slug
    assert refused.value.params["file"] == str(path)
    assert refused.value.params.get("field") == field


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({**DEEPSEEK, "num_experts_per_tok": 300}, "num_experts_per_tok"),
        ({**NEMOTRON, "num_hidden_layers": 55}, "len(hybrid_override_pattern)"),
        ({**CONFIGS["llama 4, nested"][1]["text_config"], "no_rope_layers": [1]}, "len(no_rope_layers)"),
    ],
)
def test_fields_that_do_not_go_together(config: Config, field: str, tmp_path: Path) -> None:
    with pytest.raises(DataError) as refused:
        read_config(written(tmp_path, config))
    assert (refused.value.slug, refused.value.params["field"]) == ("model_fields_differ", field)


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("", "model_json_broken"),
        ("[]", "model_json_broken"),
        ("null", "model_json_broken"),
        ('{"hidden_size": NaN}', "model_json_broken"),
        ('{"hidden_size": 1e999, "model_type": "llama"}', "model_json_broken"),
        ('{"hidden_size": 4096', "model_json_broken"),
        ("[" * 100_000, "model_json_broken"),
        ("\ufeff{}", "model_json_broken"),
        ("{}", "architecture_unknown"),
    ],
)
def test_texts_that_are_no_config(text: str, slug: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(DataError, match=slug):
        read_config(path)


def test_an_unknown_architecture_says_what_could_be_read(tmp_path: Path) -> None:
    path = written(tmp_path, {"architectures": ["Zamba2ForCausalLM"], "model_type": "zamba2", "hidden_size": 2560})
    with pytest.raises(DataError) as refused:
        read_config(path)
    assert refused.value.params == {"file": str(path), "name": "zamba2", "read": "hidden_size=2560"}


def test_a_file_too_large_or_no_file(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    with pytest.raises(DataError, match="file_unreadable"):
        read_config(path)
    path.write_bytes(b" " * (17 << 20))
    with pytest.raises(DataError, match="model_header_too_large"):
        read_config(path)
    with pytest.raises(DataError, match="model_folder_empty"):
        read_config(tmp_path)


def test_a_tower_of_unknown_kind_is_said_to_be_left_out(tmp_path: Path) -> None:
    shape, _ = read_config(written(tmp_path, {**LLAMA, "vision_config": {"model_type": "other"}}))
    assert shape.left_out == ("vision_tower_uncounted",)
    assert [(extra.name, extra.parameters) for extra in shape.extras] == [("vision_tower", None)]


def test_windows_by_layer_and_by_number(tmp_path: Path) -> None:
    base = {**CONFIGS["qwen2 whose window is off"][1], "use_sliding_window": True, "sliding_window": 4096}
    shape, _ = read_config(written(tmp_path, {**base, "max_window_layers": 20}))
    windows = [mixer.window for i in shape.order if isinstance(mixer := shape.kinds[i].mixer, Attention)]
    assert windows == [None] * 20 + [4096] * 8
    assert not math.isnan(shape.hidden)
