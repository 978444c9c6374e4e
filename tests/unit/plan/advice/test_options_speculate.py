from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.unit.plan.questions import CHAT, LLAMA_1B, LLAMA_70B

from nilometer.plan.advice.option import Asked, Option
from nilometer.plan.advice.options_speculate import speculate_options
from nilometer.plan.answer import answer
from nilometer.plan.latency.roofline import Lengths
from nilometer.plan.memory.startup import Settings
from nilometer.plan.model.parallel import Parallel
from nilometer.plan.question import Question


def _found(question: Question, **asked: object) -> dict[str, Option]:
    plan = answer(question)
    return {one.slug: one for one in speculate_options(Asked(plan=plan, **asked))}  # type: ignore[arg-type]


def test_the_text_and_a_head_are_offered_and_a_small_model_where_one_is_named() -> None:
    assert list(_found(CHAT)) == ["speculate_ngram", "speculate_head"]
    assert list(_found(CHAT, draft=LLAMA_1B)) == ["speculate_ngram", "speculate_draft"]


def test_an_engine_is_offered_what_it_has_a_flag_for() -> None:
    assert list(_found(replace(CHAT, engine="tgi", version=None))) == ["speculate_ngram"]


def test_the_gain_is_of_the_asked_load() -> None:
    made = _found(CHAT)["speculate_head"]
    assert made.speculation is not None
    assert made.speculation.round.batch == 32
    assert made.speedup is not None
    assert 1 < made.speedup < made.speculation.gain.mid, "other requests' prefills stay"
    assert made.params["drafted"] == made.speculation.round.drafted
    assert f'"num_speculative_tokens":{made.params["drafted"]}' in made.flags[0]
    assert made.question is None


def test_a_large_batch_loses_and_that_is_said() -> None:
    busy = replace(CHAT, lengths=Lengths(256, 256), context=512, concurrency=256, settings=Settings(context=512))
    made = _found(busy)["speculate_ngram"]
    assert {"speculation_loses", "batch_eats_gain"} <= set(made.caution)
    assert made.effect == "no_gain"
    assert made.speedup is not None
    assert made.speedup < 1


def test_that_published_gains_at_a_batch_are_smaller_is_told() -> None:
    assert "batch_measured_less" in _found(CHAT)["speculate_head"].caution
    assert "batch_measured_less" not in _found(replace(CHAT, concurrency=8))["speculate_head"].caution
    assert "batch_measured_less" not in _found(CHAT)["speculate_ngram"].caution


def test_where_the_guides_rule_says_otherwise_it_is_told() -> None:
    assert "guide_rule_differs" in _found(CHAT, acceptance=0.3)["speculate_ngram"].caution
    assert "guide_rule_differs" not in _found(CHAT, acceptance=0.7)["speculate_ngram"].caution


def test_the_users_acceptance_is_of_the_draft_that_was_named() -> None:
    made = _found(CHAT, acceptance=0.8, draft=LLAMA_1B, drafted=4)
    draft, ngram = made["speculate_draft"].speculation, made["speculate_ngram"].speculation
    assert draft is not None
    assert ngram is not None
    assert (draft.acceptance.low, draft.round.drafted) == (0.8, 4)
    assert ngram.acceptance.low < 0.8
    assert "acceptance_prior" not in made["speculate_draft"].caution
    assert "acceptance_prior" in made["speculate_ngram"].caution


def test_a_small_model_takes_memory_of_its_own() -> None:
    """1.5e9 weights in 16 bits, 32 KiB a token beside 128."""
    made = _found(CHAT, draft=LLAMA_1B)["speculate_draft"]
    assert made.before.weights_bytes is not None
    assert made.after.weights_bytes is not None
    assert made.after.weights_bytes - made.before.weights_bytes == pytest.approx(3.0e9, rel=0.01)
    assert made.before.max_concurrency is not None
    assert made.after.max_concurrency is not None
    kept = made.after.max_concurrency.mid / made.before.max_concurrency.mid
    assert kept == pytest.approx((1 - 3.0e9 / 58.1e9) * 128 / 160, rel=0.02)


def test_beside_pipeline_stages_vllm_does_not_speculate() -> None:
    staged = replace(CHAT, shape=LLAMA_70B, parallel=Parallel(tensor=4, pipeline=2))
    assert "no_pipeline_beside" in _found(staged)["speculate_ngram"].caution
    assert "no_pipeline_beside" not in _found(CHAT)["speculate_ngram"].caution


def test_without_a_forecast_there_is_no_advice() -> None:
    assert _found(replace(CHAT, shape=LLAMA_70B)) == {}
    assert _found(replace(CHAT, device=None)) == {}
