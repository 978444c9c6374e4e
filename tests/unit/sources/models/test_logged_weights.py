"""Bytes of weights against what vLLM said at its start: "Model loading took ... GiB" on each rank."""

from __future__ import annotations

import pytest

from nilometer.plan.model.parallel import Parallel
from nilometer.plan.model.weights import stage_weight_bytes, weight_bytes
from nilometer.sources.models.known import look_up, shape_of_row

GIB = 2**30
LOGGED = [
    ("codellama/CodeLlama-7b-hf", "bf16", 1, 12.56),
    ("RedHatAI/Llama-3.3-70B-Instruct-fp8-dynamic", None, 2, 33.88),
    ("RedHatAI/Qwen2.5-7B-Instruct-fp8-dynamic", None, 1, 8.14),
    ("google/gemma-2-2b-it", "bf16", 1, 4.90),
    ("ibm-granite/granite-3.1-2b-instruct", "bf16", 1, 4.74),
    ("ibm-granite/granite-3.3-8b-instruct", "bf16", 1, 15.25),
    ("meta-llama/Llama-3.1-8B-Instruct", "bf16", 1, 14.99),
    ("meta-llama/Llama-3.1-8B-Instruct", "fp8", 1, 8.49),
    ("meta-llama/Llama-3.1-8B-Instruct", "fp32", 1, 29.98),
    ("meta-llama/Llama-3.1-8B-Instruct", "bf16", 4, 3.77),
    ("microsoft/phi-4", "bf16", 1, 27.39),
    ("mistralai/Mixtral-8x7B-Instruct-v0.1", "bf16", 2, 43.51),
    ("moonshotai/Kimi-Dev-72B", "bf16", 4, 34.01),
    ("Qwen/Qwen2.5-7B-Instruct", "bf16", 1, 14.25),
    ("Qwen/Qwen2.5-7B-Instruct", "bf16", 4, 3.55),
    ("Qwen/Qwen3-8B", "bf16", 1, 15.27),
    ("RedHatAI/Qwen2.5-7B-Instruct-quantized.w8a8", None, 1, 8.14),
    ("Qwen/Qwen3-32B", "bf16", 1, 61.03),
    ("deepseek-ai/DeepSeek-V2-Lite", "bf16", 1, 29.43),
    ("Qwen/Qwen2.5-72B-Instruct", "bf16", 1, 135.60),
    ("google/gemma-7b", "bf16", 1, 15.91),
    ("google/gemma-2-9b-it", "bf16", 1, 17.22),
    ("google/gemma-2-27b-it", "bf16", 1, 50.72),
    ("microsoft/phi-2", "bf16", 1, 5.19),
    ("Qwen/Qwen3-30B-A3B", "bf16", 1, 56.88),
    ("mistralai/Mistral-Small-3.1-24B-Instruct-2503", "bf16", 1, 44.76),
]
"""Model, precision (None = by its name), tensor ranks, GiB a rank. Source: vLLM 0.19.0 and 0.11.0 start-up logs on
H100-80G, github.com/jgchn/llm-d-planner accuracy/results (commit a95e9f6, Apache-2.0). Beside weights they
hold the rotary table and what the loader keeps (up to 0.07 GiB)."""


@pytest.mark.parametrize(("name", "precision", "tensor", "gib"), LOGGED)
def test_weights_as_logged(name: str, precision: str | None, tensor: int, gib: float) -> None:
    found = look_up(name)
    shape = shape_of_row(found.row)
    planned = weight_bytes(shape, precision or found.precision, Parallel(tensor=tensor)) / GIB
    assert planned == pytest.approx(gib, rel=0.01)


def test_four_bits_in_groups() -> None:
    """RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w4a16 logs 5.38 GiB, its rotary table (0.03 GiB) and the
    indices that gptq_marlin keeps for each matrix (0.02 GiB) in it."""
    found = look_up("RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w4a16")
    assert weight_bytes(shape_of_row(found.row), found.precision) / GIB == pytest.approx(5.38, rel=0.015)


def test_a_middle_stage_as_logged() -> None:
    """Llama-3.1-8B on four stages logs 3.28 GiB for one that has neither embedding nor head."""
    shape = shape_of_row(look_up("llama-3.1-8b").row)
    stages = stage_weight_bytes(shape, "bf16", Parallel(pipeline=4))
    assert stages[1] / GIB == pytest.approx(3.28, rel=0.01)
    assert max(stages) == stages[-1] > stages[1]


PUBLISHED_BYTES = [
    ("openai/gpt-oss-20b", 13_761_264_768),
    ("openai/gpt-oss-120b", 65_248_815_744),
    ("MiniMaxAI/MiniMax-M2", 230_066_110_464),
    ("mistralai/Devstral-2-123B-2512", 128_249_389_056),
]
"""Bytes of all tensors in the files. Source: the dtype counts of the Hugging Face API, zaid-cdlg/inference-atlas
data/models.json (native_bytes)."""


@pytest.mark.parametrize(("name", "size"), PUBLISHED_BYTES)
def test_a_mixed_precision_as_published(name: str, size: int) -> None:
    assert weight_bytes(shape_of_row(look_up(name).row)) == pytest.approx(size, rel=0.01)


def test_deepseek_v3_as_published_without_its_draft_layer() -> None:
    """Its files hold 688,574,839,360 bytes, 13.46e9 parameters of them the draft layer (its tables in 16 bits)."""
    shape = shape_of_row(look_up("DeepSeek-V3").row)
    draft = next(extra.parameters for extra in shape.extras if extra.name == "draft_layers")
    assert draft is not None
    tables = 2 * 129_280 * 7168
    assert weight_bytes(shape) + draft - tables + 2 * tables == pytest.approx(688_574_839_360, rel=0.002)


GGUF_FILES = [
    ("Llama-3.2-3B", "q4_k_m", 2_019_377_696),
    ("Llama-3.2-3B", "q5_k_m", 2_322_154_016),
    ("Llama-3.2-3B", "q6_k", 2_643_853_856),
    ("Llama-3.2-3B", "q8_0", 3_421_899_296),
    ("Qwen3-4B", "q4_0", 2_375_773_280),
    ("Qwen3-4B", "q4_k_m", 2_497_281_120),
    ("Qwen3-4B", "q6_k", 3_306_261_600),
    ("Qwen3-14B", "q4_k_m", 9_001_753_984),
    ("Qwen3-14B", "q5_k_m", 10_514_570_624),
    ("Qwen3-14B", "q6_k", 12_121_938_304),
    ("Qwen3-14B", "q8_0", 15_698_534_784),
]
"""Sizes of GGUF files on Hugging Face (unsloth, bartowski), header and vocabulary (some 8 MB) in them."""


@pytest.mark.parametrize(("name", "precision", "size"), GGUF_FILES)
def test_gguf_files_as_published(name: str, precision: str, size: int) -> None:
    planned = weight_bytes(shape_of_row(look_up(name).row), precision)
    assert planned == pytest.approx(size - 6e6, rel=0.006)
