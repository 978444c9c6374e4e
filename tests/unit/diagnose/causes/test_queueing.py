"""Requests that wait: for a slot, or for something before the engine that lets one through at a time."""

from __future__ import annotations

import pytest
from tests.unit.diagnose.cases import Shown, case_of

from nilometer.diagnose.causes import queueing

LOW = {"ttft_mean": 70.0, "token_gap": 5.0}
TWO_SLOTS = Shown(
    low=LOW,
    high={
        "ttft_mean": 1265.0,
        "e2e_mean": 1628.0,
        "decoding_share": 0.2,
        "full_decoding_cv": 0.3,
        "spacing_evenness": 0.47,
        "first_token_spacing": 190.0,
        "turn_gap": 77.0,
        "refill_share": 0.93,
        "decoding": 1.6,
    },
    step={"wait_share": 0.95, "gap_ratio": 2.57, "gap_elasticity_past_knee": 0.454, "prefill_load": 0.29},
)
"""As llama.cpp with two slots shows at eight requests: whoever takes a place has its first token 77 ms later."""


def test_places_that_are_taken_at_once_are_slots_though_first_tokens_come_evenly() -> None:
    assert queueing.queue(case_of(TWO_SLOTS)).score == pytest.approx(1.0)
    assert queueing.front_end(case_of(TWO_SLOTS)).score == 0


def test_a_place_that_stays_free_for_the_pace_of_a_front_end_is_not_waited_for() -> None:
    """One question every 250 ms to an engine that could take eight; alone the front end's time is in the TTFT."""
    high = {**TWO_SLOTS.high, "turn_gap": 211.0, "decoding_share": 0.03, "spacing_evenness": 0.88}
    fronted = TWO_SLOTS._replace(low={**LOW, "ttft_mean": 332.0}, high=high, step={**TWO_SLOTS.step, "gap_ratio": 1.0})
    assert queueing.front_end(case_of(fronted)).score == pytest.approx(1.0)
    assert not queueing.queue(case_of(fronted)).holds


def test_one_slot_decodes_or_works_on_a_prompt() -> None:
    """The number that decodes is 0 or 1 then, and its spread is that of a coin."""
    high = {**TWO_SLOTS.high, "full_decoding_cv": 0.78, "turn_gap": 72.0, "decoding": 0.62}
    assert queueing.queue(case_of(TWO_SLOTS._replace(high=high))).holds
    assert not queueing.queue(case_of(TWO_SLOTS._replace(high={**high, "turn_gap": 400.0}))).holds
