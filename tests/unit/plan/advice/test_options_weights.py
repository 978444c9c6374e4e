from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.unit.plan.questions import CHAT, LLAMA_1B
from tests.unit.plan.shapes import DEEPSEEK_V2_LITE, LLAMA_8B, dense

from nilometer.plan.advice.option import Asked
from nilometer.plan.advice.options_weights import cache_matters, cache_options, lower, precision_table, weights_options
from nilometer.plan.answer import answer
from nilometer.plan.devices import device
from nilometer.plan.latency.roofline import Lengths
from nilometer.plan.memory.startup import Settings
from nilometer.plan.model.precision import precision_of
from nilometer.plan.question import Question

BATCH = replace(CHAT, lengths=Lengths(256, 256), context=512, concurrency=256, settings=Settings(context=512))
"""256 short requests: on an H100 a step multiplies longer than it reads."""


def test_the_tiers_of_an_engine_by_hand() -> None:
    """6.98e9 weights in the layers, 2 x 0.525e9 in 16 bits beside them: 16.06, 9.08 and 5.73 GB."""
    rows = {row.precision: row for row in precision_table(answer(CHAT))}
    assert list(rows) == ["bf16", "fp8", "int8", "int4", "nvfp4"]
    assert rows["bf16"].weights_bytes == pytest.approx(16.06e9, rel=1e-3)
    assert rows["fp8"].weights_bytes == pytest.approx(6.98e9 + 2 * 1.0507e9, rel=1e-3)
    assert rows["int4"].weights_bytes == pytest.approx(6.98e9 * 4.15625 / 8 + 2 * 1.0507e9, rel=1e-3)
    assert [row.current for row in rows.values()] == [True, False, False, False, False]
    assert {name: row.computes for name, row in rows.items()} == {
        "bf16": "native",
        "fp8": "native",
        "int8": "native",
        "int4": "weight_only",
        "nvfp4": "no",
    }


def test_one_request_gains_by_its_bytes() -> None:
    """Weights are all that a single step waits for but launches: 15.0 GB against 4.68 of int4."""
    rows = {row.precision: row for row in precision_table(answer(CHAT))}
    assert rows["int4"].alone_speedup == pytest.approx(2.5, abs=0.15)
    assert rows["fp8"].alone_speedup == pytest.approx(1.7, abs=0.1)


def test_at_a_large_batch_int4_gains_nothing_and_fp8_by_its_arithmetic() -> None:
    """The roofline's own: (178 tokens a step) weights unpacked to 16 bits are multiplied in 16 bits."""
    rows = {row.precision: row for row in precision_table(answer(BATCH))}
    assert rows["int4"].load_speedup == pytest.approx(1.0)
    assert rows["int4"].alone_speedup is not None
    assert rows["int4"].alone_speedup > 2
    assert rows["fp8"].load_speedup is not None
    assert rows["fp8"].load_speedup > 1.4


def test_on_a_device_without_fp8_it_is_for_the_weights_alone() -> None:
    question = replace(BATCH, device=device("a100"))
    rows = {row.precision: row for row in precision_table(answer(question))}
    assert rows["fp8"].computes == "weight_only"
    assert rows["fp8"].alone_speedup is not None
    assert rows["fp8"].alone_speedup > 1.5
    assert rows["fp8"].load_speedup == pytest.approx(1.0)
    (fp8,) = (one for one in weights_options(Asked(plan=answer(question))) if one.slug == "weights_fp8")
    assert fp8.caution == ("weight_only", "compute_bound")
    assert fp8.effect == "not_needed", "it still makes room"


def test_what_the_device_cannot_run_is_in_the_table_but_no_advice() -> None:
    plan = answer(replace(CHAT, device=device("v100")))
    assert {row.precision: row.computes for row in precision_table(plan)}["fp8"] == "no"
    assert [one.slug for one in weights_options(Asked(plan=plan))] == ["weights_int4"]


def test_llamacpp_has_its_own_tiers() -> None:
    local = replace(
        CHAT, engine="llama.cpp", version=None, precision=precision_of("q8_0"), settings=Settings(context=8192, slots=1)
    )
    found = weights_options(Asked(plan=answer(replace(local, concurrency=1))))
    assert [one.params["precision"] for one in found] == ["q6_k", "q5_k_m", "q4_k_m"]
    assert {one.slug for one in found} == {"weights_gguf"}
    assert [one.quality.risk for one in found if one.quality] == ["small", "small", "medium"]
    assert found[-1].flags == ("llama-quantize MODEL.gguf Q4_K_M.gguf Q4_K_M",)


