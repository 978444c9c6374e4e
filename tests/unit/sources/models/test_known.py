"""The table: every row counts what was published, and is found by the names that people use."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from nilometer.core.errors import DataError
from nilometer.plan.memory.kv import bytes_per_token, cache, cache_precision
from nilometer.plan.memory.pool import vllm_layout
from nilometer.plan.model.parameters import active_parameters, parameters
from nilometer.plan.model.precision import PRECISIONS
from nilometer.sources.models.known import Known, look_up, shape_of_row, table

ROWS = table()
WITHOUT_COUNT = {
    "ibm-granite/granite-3.1-8b",
    "moonshotai/Kimi-Dev-72B",
    "mistralai/Mistral-Large-2407",
}
"""No count of their own was found; their note has the one computed."""
ADDED = {
    "meta-llama/Llama-2-7b": 32 * 64,
    "meta-llama/Llama-2-13b": 40 * 64,
    "meta-llama/Llama-2-70b": 80 * 64,
    "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B": -23 * 128,
    "moonshotai/Moonlight-16B-A3B": 27 * 64,
    "moonshotai/Kimi-K2": 61 * 56,
    "moonshotai/Kimi-K2-Thinking": 61 * 128,
    "mistralai/Devstral-2-123B-2512": 88 * 14,
    "mistralai/Ministral-3-8B-2512": 34 * 14,
    "mistralai/Ministral-3-14B-2512": 40 * 14,
}
"""What the files of these hold beside parameters: rotary tables and scales, layer by layer; biases left out."""
FP8_SCALES = {
    "moonshotai/Kimi-K2-0905",
    "deepseek-ai/DeepSeek-V3",
    "deepseek-ai/DeepSeek-V3.1",
    "MiniMaxAI/MiniMax-M2.5",
}
"""Their published count has a scale for every 128 x 128 weights in it."""


def counted(row: Known) -> int:
    shape = shape_of_row(row)
    return parameters(shape) + sum(extra.parameters or 0 for extra in shape.extras if not extra.loaded)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_counts_what_was_published(row: Known) -> None:
    if row.published is None:
        assert row.name in WITHOUT_COUNT
        assert f"{counted(row):,}" in row.note
        return
    difference = row.published - counted(row)
    if row.name in FP8_SCALES:
        assert 0 < difference / row.published < 1 / 128**2 * 1.01
    else:
        assert difference == ADDED.get(row.name, 0)
    assert abs(difference) <= row.published / 1000


def test_the_table_is_large_and_every_row_says_where_it_is_from() -> None:
    assert len(ROWS) >= 100
    assert len({row.name.lower() for row in ROWS}) == len(ROWS)
    assert all(row.source and row.dtype in PRECISIONS for row in ROWS)
    assert all(row.published_source for row in ROWS if row.published)
    assert {row.name for row in ROWS if row.published is None} == WITHOUT_COUNT


WITHOUT_CONTEXT = {"Qwen/Qwen1.5-MoE-A2.7B"}
"""Their sources contradict each other, as their notes say."""


def test_no_fact_is_from_memory() -> None:
    """What no source states is empty, and its note says so."""
    assert [row.name for row in ROWS if re.search("recall|memory|guess|assumed", row.source, re.IGNORECASE)] == []
    assert {row.name for row in ROWS if not row.cells["max_context"]} == WITHOUT_CONTEXT
    for row in ROWS:
        shape = shape_of_row(row)
        assert (shape.max_context is None) is (row.name in WITHOUT_CONTEXT), row.name
        assert row.name not in WITHOUT_CONTEXT or "context left out" in row.note


def test_every_part_of_a_row_is_counted() -> None:
    assert [row.name for row in ROWS if shape_of_row(row).left_out] == []


@pytest.mark.parametrize(
    ("name", "kib"),
    [
        ("llama-3.1-8b", 128),
        ("Qwen2.5-7B", 56),
        ("Mixtral-8x7B", 128),
        ("gemma-2-27b", 368),
        ("DeepSeek-V3", 70_272 / 1024),
        ("Qwen3.5-27B", 64),
        ("Qwen3.5-35B-A3B", 20),
        ("Qwen3-235B-A22B", 188),
        ("gpt-oss-120b", 72),
    ],
)
def test_cached_bytes_of_a_token(name: str, kib: float) -> None:
    """2 x layers x KV heads x head width x 2 bytes; MLA: layers x (512 + 64) x 2."""
    shape = shape_of_row(look_up(name).row)
    assert bytes_per_token(cache(shape), cache_precision()) == kib * 1024


@pytest.mark.parametrize(
    ("name", "active"),
    [("Qwen3-30B-A3B", 3.353e9), ("DeepSeek-V3", 37.55e9), ("Kimi-K2", 32.86e9), ("gpt-oss-120b", 5.712e9)],
)
def test_active_parameters(name: str, active: float) -> None:
    assert active_parameters(shape_of_row(look_up(name).row)) == pytest.approx(active, rel=2e-3)


def test_windows_and_states_are_where_they_belong() -> None:
    gemma = shape_of_row(look_up("gemma-3-4b").row)
    windows = [getattr(gemma.kinds[i].mixer, "window", None) for i in gemma.order]
    assert [i for i, window in enumerate(windows) if window is None] == [5, 11, 17, 23, 29]
    assert set(windows) == {None, 1024}
    scout = shape_of_row(look_up("llama-4-scout").row)
    assert [getattr(scout.kinds[i].mixer, "window", 0) for i in scout.order[:4]] == [8192, 8192, 8192, None]
    maverick = shape_of_row(look_up("llama-4-maverick").row)
    assert [type(maverick.kinds[i].feed_forward).__name__ for i in maverick.order[:4]] == ["Dense", "Experts"] * 2
    next_ = shape_of_row(look_up("qwen3-next").row)
    assert [type(next_.kinds[i].mixer).__name__ for i in next_.order[:4]] == ["Recurrent"] * 3 + ["Attention"]
    oss = shape_of_row(look_up("gpt-oss-20b").row)
    assert [getattr(oss.kinds[i].mixer, "window", 0) for i in oss.order[:2]] == [128, None]


@pytest.mark.parametrize(
    ("name", "row", "precision"),
    [
        ("llama-3.1-8b", "meta-llama/Llama-3.1-8B", None),
        ("LLAMA-3.1-8B", "meta-llama/Llama-3.1-8B", None),
        ("meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B", None),
        ("meta-llama/Meta-Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B", None),
        ("RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w4a16", "meta-llama/Llama-3.1-8B", "w4a16"),
        ("RedHatAI/Llama-3.3-70B-Instruct-fp8-dynamic", "meta-llama/Llama-3.3-70B", "fp8"),
        ("RedHatAI/Qwen2.5-7B-Instruct-quantized.w8a8", "Qwen/Qwen2.5-7B", "int8"),
        ("Qwen/Qwen2.5-7B-Instruct-AWQ", "Qwen/Qwen2.5-7B", "int4"),
        ("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4", "Qwen/Qwen2.5-7B", "int4"),
        ("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int8", "Qwen/Qwen2.5-7B", "w8a16"),
        ("Qwen/Qwen3-30B-A3B-Instruct-2507-FP8", "Qwen/Qwen3-30B-A3B-2507", "fp8"),
        ("Qwen/Qwen3-Coder-480B-A35B-Instruct", "Qwen/Qwen3-Coder-480B-A35B", None),
        ("bartowski/Meta-Llama-3.1-8B-Instruct-GGUF:Q4_K_M", "meta-llama/Llama-3.1-8B", "q4_k_m"),
        ("Llama-3.2-3B-Instruct-Q8_0.gguf", "meta-llama/Llama-3.2-3B", "q8_0"),
        ("SmolLM2-135M-Instruct-Q4_0", "HuggingFaceTB/SmolLM2-135M", "q4_0"),
        ("google/gemma-3-27b-it", "google/gemma-3-27b", None),
        ("gemma-2-9b-it", "google/gemma-2-9b", None),
        ("mistralai/Mistral-7B-Instruct-v0.3", "mistralai/Mistral-7B-v0.3", None),
        ("mistralai/Mistral-7B-Instruct-v0.1", "mistralai/Mistral-7B-v0.1", None),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", "mistralai/Mixtral-8x7B-v0.1", None),
        ("mistralai/Mistral-Small-3.2-24B-Instruct-2506", "mistralai/Mistral-Small-3.2-24B-2506", None),
        ("microsoft/Phi-3-mini-4k-instruct", "microsoft/Phi-3-mini-4k", None),
        ("deepseek-ai/DeepSeek-R1-0528", "deepseek-ai/DeepSeek-R1", None),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-70B", "meta-llama/Llama-3.1-70B", None),
        ("codellama/CodeLlama-7b-hf", "codellama/CodeLlama-7b", None),
        ("ibm-granite/granite-3.3-8b-instruct", "ibm-granite/granite-3.3-8b", None),
        ("moonshotai/Kimi-K2-Instruct-0905", "moonshotai/Kimi-K2-0905", None),
        ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B", "bf16"),
        ("zai-org/GLM-4.5-Air-FP8", "zai-org/GLM-4.5-Air", "fp8"),
        ("openai/gpt-oss-120b", "openai/gpt-oss-120b", None),
        ("llama3.1:8b", "meta-llama/Llama-3.1-8B", None),
        ("qwen3:8b", "Qwen/Qwen3-8B", None),
    ],
)
def test_names_as_people_write_them(name: str, row: str, precision: str | None) -> None:
    found = look_up(name)
    assert (found.row.name, found.precision) == (row, precision)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_is_found_by_each_of_its_names(row: Known) -> None:
    for name in (row.name, row.name.upper(), row.name.rpartition("/")[2], *row.aliases):
        assert look_up(name).row is row


@pytest.mark.parametrize(
    ("name", "near"),
    [("llama-3.1-9b", "meta-llama/Llama-3.1-8B"), ("Qwen2.5-8B", "Qwen/Qwen2.5"), ("gpt-oss-12b", "openai/gpt-oss")],
)
def test_an_unknown_name_is_refused_with_the_nearest(name: str, near: str) -> None:
    with pytest.raises(DataError) as refused:
        look_up(name)
    assert refused.value.slug == "plan_model_unknown"
    assert near in str(refused.value.params["near"])


@pytest.mark.parametrize(
    "name", ["mistral-7b-v0.4", "Mistral-7B-Instruct-v0.2", "qwen3-30b-a3b-2601", "llama-3.1-8b-v2", "glm-4.8"]
)
def test_another_version_is_another_model(name: str) -> None:
    with pytest.raises(DataError, match="plan_model_unknown"):
        look_up(name)


@pytest.mark.parametrize("name", ["", " ", "/", "-", "x" * 5000, "\0", "fp8", "://", "no-such-thing-at-all"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(DataError, match="plan_model_unknown"):
        look_up(name)


def test_a_known_model_is_read_without_numpy() -> None:
    code = "import sys; from nilometer.sources.models.read import read_model; read_model('llama-3.1-8b'); "
    code += "print(sorted({'numpy', 'gguf', 'rich'} & set(sys.modules)))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("name", "tensor", "cached", "block"),
    [
        ("qwen3-next", 1, "auto", 544),
        ("qwen3-next", 4, "auto", 272),
        ("qwen3.5-9b", 1, "auto", 528),
        ("qwen3.5-27b", 1, "auto", 784),
        ("qwen3.5-27b", 1, "fp8", 1568),
        ("qwen3.5-35b-a3b", 1, "auto", 1056),
    ],
)
def test_states_raise_the_block_as_vllm_logs_it(name: str, tensor: int, cached: str, block: int) -> None:
    """vLLM: "Setting attention block size to N tokens to ensure that attention page size is >= mamba page size".

    Qwen3-Next by hand: 32 x 128 x 128 elements of state and 3 x 8,192 of convolution, 2 bytes each: 1,097,728;
    a token of 2 x 2 x 256 x 2 bytes goes into it 536 times: 544 is the next 16th (padded by 1.49 %, as logged).
    Qwen3.5 says `mamba_ssm_dtype: float32`.
    """
    layers = cache(shape_of_row(look_up(name).row))
    assert vllm_layout(layers, cache_precision(cached), tensor).block == block
