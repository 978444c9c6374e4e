from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.unit.plan.questions import CHAT, LLAMA_1B, LLAMA_70B

from nilometer.plan.advice.fitting import ways_to_fit
from nilometer.plan.advice.objective import Objective
from nilometer.plan.advice.option import Figures, figures
from nilometer.plan.advice.options import ORDER, first_move, options
from nilometer.plan.advice.options_weights import precision_table
from nilometer.plan.answer import answer
from nilometer.plan.devices import device
from nilometer.plan.model.parallel import Parallel
from nilometer.plan.model.precision import precision_of
from nilometer.plan.model.shape import Attention, Block, Shape
from nilometer.plan.question import Question

TPOT = Objective(metric="tpot_ms", stat="p95", at_most=True, limit=30)


def test_what_is_met_needs_nothing_and_the_first_move_is_the_safest_precision() -> None:
    """The guide's 8B on one H100 under 30 ms: FP8 would gain, at a small risk, and is not needed."""
    found = options(answer(CHAT), objectives=[TPOT])
    first = first_move(found)
    assert first is found[0]
    assert (first.slug, first.effect) == ("weights_fp8", "not_needed")
    assert first.quality is not None
    assert first.quality.risk == "small"
    assert {one.effect for one in found} <= {"not_needed", "no_gain"}
    assert [one.met for one in first.held] == ["yes"]
    assert first.speedup == pytest.approx(1.57, abs=0.05)


def test_the_order_is_the_guides() -> None:
    kinds = [one.kind for one in options(answer(replace(CHAT, concurrency=100)))]
    assert set(kinds) == set(ORDER)
    assert kinds == sorted(kinds, key=ORDER.index)


def test_within_a_kind_what_is_enough_stands_first() -> None:
    """10 ms: FP8 keeps it and so does INT4, at more risk; both stand before none, by their risk."""
    found = options(answer(CHAT), objectives=[replace(TPOT, limit=10)])
    weights = [(one.slug, one.effect) for one in found if one.kind == "precision"]
    assert weights == [("weights_fp8", "enough"), ("weights_int8", "enough"), ("weights_int4", "enough")]


def test_the_first_move_is_one_that_is_enough_even_if_another_stands_before_it() -> None:
    found = options(answer(replace(CHAT, shape=LLAMA_70B)))
    first = first_move(found)
    assert found[0].effect == "helps"
    assert first is not None
    assert (first.slug, first.effect) == ("tensor_parallel", "enough")


def test_what_does_not_fit_has_no_figures_of_speed() -> None:
    (made,) = (one for one in options(answer(replace(CHAT, shape=LLAMA_70B))) if one.slug == "weights_fp8")
    assert made.before.tpot_ms is made.after.tpot_ms is None
    assert made.speedup is None
    assert made.before.free_bytes is not None
    assert made.after.free_bytes is not None
    assert made.before.free_bytes < made.after.free_bytes < 0


def test_money_is_by_the_device_and_the_hour() -> None:
    found = {one.slug: one for one in options(answer(CHAT), price_per_device_hour=2.5)}
    made = found["tensor_parallel"]
    assert (made.before.price_per_hour, made.after.price_per_hour) == (2.5, 5.0)
    assert made.extra_devices == 1
    assert found["weights_fp8"].extra_devices == 0


def test_figures_by_hand() -> None:
    """54 of 8,192 tokens are held; 32 take 32 GiB of the 54.2; two copies hold twice."""
    made = figures(answer(CHAT))
    assert made.free_bytes is not None
    assert made.free_bytes / 2**30 == pytest.approx(54.2 - 32, abs=0.1)
    two = figures(answer(replace(CHAT, parallel=Parallel(data=2))), 3.0)
    assert two.max_concurrency is not None
    assert made.max_concurrency is not None
    assert two.max_concurrency.mid == 2 * made.max_concurrency.mid
    assert (two.devices, two.price_per_hour) == (2, 6.0)


def test_nothing_better_is_no_move() -> None:
    found = options(answer(replace(CHAT, precision=precision_of("int4"), concurrency=1, context=2048)), most_devices=1)
    assert first_move([one for one in found if one.effect == "no_gain"]) is None
    assert options(answer(replace(CHAT, device=None))) == ()


def test_a_shape_of_which_only_the_cache_is_known_is_told_no_more_than_what_fits() -> None:
    block = Block(mixer=Attention(heads=32, kv_heads=8, head_dim=128), feed_forward=None, norms=0)
    raw = Shape(name="raw", hidden=0, vocab=0, kinds=(block,), order=(0,) * 32, tied=True)
    asked = replace(CHAT, shape=raw, concurrency=100)
    plan = answer(asked)
    assert options(plan) == ()
    assert precision_table(plan) == ()
    found = ways_to_fit(plan, most=10)
    assert found is not None
    assert all(
        way.plan.fits and way.slug in {"fit_kv", "fit_requests", "fit_context", "fit_devices", "fit_device"}
        for way in found.ways
    )


def _known(made: Figures) -> bool:
    return (made.weights_bytes or 0) > 0 and made.devices >= 1


@settings(max_examples=20, deadline=None)
@given(
    name=st.sampled_from(["h100", "a100", "4090", "t4", "mi300x", "910b", "m4-max"]),
    engine=st.sampled_from(["vllm", "sglang", "tgi", "tensorrt-llm", "llama.cpp"]),
    concurrency=st.sampled_from([1, 8, 100, 1000]),
    limit=st.sampled_from([None, 1.0, 12.0, 100.0]),
    users=st.sampled_from([None, 50.0, 20_000.0]),
)
def test_any_question_gets_advice_that_holds_together(
    name: str, engine: str, concurrency: int, limit: float | None, users: float | None
) -> None:
    asked: Question = replace(
        CHAT, device=device(name), engine=engine, version=None, concurrency=concurrency, shape=LLAMA_1B
    )
    objectives = [] if limit is None else [replace(TPOT, limit=limit)]
    found = options(answer(asked), objectives=objectives, users=users)
    assert len({one.slug for one in found if one.kind != "precision"}) == sum(one.kind != "precision" for one in found)
    for one in found:
        assert _known(one.before)
        assert _known(one.after)
        if one.effect == "enough":
            assert one.plan.fits
            assert all(each.met in {"yes", "likely"} for each in one.held)
        if one.question is not None:
            assert one.plan == answer(one.question)
