from __future__ import annotations

from typing import Any

import msgspec
import pytest

from nilometer.core.record import Record
from nilometer.metrics import request

from .made import answered, at, frames, whole

FIVE = answered(1.0, [1.5, 1.6, 1.7, 1.8, 1.9], 2.0)


def but(record: Record, **changes: Any) -> Record:
    return msgspec.structs.replace(record, **changes)


def test_latencies_of_a_refilled_slot_start_at_sent() -> None:
    assert request.ttft_ns(FIVE) == 500_000_000
    assert request.e2e_ns(FIVE) == 1_000_000_000
    assert request.tpot_ns(FIVE) == 100_000_000
    assert request.start_lag_ns(FIVE) is None


def test_latencies_of_a_due_request_start_when_it_was_due() -> None:
    late = but(FIVE, due_ns=at(0.9))
    assert request.ttft_ns(late) == 600_000_000
    assert request.e2e_ns(late) == 1_100_000_000
    assert request.start_lag_ns(late) == 100_000_000
    assert request.ttft_from_sent_ns(late) == 500_000_000
    assert request.e2e_from_sent_ns(late) == 1_000_000_000
    assert request.tpot_ns(late) == 100_000_000


def test_first_answer_leaves_reasoning_out() -> None:
    thought = but(FIVE, first_answer_ns=at(1.8))
    assert request.ttfa_ns(thought) == 800_000_000
    assert request.ttft_ns(thought) == 500_000_000
    assert request.ttfa_ns(but(FIVE, first_answer_ns=None)) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"output_tokens": 1},
        {"output_tokens": 0},
        {"output_tokens": None, "token_source": "none"},
        {"choices": 2},
        {"hidden_tokens": True},
        {"token_source": "estimated"},
        {"first_token_ns": None, "last_token_ns": None},
        {"last_token_ns": None},
    ],
)
def test_no_tpot_where_it_would_not_be_one(changes: dict[str, Any]) -> None:
    assert request.tpot_ns(but(FIVE, **changes)) is None


def test_tpot_counts_tokens_not_frames() -> None:
    assert request.tpot_ns(but(FIVE, output_tokens=17)) == 400_000_000 / 16


def test_a_whole_answer_has_no_token_times() -> None:
    made = whole(1.0, 2.0, 20)
    assert request.ttft_ns(made) is request.ttfa_ns(made) is request.tpot_ns(made) is None
    assert request.e2e_ns(made) == 1_000_000_000


def test_connecting_includes_the_handshake() -> None:
    assert request.connect_ns(FIVE) is None
    assert request.connect_ns(but(FIVE, connect_ns=3_000_000)) == 3_000_000
    assert request.connect_ns(but(FIVE, connect_ns=3_000_000, tls_ns=4_000_000)) == 7_000_000


def test_the_kernel_stamp_is_the_better_one() -> None:
    made = frames([1.5, 1.7, 1.9], kernel_s=[1.4, None, 1.8])
    assert request.frame_stamps_ns(made).tolist() == [at(1.4), at(1.7), at(1.8)]
    assert request.frame_gaps_ns(made).tolist() == [300_000_000, 100_000_000]
    assert request.frame_gaps_ns(frames([1.5])).tolist() == []


def test_one_token_a_frame_must_be_known() -> None:
    assert request.one_token_a_frame(FIVE)
    assert not request.one_token_a_frame(but(FIVE, output_tokens=6))
    assert not request.one_token_a_frame(but(FIVE, token_source="estimated"))
    assert not request.one_token_a_frame(but(FIVE, hidden_tokens=True))
    stated = frames([1.5, 1.6, 1.7, 1.8, 1.9], tokens=[1] * 5)
    assert request.one_token_a_frame(but(FIVE, frames=stated, output_tokens=None, token_source="none"))
    unsaid = frames([1.5, 1.6, 1.7, 1.8, 1.9], tokens=[1, 1, -1, 1, 1])
    assert not request.one_token_a_frame(but(FIVE, frames=unsaid, output_tokens=6))


def test_shown_latencies_are_in_ms_and_null_where_not_measured() -> None:
    assert request.shown_ms(FIVE) == {"ttft_ms": 500.0, "ttfa_ms": 500.0, "tpot_ms": 100.0, "e2e_ms": 1000.0}
    assert request.shown_ms(whole(1.0, 2.0, 5)) == {"ttft_ms": None, "ttfa_ms": None, "tpot_ms": None, "e2e_ms": 1000.0}
