from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.plan.shapes import DEEPSEEK_V2_LITE, GEMMA3_12B, LLAMA_8B, QWEN35_35B, SMOL

from nilometer.core.errors import SpecError
from nilometer.plan.memory.budget import ENGINES, Ask, memory
from nilometer.plan.memory.startup import GIB, Settings
from nilometer.plan.model.parallel import Parallel

H100 = Ask(
    shape=LLAMA_8B,
    weights_bytes=(14.99 * GIB,),
    visible_bytes=79.19 * GIB,
    device="H100-SXM-80G",
    version="0.19.0",
    settings=Settings(utilisation=0.95, context=8192),
)
change = msgspec.structs.replace


def test_llama_on_an_h100_as_its_log_has_it() -> None:
    """0.95 x 79.19 - 14.99 - 1.88 - 0.25 = 58.11 GiB, 29,751 blocks, 58 requests of 8,192 tokens."""
    plan = memory(H100)
    assert plan.kv_bytes.mid / GIB == pytest.approx(58.11, abs=0.01)
    assert plan.kv_bytes.low < plan.kv_bytes.mid < plan.kv_bytes.high
    assert plan.pool.blocks == pytest.approx(29_751, abs=5)
    assert plan.pool.requests == 58
    assert plan.tokens.low < plan.tokens.mid == plan.pool.tokens < plan.tokens.high
    assert [term.name for term in plan.stages[0].terms] == ["weights", "activation", "non_torch"]
    assert plan.starts
    assert plan.fits
    assert plan.notes == ()


def test_too_many_at_once_do_not_fit_and_by_how_much_is_said() -> None:
    plan = memory(change(H100, concurrency=64))
    assert not plan.fits
    assert plan.starts
    assert plan.need_bytes == 64 * 8192 * 131_072
    assert plan.short_bytes == pytest.approx(plan.need_bytes - plan.kv_bytes.mid, rel=0.01)
    assert memory(change(H100, concurrency=58)).fits
    assert memory(change(H100, concurrency=64, context=4096)).fits


def test_weights_alone_can_be_too_much() -> None:
    plan = memory(change(H100, visible_bytes=16 * GIB, device="small"))
    assert (plan.kv_bytes.mid, plan.pool.tokens, plan.fits, plan.starts) == (0, 0, False, False)
    taken = sum(term.bytes.mid for term in plan.stages[0].terms)
    assert plan.short_bytes == pytest.approx(taken - 0.95 * 16 * GIB + 8192 * 131_072)


def test_one_request_of_the_longest_length_is_what_an_engine_asks_for_to_start() -> None:
    tight = change(H100, visible_bytes=20 * GIB, device="RTX-4000", settings=Settings(context=131_072), context=2048)
    plan = memory(tight)
    assert plan.context == 131_072
    assert not plan.starts
    assert plan.pool.requests > 0
    assert plan.fits


def test_stages_differ_and_the_smallest_pool_counts() -> None:
    """The last of four samples: 2.05 GiB of activation, and so it has the fewest blocks (log: 141,079)."""
    table = 128_256 * 4096 * 2
    stages = (3.28 * GIB + table, 3.28 * GIB, 3.28 * GIB, 3.28 * GIB + table)
    plan = memory(change(H100, weights_bytes=stages, parallel=Parallel(pipeline=4)))
    pools = [stage.kv_bytes.mid / GIB for stage in plan.stages]
    assert pools.index(min(pools)) == 3
    assert plan.kv_bytes == plan.stages[3].kv_bytes
    assert plan.pool.blocks == pytest.approx(141_079, rel=2e-3)
    assert plan.bytes_per_token == 131_072 / 4


def test_more_ranks_divide_the_cache_but_not_a_latent_one() -> None:
    one, two = (memory(change(H100, parallel=Parallel(tensor=n))) for n in (1, 2))
    assert two.bytes_per_token == one.bytes_per_token / 2
    latent = change(H100, shape=DEEPSEEK_V2_LITE)
    assert memory(change(latent, parallel=Parallel(tensor=2))).bytes_per_token == memory(latent).bytes_per_token


def test_a_given_pool_is_taken_as_it_is() -> None:
    plan = memory(change(H100, settings=Settings(context=8192, kv_bytes=10 * GIB)))
    assert (plan.kv_bytes.low, plan.kv_bytes.high, plan.pool.blocks) == (10 * GIB, 10 * GIB, 5120)


def test_on_a_cpu_the_pool_is_four_gib_unless_said() -> None:
    plan = memory(change(H100, device="CPU", visible_bytes=256 * GIB))
    assert plan.kv_bytes.mid == 4 * GIB
    assert [note.slug for note in plan.notes] == ["plan_cpu_pool"]


def test_the_default_share_grew_with_0_21() -> None:
    plain = change(H100, settings=Settings(context=8192))
    old, new = (memory(change(plain, version=version)).stages[0].usable_bytes for version in ("0.20.0", "0.21.0"))
    assert old == pytest.approx(0.9 * 79.19 * GIB)
    assert new == pytest.approx(0.92 * 79.19 * GIB)


@pytest.mark.parametrize(
    ("given_version", "slugs"),
    [
        ("0.19.0", []),
        (None, ["plan_version_assumed"]),
        ("nightly", ["plan_version_unreadable"]),
        ("0.30.0", ["plan_constants_unproven"]),
        ("0.14.1", ["plan_constants_unproven"]),
    ],
)
def test_a_release_without_logs_behind_it_is_said(given_version: str | None, slugs: list[str]) -> None:
    assert [note.slug for note in memory(change(H100, version=given_version)).notes] == slugs


