from __future__ import annotations

import pytest

from nilometer.core.record import Record
from nilometer.core.summary import Throughput

from .made import answered, failed, frames, phases, spec, summary, whole


def rates(*records: Record, window: str = "0..10", slo: str | None = None) -> Throughput:
    asked = spec(window=window)
    made = summary(list(records), phases(0, 10, 20), asked if slo is None else type(asked)(
        target=asked.target, load=asked.load, slo=slo
    ))  # fmt: skip
    return made.throughput


def test_tokens_count_when_they_arrive_whatever_the_start() -> None:
    made = rates(answered(2.0, [4.0, 5.0, 6.0, 7.0]), window="5..7")
    assert made.output_tokens_per_s == 2 / 2
    assert made.requests_per_s == 0.0
    assert made.input_tokens_per_s == 0.0


def test_the_rest_of_the_tokens_is_spread_evenly_over_the_frames() -> None:
    made = rates(answered(2.0, [4.0, 5.0, 6.0, 7.0], output_tokens=10), window="5..7")
    assert made.output_tokens_per_s == pytest.approx(2 * 2.5 / 2)


def test_a_frame_counts_what_the_server_states_for_it() -> None:
    stated = frames([4.0, 5.0, 6.0], tokens=[3, 1, 4])
    made = rates(answered(2.0, [4.0, 5.0, 6.0], output_tokens=8, frames=stated), window="5..10")
    assert made.output_tokens_per_s == pytest.approx(5 / 5)


def test_what_is_left_goes_to_the_frames_without_a_statement() -> None:
    stated = frames([4.0, 5.0, 6.0], tokens=[3, -1, -1])
    made = rates(answered(2.0, [4.0, 5.0, 6.0], output_tokens=8, frames=stated), window="5.5..10")
    assert made.output_tokens_per_s == pytest.approx(2.5 / 4.5)


def test_what_is_left_where_every_frame_states_goes_to_all() -> None:
    stated = frames([4.0, 5.0], tokens=[1, 3])
    made = rates(answered(2.0, [4.0, 5.0], output_tokens=10, frames=stated), window="4.5..10")
    assert made.output_tokens_per_s == pytest.approx((3 + 3) / 5.5)


def test_statements_of_one_request_do_not_touch_its_neighbour() -> None:
    stated = answered(1.0, [2.0, 3.0], frames=frames([2.0, 3.0], tokens=[5, 5]), output_tokens=10)
    silent = answered(1.0, [2.0, 3.0], output_tokens=4)
    nothing = whole(1.0, 9.0, 7)
    assert rates(silent, stated, nothing, silent, window="2.5..10").output_tokens_per_s == pytest.approx(
        (2 + 5 + 7 + 2) / 7.5
    )


def test_kernel_stamps_decide_where_there_are_any() -> None:
    late = frames([5.2, 6.2], kernel_s=[4.9, 5.9])
    made = rates(answered(2.0, [4.9, 5.9], frames=late), window="5..6")
    assert made.output_tokens_per_s == 1.0


def test_a_whole_answer_counts_at_its_last_byte() -> None:
    made = rates(whole(1.0, 5.0, 12), whole(1.0, 4.9, 100), window="5..6")
    assert made.output_tokens_per_s == 12.0
    assert made.input_tokens_per_s == 100.0
    assert made.requests_per_s == 1.0


def test_a_prompt_counts_at_its_first_token() -> None:
    made = rates(answered(1.0, [5.5, 7.0], prompt_tokens=300), answered(1.0, [4.5, 5.5]), window="5..6")
    assert made.input_tokens_per_s == 300.0


def test_estimates_count_and_unknown_does_not() -> None:
    guess = answered(1.0, [2.0, 3.0], token_source="estimated")
    unknown = answered(1.0, [2.0, 3.0], token_source="none", output_tokens=None, prompt_tokens=None)
    assert rates(guess, unknown).output_tokens_per_s == pytest.approx(2 / 10)
    assert rates(unknown).output_tokens_per_s is None
    assert rates(unknown).input_tokens_per_s is None
    assert rates(unknown).requests_per_s == pytest.approx(1 / 10)


def test_without_one_ok_request_nothing_came() -> None:
    made = rates(failed(1.0, 2.0))
    assert (made.output_tokens_per_s, made.requests_per_s, made.tokens_lost) == (0.0, 0.0, None)


def test_lost_tokens_are_those_known_of_requests_that_were_not_ok() -> None:
    cut = failed(1.0, 2.0, None, output_tokens=30, token_source="usage")
    unknown = failed(1.0, 2.0)
    before = failed(0.5, 2.0, output_tokens=500, token_source="usage")
    assert rates(cut, unknown, before, window="1..10").tokens_lost == 30
    assert rates(unknown).tokens_lost is None


def test_goodput_counts_requests_that_met_every_limit() -> None:
    good = answered(1.0, [1.4, 1.45], 2.0)
    slow_first = answered(1.0, [1.6, 1.65], 2.0)
    slow_each = answered(1.0, [1.4, 1.5], 2.0)
    unmeasured = answered(1.0, [1.4], 2.0)
    broken = failed(1.0, 1.1)
    bounds = "ttft_p95<=500ms,tpot_p50<=50ms,error_rate<=1%"
    made = rates(good, good, slow_first, slow_each, unmeasured, broken, slo=bounds)
    assert made.goodput_requests_per_s == pytest.approx(2 / 10)


def test_goodput_is_by_start_also_where_the_end_is_outside() -> None:
    late = answered(9.0, [9.1, 19.0])
    assert rates(late, slo="ttft_p95<=500ms").goodput_requests_per_s == pytest.approx(1 / 10)
    assert rates(late, slo="ttft_p95<=500ms").requests_per_s == 0.0


def test_no_limit_on_a_latency_means_no_goodput() -> None:
    good = answered(1.0, [1.4, 1.45])
    assert rates(good).goodput_requests_per_s is None
    assert rates(good, slo="error_rate<=1%").goodput_requests_per_s is None