def test_what_was_published_in_four_bits_is_not_quantised_again() -> None:
    assert lower(answer(replace(CHAT, precision=precision_of("int4")))) == ()
    assert lower(answer(replace(CHAT, precision=precision_of("mxfp4_experts"), shape=DEEPSEEK_V2_LITE))) == ()
    assert [one.precision.name for one in lower(answer(replace(CHAT, precision=precision_of("fp8"))))] == [
        "int4",
        "nvfp4",
    ]


def test_files_of_another_precision_do_not_stay() -> None:
    of_files = answer(replace(CHAT, file_bytes=16_100_000_000))
    assert all(one.file_bytes is None for one in lower(of_files))
    assert precision_table(of_files)[0].weights_bytes == 16_100_000_000


def test_what_the_losses_were_not_measured_on_is_said() -> None:
    small, mixed = (
        weights_options(Asked(plan=answer(replace(CHAT, shape=shape))))[0] for shape in (LLAMA_1B, DEEPSEEK_V2_LITE)
    )
    assert "quality_of_larger" in small.caution
    assert "quality_of_dense" in mixed.caution


def _cached(question: Question) -> list[str]:
    return [one.slug for one in cache_options(Asked(plan=answer(question)))]


def test_the_cache_is_lowered_where_it_is_what_limits() -> None:
    assert _cached(replace(CHAT, concurrency=1, context=2048)) == []
    assert _cached(replace(CHAT, concurrency=100)) == ["kv_8bit"], "memory is short"
    assert _cached(replace(CHAT, concurrency=1, context=40_000, settings=Settings())) == ["kv_8bit"], "long contexts"
    assert _cached(replace(CHAT, concurrency=50, lengths=Lengths(8000, 100))) == ["kv_8bit"], "a step reads it"
    assert _cached(replace(CHAT, concurrency=100, key_precision="fp8")) == [], "it is lowered already"
    assert _cached(replace(CHAT, device=None)) == []


def test_half_the_bytes_hold_twice_the_requests() -> None:
    (found,) = cache_options(Asked(plan=answer(replace(CHAT, concurrency=100))))
    assert found.before.max_concurrency is not None
    assert found.after.max_concurrency is not None
    assert found.after.max_concurrency.mid == pytest.approx(2 * found.before.max_concurrency.mid, rel=0.01)
    assert found.effect == "enough"
    assert found.question is not None
    assert found.question.key_precision == "fp8"
    assert found.flags == ("--kv-cache-dtype fp8",)


def test_a_model_without_attention_has_no_cache_to_lower() -> None:
    plan = answer(CHAT)
    assert not cache_matters(replace(plan, kv_bytes_per_token=0.0))


@settings(deadline=None)
@given(
    name=st.sampled_from(["h100", "a100", "4090", "b200", "mi300x"]),
    engine=st.sampled_from(["vllm", "sglang", "tgi", "tensorrt-llm"]),
    layers=st.integers(2, 80),
    hidden=st.sampled_from([1024, 4096]),
)
def test_a_lower_tier_is_never_larger_nor_slower_for_one(name: str, engine: str, layers: int, hidden: int) -> None:
    shape = dense(layers, hidden, 4 * hidden, 32_000, heads=8, kv_heads=2)
    rows = precision_table(
        answer(replace(CHAT, shape=shape, device=device(name), engine=engine, version=None, concurrency=1))
    )
    for row in rows[1:]:
        assert row.weights_bytes < rows[0].weights_bytes
        assert row.weights_share < 1
        assert row.alone_speedup is None or row.alone_speedup >= 1
        if row.max_concurrency is not None and rows[0].max_concurrency is not None:
            assert row.max_concurrency.mid >= rows[0].max_concurrency.mid


def test_more_bandwidth_is_never_slower() -> None:
    own = device("h100")
    for factor in (1.2, 2.0, 5.0):
        fast = replace(own, bandwidth_bytes_per_s=factor * (own.bandwidth_bytes_per_s or 0))
        for slow_row, fast_row in zip(
            precision_table(answer(CHAT)), precision_table(answer(replace(CHAT, device=fast))), strict=True
        ):
            assert slow_row.tpot_ms is not None
            assert fast_row.tpot_ms is not None
            assert fast_row.tpot_ms.mid <= slow_row.tpot_ms.mid


def test_the_shape_of_the_table_without_a_device() -> None:
    rows = precision_table(answer(replace(CHAT, device=None)))
    assert [row.precision for row in rows] == ["bf16", "fp8", "int8", "int4", "nvfp4"]
    assert all(row.computes is None and row.fits is None for row in rows)
    assert LLAMA_8B is CHAT.shape