def test_a_label_is_no_driver_s_figure() -> None:
    plan, sure = memory(change(H100, visible_known=False)), memory(H100)
    assert [note.slug for note in plan.notes] == ["plan_memory_by_label"]
    assert plan.kv_bytes.high - plan.kv_bytes.low > sure.kv_bytes.high - sure.kv_bytes.low


@pytest.mark.parametrize("engine", ["sglang", "tensorrt-llm", "tgi"])
def test_other_engines_have_a_plain_pool(engine: str) -> None:
    plan = memory(change(H100, engine=engine, version=None, settings=Settings(context=8192)))
    assert 45 < plan.kv_bytes.mid / GIB < 62
    assert plan.pool.tokens == pytest.approx(plan.kv_bytes.mid / 131_072, rel=1e-3)
    assert "plan_constants_by_documentation" in [note.slug for note in plan.notes]
    windows = memory(change(H100, engine=engine, shape=GEMMA3_12B))
    assert "plan_uneven_pool" in [note.slug for note in windows.notes]


def test_llama_cpp_makes_its_cache_for_the_context_it_is_given() -> None:
    """SmolLM2-135M, -c 8192 -np 4: 8,192 x 23,040 bytes; each of four slots holds 2,048."""
    ask = Ask(
        shape=SMOL,
        weights_bytes=(0.1 * GIB,),
        visible_bytes=4 * GIB,
        engine="llama.cpp",
        version="b7100",
        settings=Settings(context=8192, slots=4),
        context=2048,
        concurrency=4,
    )
    plan = memory(ask)
    assert plan.slots is not None
    assert plan.slots.slot_context == 2048
    assert plan.need_bytes == 8192 * 23_040
    assert (plan.pool.requests, plan.fits, plan.starts) == (4, True, True)
    assert memory(change(ask, context=4096)).pool.requests == 0
    assert memory(change(ask, concurrency=5)).fits is False
    little = memory(change(ask, visible_bytes=0.3 * GIB))
    assert not little.starts
    assert little.short_bytes > 0
    assert memory(change(ask, parallel=Parallel(pipeline=2))).kv_bytes.mid > plan.kv_bytes.mid


def test_a_linear_model_is_held_by_blocks_of_its_states() -> None:
    """The log of vLLM 0.24 (club-3090#612): 4.33 requests of 131,072 tokens in 5.98 GiB."""
    ask = change(
        H100,
        shape=QWEN35_35B,
        version="0.24.0",
        key_precision="fp8",
        settings=Settings(context=131_072, kv_bytes=5.98 * GIB),
    )
    assert memory(ask).pool.tokens == 567_978


@pytest.mark.parametrize(
    ("changes", "slug"),
    [
        ({"engine": "nosuch"}, "plan_engine_unknown"),
        ({"parallel": Parallel(tensor=3)}, "tensor_not_dividing"),
        ({"parallel": Parallel(tensor=0)}, "plan_number_too_small"),
        ({"parallel": Parallel(pipeline=40)}, "pipeline_too_long"),
        ({"parallel": Parallel(pipeline=0)}, "pipeline_too_long"),
        ({"context": -1}, "plan_number_too_small"),
        ({"context": 0}, "plan_number_too_small"),
        ({"concurrency": 0}, "plan_number_too_small"),
        ({"key_precision": "fp3"}, "kv_precision_unknown"),
        ({"settings": Settings(context=-1)}, "plan_number_too_small"),
    ],
)
def test_what_makes_no_sense_is_refused(changes: dict[str, object], slug: str) -> None:
    with pytest.raises(SpecError) as refused:
        memory(change(H100, **changes))
    assert refused.value.slug == slug


@settings(max_examples=40)
@given(
    engine=st.sampled_from([name for name in ENGINES if name != "llama.cpp"]),
    visible=st.floats(1, 300),
    tensor=st.sampled_from([1, 2, 4, 8]),
    context=st.integers(1, 131_072),
)
def test_a_larger_device_never_holds_less(engine: str, visible: float, tensor: int, context: int) -> None:
    ask = change(H100, engine=engine, version=None, device="x", context=context, parallel=Parallel(tensor=tensor))
    small, large = (memory(change(ask, visible_bytes=size * GIB)) for size in (visible, visible * 1.3))
    if (small.batch is None) or small.batch == large.batch:
        assert large.kv_bytes.mid >= small.kv_bytes.mid - 0.002 * visible * GIB
    assert small.concurrency.low <= small.concurrency.mid <= small.concurrency.high


@given(name=st.sampled_from(["fp8", "q8_0", "int4"]))
def test_fewer_bits_in_the_cache_never_hold_less(name: str) -> None:
    assert memory(change(H100, key_precision=name)).pool.tokens > memory(H100).pool.tokens


@pytest.mark.parametrize("stages", [1, 2, 8, 16, 40])
def test_a_pipeline_stage_of_recurrent_layers_alone_has_pages_too(stages: int) -> None:
    """Each of the layers of QWEN35_35B keeps a page, those that grow by the token and those that do not."""
    plan = memory(
        Ask(
            shape=QWEN35_35B,
            weights_bytes=(1e9,) * stages,
            visible_bytes=80e9,
            parallel=Parallel(pipeline=stages),
            version="0.19",
        )
    )
    assert plan.starts
    assert plan.concurrency.mid > 0
