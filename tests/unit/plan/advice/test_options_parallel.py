from __future__ import annotations

from msgspec.structs import replace
from tests.unit.plan.questions import CHAT, LLAMA_70B
from tests.unit.plan.shapes import dense

from nilometer.plan.advice.objective import Objective
from nilometer.plan.advice.option import Asked, Option
from nilometer.plan.advice.options_parallel import parallel_options
from nilometer.plan.answer import answer
from nilometer.plan.devices import device
from nilometer.plan.memory.startup import Settings
from nilometer.plan.model.parallel import Parallel
from nilometer.plan.model.precision import precision_of
from nilometer.plan.question import Question

FAST = Objective(metric="tpot_ms", stat="mean", at_most=True, limit=8.5)
HUGE = dense(126, 16_384, 53_248, 128_256, heads=128, kv_heads=8)
"""Llama-3.1-405B."""


def _found(question: Question, **asked: object) -> dict[str, Option]:
    return {one.slug: one for one in parallel_options(Asked(plan=answer(question), **asked))}  # type: ignore[arg-type]


def test_one_card_first() -> None:
    """It fits: a split is shown for what it would bring, and copies only where they are asked for."""
    found = _found(CHAT)
    assert list(found) == ["tensor_parallel"]
    assert "one_card_first" in found["tensor_parallel"].caution
    assert found["tensor_parallel"].effect == "not_needed"


def test_where_it_does_not_fit_the_fewest_that_hold_it() -> None:
    made = _found(replace(CHAT, shape=LLAMA_70B))["tensor_parallel"]
    assert (made.params["devices"], made.effect, made.extra_devices) == (4, "enough", 3)
    assert made.flags == ("--tensor-parallel-size 4",)
    assert made.caution == ()
    assert _found(replace(CHAT, shape=LLAMA_70B), most_devices=2) == {}


def test_a_token_that_is_too_slow_is_cut_over_two() -> None:
    made = _found(CHAT, objectives=(FAST,))["tensor_parallel"]
    assert made.effect == "enough"
    assert made.speedup is not None
    assert 1.2 < made.speedup < 2


def test_several_machines_are_told_with_the_guides_threshold_and_the_evidence() -> None:
    made = _found(replace(CHAT, shape=HUGE), most_devices=16)["several_machines"]
    assert (made.params["tensor"], made.params["pipeline"], made.params["machines"]) == (8, 2, 2)
    assert {"guide_users", "tensor_in_machine", "network_unknown"} <= set(made.caution)
    assert made.flags == ("--tensor-parallel-size 8", "--pipeline-parallel-size 2")
    many = _found(replace(CHAT, shape=HUGE), most_devices=16, users=20_000.0)["several_machines"]
    assert "guide_users" not in many.caution


def test_a_slow_link_and_copied_heads_are_told() -> None:
    pcie = replace(CHAT, shape=LLAMA_70B, precision=precision_of("fp8"), device=device("l40s"))
    assert "slow_link" in _found(pcie, most_devices=8)["tensor_parallel"].caution
    few_heads = replace(CHAT, shape=dense(32, 4096, 14_336, 128_256, heads=32, kv_heads=1))
    assert "kv_heads_copied" in _found(few_heads)["tensor_parallel"].caution


def test_llamacpp_deals_layers_and_no_token_is_faster() -> None:
    local = replace(CHAT, engine="llama.cpp", version=None, concurrency=1, settings=Settings(context=8192, slots=1))
    made = _found(local)["layer_split"]
    assert made.flags == ("-sm layer", "-ngl all")
    assert "no_faster_token" in made.caution


def test_copies_for_a_traffic_are_as_many_as_it_takes() -> None:
    """35 requests are held within 12 ms by one copy: three for a hundred users."""
    bound = (replace(FAST, limit=12),)
    made = _found(CHAT, users=100.0, objectives=bound)["data_parallel"]
    assert made.params == {"copies": 3, "devices": 3}
    assert made.caution == ("same_token_time",)
    assert made.flags == ("--data-parallel-size 3",)
    assert "data_parallel" not in _found(CHAT, users=20.0, objectives=bound), "one copy is enough"


def test_more_copies_than_allowed_are_told_all_the_same() -> None:
    bound = (replace(FAST, limit=12),)
    made = _found(CHAT, users=2000.0, objectives=bound)["data_parallel"]
    assert {"more_than_allowed", "guide_users"} <= set(made.caution)
    assert "guide_users" not in _found(CHAT, users=10_000.0, objectives=bound)["data_parallel"].caution


def test_a_load_beyond_what_one_holds_is_halved() -> None:
    over = replace(CHAT, concurrency=100, lengths=replace(CHAT.lengths, input=7900))
    made = _found(over)["data_parallel"]
    assert made.question is not None
    assert made.question.parallel == Parallel(data=2)
    assert made.after.max_concurrency is not None
    assert made.before.max_concurrency is not None
    assert made.after.max_concurrency.mid == 2 * made.before.max_concurrency.mid


def test_copies_each_on_two_devices_stay_copies() -> None:
    spread = replace(CHAT, shape=LLAMA_70B, parallel=Parallel(data=2))
    made = _found(spread)["tensor_parallel"]
    assert made.question is not None
    assert made.question.parallel.data == 2
    assert made.params["devices"] == made.question.parallel.devices <= 8
    assert _found(replace(CHAT, device=None)) == {}
