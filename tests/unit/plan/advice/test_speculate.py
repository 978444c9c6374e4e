from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.unit.plan.questions import LLAMA_1B
from tests.unit.plan.shapes import DEEPSEEK_V2_LITE, LLAMA_8B

from nilometer.plan.advice.drafters import NGRAM, Drafter, draft_model, head
from nilometer.plan.advice.speculate import (
    Round,
    acceptance_for,
    acceptance_of_share,
    check_step,
    guide_says,
    one_round,
    speculation,
    sped_up,
    tokens_per_round,
)
from nilometer.plan.devices import device
from nilometer.plan.interval import Interval
from nilometer.plan.latency.roofline import PRIOR, Lengths, Tuning, latency
from nilometer.plan.latency.step import decode_step
from nilometer.plan.latency.work import Setup
from nilometer.plan.model.parallel import Parallel
from nilometer.plan.model.precision import precision_of

SETUP = Setup(shape=LLAMA_8B, device=device("h100"), precision=precision_of("bf16"))
ACCEPTANCE = st.floats(0, 1)


def _free(drafted: int, cost: float) -> Round:
    """Checked in a plain step of a second."""
    return Round(drafted=drafted, batch=1, step_s=1, draft_s=drafted * cost, check_s=1)


def test_tokens_of_a_round_with_the_one_that_always_comes() -> None:
    assert tokens_per_round(0, 4) == 1
    assert tokens_per_round(1, 4) == 5
    assert tokens_per_round(0.6, 4) == pytest.approx((1 - 0.6**5) / 0.4)


@pytest.mark.parametrize(
    ("cost", "gains", "break_even"),
    [
        (0.05, (1.42, 1.92, 3.09), 0.17),
        (0.1, (1.30, 1.67, 2.47), 0.29),
        (0.2, (1.17, 1.40, 1.87), 0.46),
        (0.3, (1.08, 1.23, 1.55), 0.57),
    ],
)
def test_the_table_of_the_best_k_and_of_the_break_even(
    cost: float, gains: tuple[float, ...], break_even: float
) -> None:
    best = [max(_free(k, cost).speedup(a) for k in range(1, 17)) for a in (0.4, 0.6, 0.8)]
    assert best == pytest.approx(gains, abs=0.005)
    assert _free(4, cost).break_even == pytest.approx(break_even, abs=0.005)


def test_where_the_guides_rule_holds() -> None:
    """40 % just pays for 4 drafts that cost 16 % of a step each, 60 % for 33 %: about a fifth lies between."""
    assert _free(4, 0.1624).speedup(0.4) == pytest.approx(1, abs=1e-4)
    assert _free(4, 0.3264).speedup(0.6) == pytest.approx(1, abs=1e-4)
    assert _free(4, 0.1).speedup(0.39) > 1.1, "the rule says off"
    assert [guide_says(a) for a in (0.39, 0.5, 0.6)] == ["off", "between", "good"]


def test_a_draft_as_slow_as_the_model_never_pays() -> None:
    assert _free(4, 1.01).break_even is None
    assert acceptance_for(5.1, 4) is None


def test_the_share_that_servers_report_is_less_than_the_chance() -> None:
    """0.5 after kept ones, 2 drafted: 0.5 + 0.25 of 2 are kept."""
    assert acceptance_of_share(0.375, 2) == pytest.approx(0.5, abs=1e-6)
    assert acceptance_of_share(1.0, 4) == pytest.approx(1, abs=1e-6)
    assert acceptance_of_share(0.0, 4) == pytest.approx(0, abs=1e-6)


def test_checking_is_free_until_its_tokens_take_longer_to_multiply_than_the_weights_to_read() -> None:
    """989 Tera x 0.48 a second against 3.35 TB/s x 0.795 of 2 bytes each: 178 tokens a step."""
    assert one_round(SETUP, NGRAM, 3, 44, 1024).checking == 1
    assert one_round(SETUP, NGRAM, 3, 46, 1024).checking > 1


def test_a_checking_step_by_hand() -> None:
    """256 tokens of 128 sequences: operations of 256, the cache of 128, weights once."""
    step, plain = check_step(SETUP, 1, 128, 1024), decode_step(SETUP, 128, 1024)
    multiplied = 2.0 * 256 * (8_030_261_248 - 128_256 * 4096 - 65 * 4096)
    assert step.compute_s == pytest.approx(multiplied / (989e12 * 0.48), rel=1e-4)
    assert step.cache_s == pytest.approx(128 * 1024 * 131_072 / (3.35e12 * 0.797))
    assert (step.weights_s, step.overhead_s) == (plain.weights_s, plain.overhead_s)


def test_the_tokens_of_one_sequence_stay_together_in_a_pipeline() -> None:
    staged = replace(SETUP, parallel=Parallel(pipeline=4))
    assert check_step(staged, 3, 1, 64).compute_s == pytest.approx(4 * decode_step(staged, 1, 64).compute_s)


def test_a_mixture_reads_more_experts_to_check_more_tokens() -> None:
    setup = replace(SETUP, shape=DEEPSEEK_V2_LITE)
    assert one_round(setup, NGRAM, 4, 1, 1024).checking > 2


def test_on_a_processor_with_a_slow_kernel_for_several_sequences_checking_is_not_free() -> None:
    setup = replace(SETUP, device=device("epyc-9654"), engine="llama.cpp", precision=precision_of("q4_k_m"))
    assert one_round(setup, NGRAM, 4, 1, 1024).checking > 3


def test_a_small_models_draft_costs_its_own_step() -> None:
    drafter = draft_model(LLAMA_1B)
    own = replace(SETUP, shape=LLAMA_1B)
    made = one_round(SETUP, drafter, 3, 8, 1024)
    assert made.draft_s == pytest.approx(3 * decode_step(own, 8, 1024).device_s)
    assert made.cost == pytest.approx(made.draft_s / 3 / decode_step(SETUP, 8, 1024).seconds)


