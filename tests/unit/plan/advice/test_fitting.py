from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.unit.plan.questions import CHAT, LLAMA_1B, LLAMA_70B
from tests.unit.plan.shapes import dense

from nilometer.core.errors import SpecError
from nilometer.plan.advice.fitting import Shortfall, smallest, ways_to_fit
from nilometer.plan.answer import answer
from nilometer.plan.devices import device
from nilometer.plan.memory.startup import GIB, Settings
from nilometer.plan.model.parallel import Parallel
from nilometer.plan.model.precision import precision_of
from nilometer.plan.question import Question

BIG = replace(CHAT, shape=LLAMA_70B)


def _ways(question: Question, most: int = 10) -> Shortfall:
    found = ways_to_fit(answer(question), most=most)
    assert found is not None
    return found


def test_a_70b_model_on_one_h100_by_hand() -> None:
    """141.1 GB of BF16 on 0.9 x 79.19 GiB; FP8 leaves 2.3 GiB less the start-up: not one request of 8,192 tokens."""
    plan = answer(BIG)
    assert plan.weights_bytes == pytest.approx(141.1e9, rel=0.001)
    found = _ways(BIG)
    need = 32 * 8192 * 2 * 80 * 8 * 128 * 2
    assert found.short_bytes == pytest.approx(need + 141.1e9 + 2.1 * GIB - 0.9 * 79.19 * GIB, rel=0.005)
    assert not found.starts
    eight_bits = answer(replace(BIG, precision=precision_of("fp8")))
    assert not eight_bits.fits
    assert eight_bits.memory is not None
    assert 0 < eight_bits.memory.kv_bytes.mid < 8192 * 327_680
    assert [way.slug for way in found.ways] == [
        "fit_weights_requests",
        "fit_weights_devices",
        "fit_device",
        "fit_devices",
    ]


def test_the_three_cheapest_stand_first() -> None:
    assert [way.slug for way in _ways(BIG, 3).ways] == [way.slug for way in _ways(BIG).ways][:3]


def test_what_costs_no_money_stands_before_what_does() -> None:
    ways = _ways(BIG).ways
    paid = [way.devices > 1 or way.question.device != BIG.device for way in ways]
    assert paid == sorted(paid)


def test_a_limit_that_nobody_asked_for_is_the_cheapest_to_lift() -> None:
    """One request of 131,072 tokens takes 16 GiB: with 24 GB and 16 of weights it does not start, 4 of 2,048 do."""
    small = replace(
        CHAT, shape=replace(LLAMA_1B, max_context=1_000_000), device=device("4090"), context=2048, concurrency=4
    )
    found = _ways(replace(small, settings=Settings()))
    assert found.ways[0].slug == "fit_limit"
    limit, held = found.ways[0].question.settings.context, found.ways[0].plan.memory
    assert held is not None
    assert limit is not None
    assert found.ways[0].flags == (f"--max-model-len {limit}",)
    assert limit % 1024 == 0
    assert 0.98 * held.tokens.low - 1024 <= limit <= held.tokens.low, "as long as the pool is sure to hold"


def test_too_many_at_once_wait_or_are_halved() -> None:
    """54 fit: of 100 the cache in 8 bits holds all, else 54 are served at once, or all of half the length."""
    found = {way.slug: way for way in _ways(replace(CHAT, concurrency=100)).ways}
    assert found["fit_kv"].plan.memory is not None
    assert found["fit_kv"].flags == ("--kv-cache-dtype fp8",)
    assert found["fit_requests"].params == {"concurrency": 54}
    assert found["fit_requests"].flags == ("--max-model-len 8192", "--max-num-seqs 54")
    context = found["fit_context"].params["context"]
    assert isinstance(context, int)
    assert 4096 < context < 4608
    longer = replace(CHAT, concurrency=100, context=context + 128, settings=Settings(context=context + 128))
    assert not answer(longer).fits
    assert found["fit_devices"].params == {"devices": 2}


def test_shorter_than_the_requests_themselves_is_no_way() -> None:
    found = _ways(replace(CHAT, concurrency=800, context=1300))
    assert "fit_context" not in {way.slug for way in found.ways}