def test_a_draft_model_whose_heads_the_ranks_do_not_divide_runs_whole_on_each() -> None:
    odd = _with_heads(12)
    eight = replace(SETUP, parallel=Parallel(tensor=8))
    assert one_round(eight, odd, 1, 1, 64).draft_s == pytest.approx(one_round(SETUP, odd, 1, 1, 64).draft_s)


def _with_heads(heads: int) -> Drafter:
    block = LLAMA_1B.kinds[0]
    assert block.mixer is not None
    return draft_model(replace(LLAMA_1B, kinds=(replace(block, mixer=replace(block.mixer, heads=heads)),)))


@pytest.mark.parametrize("drafter", [NGRAM, head(LLAMA_8B), draft_model(LLAMA_1B)], ids=lambda one: one.method)
def test_a_batch_eats_the_gain(drafter: Drafter) -> None:
    gains = [speculation(SETUP, drafter, batch, 1024).gain.mid for batch in (1, 64, 128, 256)]
    assert gains == sorted(gains, reverse=True)
    assert gains[-1] < 0.8 * gains[0]


@settings(deadline=None)
@given(batch=st.sampled_from([1, 8, 64, 256]), drafted=st.integers(1, 8), cost=st.floats(0, 0.9))
def test_at_the_break_even_nothing_is_gained(batch: int, drafted: int, cost: float) -> None:
    made = one_round(SETUP, replace(NGRAM, share=cost), drafted, batch, 1024)
    if made.break_even is None:
        assert made.speedup(1.0) < 1
    else:
        assert made.speedup(made.break_even) == pytest.approx(1, abs=1e-6)


@settings(deadline=None)
@given(one=ACCEPTANCE, other=ACCEPTANCE, drafted=st.integers(1, 16), batch=st.sampled_from([1, 32, 200]))
def test_more_acceptance_never_slows_and_a_batch_never_beats_free_checking(
    one: float, other: float, drafted: int, batch: int
) -> None:
    made = one_round(SETUP, NGRAM, drafted, batch, 512)
    low, high = sorted((one, other))
    assert made.speedup(low) <= made.speedup(high)
    assert made.speedup(high) <= _free(drafted, made.cost).speedup(high) * (1 + 1e-9)


def test_the_users_acceptance_takes_the_place_of_the_range() -> None:
    own = speculation(SETUP, NGRAM, 1, 1024, acceptance=0.7, drafted=4)
    assert own.acceptance == Interval(0.7, 0.7, 0.7)
    assert own.gain.low == own.gain.high == pytest.approx(tokens_per_round(0.7, 4) / 1.04)
    assert own.acceptance_source == ""
    assert (own.guide, own.guide_agrees) == ("good", True)
    assert speculation(SETUP, NGRAM, 1, 1024).acceptance_source == NGRAM.acceptance_source


def test_the_rule_that_a_cheap_draft_breaks() -> None:
    told = speculation(SETUP, NGRAM, 1, 1024, acceptance=0.3)
    assert (told.guide, told.guide_agrees) == ("off", False)


@pytest.mark.parametrize("tuning", [PRIOR, Tuning(fixed=1.2, batched=1.3, growing=0.8)])
def test_only_the_step_itself_runs_faster(tuning: Tuning) -> None:
    """Twice as fast: half of the step is gone from TPOT, other requests' prefills stay."""
    lengths = Lengths(1024, 256)
    row = latency(SETUP, lengths, 16, tuning)
    told = replace(speculation(SETUP, NGRAM, 16, 1152), gain=Interval(2.0, 2.0, 2.0))
    step = tuning.batched * row.parts.step.fixed_s + tuning.growing * row.parts.step.growing_s
    made = sped_up(row, told, lengths, tuning)
    assert made.tpot_s.mid == pytest.approx(row.tpot_s.mid - step / 2)
    cycle = row.ttft_s.mid + 255 * made.tpot_s.mid
    assert made.output_tokens_per_s.mid == pytest.approx(16 * 256 / cycle)


def test_a_queue_for_slots_moves_as_much_faster_as_the_slots_come_free() -> None:
    """16 on 4 slots: a slot's cycle without half its steps; TTFT is three of them and its own; N = X R holds."""
    lengths, setup = Lengths(1024, 256), replace(SETUP, slots=4)
    row, four = latency(setup, lengths, 16), latency(setup, lengths, 4)
    step = row.parts.step.seconds
    made = sped_up(row, replace(speculation(setup, NGRAM, 4, 1152), gain=Interval(2.0, 2.0, 2.0)), lengths)
    cycle = four.ttft_s.mid + 255 * (row.tpot_s.mid - step / 2)
    assert made.ttft_s.mid == pytest.approx(four.ttft_s.mid + 3 * cycle)
    assert made.output_tokens_per_s.mid == pytest.approx(4 * 256 / cycle)
    whole = made.ttft_s.mid + 255 * made.tpot_s.mid
    assert made.output_tokens_per_s.mid * whole / 256 == pytest.approx(16)


def test_a_wider_range_of_acceptance_makes_a_wider_forecast() -> None:
    lengths = Lengths(1024, 256)
    row = latency(SETUP, lengths, 16)
    made = sped_up(row, speculation(SETUP, NGRAM, 16, 1152), lengths)
    assert made.tpot_s.low < row.tpot_s.low
    assert made.tpot_s.high / made.tpot_s.low > row.tpot_s.high / row.tpot_s.low
    rate = made.output_tokens_per_s
    assert rate.low < rate.mid < rate.high