def test_llamacpp_is_told_by_its_own_flags() -> None:
    local = replace(
        CHAT,
        engine="llama.cpp",
        version=None,
        device=device("4090"),
        precision=precision_of("q8_0"),
        concurrency=16,
        settings=Settings(context=16 * 8192, slots=16),
    )
    found = {way.slug: way for way in _ways(local).ways}
    assert found["fit_weights"].params == {"precision": "q6_k"}
    fewer = found["fit_requests"]
    held = fewer.params["concurrency"]
    assert fewer.flags == (f"-c {held * 8192}", f"-np {held}")  # type: ignore[operator]
    assert found["fit_kv"].flags == ("-ctk q8_0", "-ctv q8_0", "-fa on")


def test_a_llamacpp_that_has_no_room_for_its_cache_is_an_answer_without_a_forecast() -> None:
    local = replace(BIG, engine="llama.cpp", version=None, device=device("4090"), settings=Settings(context=8192))
    plan = answer(replace(local, precision=precision_of("q8_0")))
    assert (plan.fits, plan.latency, plan.full) == (False, (), None)


def test_prices_order_what_has_to_be_paid() -> None:
    known = {"h100": 1.0, "mi325x": 30.0}
    found = ways_to_fit(answer(BIG), most=10, prices=known)
    assert found is not None
    paid = [way for way in found.ways if way.price_per_hour is not None]
    assert [way.price_per_hour for way in paid] == [2.0, 4.0, 30.0]
    assert [way.slug for way in paid] == ["fit_weights_devices", "fit_devices", "fit_device"]
    with pytest.raises(SpecError, match="device_unknown"):
        ways_to_fit(answer(BIG), prices={"nothing": 1.0})


def test_what_fits_or_has_no_device_needs_no_way() -> None:
    assert ways_to_fit(answer(CHAT)) is None
    assert ways_to_fit(answer(replace(CHAT, device=None))) is None


def test_a_giant_on_a_small_card_is_told_of_larger_ones() -> None:
    """Llama-3.1-405B: 203 GB in 4 bits on eight cards of 16 GB."""
    giant = dense(126, 16_384, 53_248, 128_256, heads=128, kv_heads=8)
    found = _ways(replace(BIG, shape=giant, device=device("t4"), concurrency=1))
    assert [way.slug for way in found.ways] == ["fit_larger_devices"]
    (way,) = found.ways
    assert way.question.device is not None
    assert way.devices * way.question.device.memory_bytes > 810e9
    assert way.params == {"devices": way.devices, "device": way.question.device.name}


def test_the_fewest_devices_that_hold_it() -> None:
    found = smallest(BIG, 8)
    assert (found.fits, found.question.parallel) == (True, Parallel(tensor=4))
    assert not answer(replace(BIG, parallel=Parallel(tensor=2))).fits
    never = smallest(BIG, 2)
    assert (never.fits, never.question.parallel) == (False, Parallel(tensor=2))


@settings(max_examples=25, deadline=None)
@given(
    name=st.sampled_from(["t4", "4090", "l40s", "a100", "h100"]),
    shape=st.sampled_from([LLAMA_1B, CHAT.shape, LLAMA_70B]),
    concurrency=st.integers(1, 400),
    context=st.sampled_from([2048, 8192, 65_536]),
    engine=st.sampled_from(["vllm", "sglang", "tgi"]),
)
def test_every_way_really_fits(name: str, shape: object, concurrency: int, context: int, engine: str) -> None:
    asked = replace(
        CHAT,
        shape=shape,
        device=device(name),
        concurrency=concurrency,
        context=context,
        engine=engine,
        version=None,
        settings=Settings(context=context),
    )
    plan = answer(asked)
    found = ways_to_fit(plan)
    if plan.fits:
        assert found is None
        return
    assert found is not None
    assert found.short_bytes > 0
    assert len(found.ways) <= 3
    for way in found.ways:
        assert answer(way.question).fits
        assert way.plan.question == way.question
        assert way.devices == way.question.parallel.devices <= 8


def test_no_more_slots_are_advised_than_llama_cpp_takes() -> None:
    few = Settings(slots=4, context=1024)
    for asked, most in ((200, 200), (1_000, 256)):
        plan = answer(replace(CHAT, engine="llama.cpp", version=None, concurrency=asked, context=64, settings=few))
        found = ways_to_fit(plan)
        assert found is not None
        slots = [way.question.settings.slots or 0 for way in found.ways if way.slug == "fit_slots"]
        assert slots == ([most] if asked <= 256 else []), "with 256 slots 1,000 requests are not there at once"
