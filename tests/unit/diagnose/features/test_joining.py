"""How first tokens come: interleaved, in static batches, through a narrow door; against a slow count."""

from __future__ import annotations

from math import log
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.diagnose.made import about, even, streams
from tests.unit.metrics.made import at

from nilometer.core.record import Record
from nilometer.diagnose.features import joining
from nilometer.diagnose.figure import Figure


def test_two_interleaved_streams() -> None:
    """Each begins in the middle of the other one; only the very first joins nobody."""
    seen = streams([even(t, t + 0.1, 11) for t in (0, 0.5, 1.2, 1.7, 2.4)])
    assert joining.join_share(seen) == Figure(0.8, 5)


def test_static_batches_join_nobody() -> None:
    """Four streams begin within 30 ms and all end before the next four."""
    seen = streams([even(batch, batch + 0.1 + i / 100, 8 - i) for batch in range(5) for i in range(4)])
    assert joining.join_share(seen) == Figure(0.0, 20)


def test_a_static_batch_whose_prompts_take_long_takes_nobody_in() -> None:
    """Four streams begin 0.4 s apart, which is four gaps; none begins once one of them has ended."""
    batches = [even(4 * k, 4 * k + 0.1 + 0.4 * i, 20 - i) for k in range(3) for i in range(4)]
    assert joining.join_share(streams(batches, 20)) == Figure(0.75, 12)
    assert joining.refill_share(streams(batches, 20)) == Figure(0.0, 12)


def test_a_place_that_is_taken_at_once() -> None:
    """Two places, 1 s a stream, half a second apart: all but the first two come when one has ended and one goes on."""
    seen = streams([even(0, 0.1 + i / 2, 10, 0.1) for i in range(10)], 10)
    assert joining.refill_share(seen) == Figure(0.8, 10)


def test_streams_that_begin_together_do_not_join() -> None:
    """0.1 s between tokens: the second begins 0.25 s after the first, the third 0.35 s."""
    for apart, share in ((0.25, 0.0), (0.35, 0.5)):
        seen = streams([even(0, 1, 20), even(0, 1 + apart, 20)])
        assert joining.join_share(seen) == Figure(share, 2)


def test_a_long_stream_is_joined_though_shorter_ones_came_after_it() -> None:
    seen = streams([even(0, 0.1, 60), even(1, 1.1, 2), even(4, 4.1, 3)])
    assert joining.join_share(seen) == about(2 / 3, 3)


def test_spacing_of_first_tokens_through_a_narrow_door() -> None:
    seen = streams([even(0, 0.06 * (i + 1), 5) for i in range(21)])
    assert joining.first_token_spacing_ms(seen) == about(60.0, 20)
    assert joining.first_token_spacing_p10_ms(seen) == about(60.0, 20)
    assert joining.spacing_evenness(seen) == about(1.0, 20)


def test_random_arrivals_are_not_even() -> None:
    moments = np.random.default_rng(1).exponential(0.01, 3000).cumsum()
    even_ = joining.spacing_evenness(streams([even(0, float(t), 2) for t in moments], 100))
    assert even_ is not None
    assert even_.value == pytest.approx(log(10 / 9) / log(2), abs=0.02)


def test_first_tokens_outside_the_window_do_not_count() -> None:
    seen = streams([even(0, t, 3) for t in (0.5, 1.5, 1.7, 9)], 5, start_s=1)
    assert joining.first_token_spacing_ms(seen) == about(200.0, 1)


def test_nothing_streamed_is_not_measured() -> None:
    seen = streams([])
    assert joining.refill_share(seen) is None
    assert joining.join_share(seen) is joining.spacing_evenness(seen) is joining.first_token_spacing_ms(seen) is None


def _takes_a_place(record: Record, records: list[Record]) -> bool:
    spans = [(other.first_token_ns or 0, other.last_token_ns or 0) for other in records]
    now = record.first_token_ns or 0
    return any(begun < now < last and any(begun < end < now for _, end in spans) for begun, last in spans)


some = st.lists(
    st.tuples(st.integers(0, 60), st.integers(2, 12)).map(lambda one: even(0, 0.1 + one[0] / 20, one[1])),
    min_size=1,
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(some)
def test_join_share_as_counted_one_by_one(records: list[Record]) -> None:
    seen = streams(records, 8)
    assert seen.token_gap_ns is not None
    joined = 0
    for record in records:
        assert record.first_token_ns is not None
        joined += any(
            other.first_token_ns is not None
            and other.last_token_ns is not None
            and other.first_token_ns < record.first_token_ns - 3 * seen.token_gap_ns
            and other.last_token_ns > record.first_token_ns
            for other in records
        )
    assert joining.join_share(seen) == about(joined / len(records), len(records))
    refilled = sum(_takes_a_place(record, records) for record in records)
    assert joining.refill_share(seen) == about(refilled / len(records), len(records))
    assert at(0) == seen.span.start_ns


def test_a_server_of_one_slot_leaves_what_a_prompt_takes_between_two_streams() -> None:
    """0.2 s of prompt, then 5 tokens in 0.4 s; all ask at once, and wait for their turn."""
    seen = streams([even(0.1, 0.2 + 0.6 * n, 5) for n in range(8)], 6)
    assert joining.turn_gap_ms(seen) == about(200.0, 7)


@given(st.integers(1, 6), st.integers(0, 1000))
@settings(max_examples=30, deadline=None)
def test_whoever_takes_a_place_shows_its_first_token_after_its_prompt(slots: int, seed: int) -> None:
    """Answers of any length; each slot is filled again at once, and a prompt takes 70 ms."""
    random = Random(seed)
    free, made = [0.1 * n for n in range(slots)], []
    for _ in range(60):
        at = min(free)
        tokens = random.randint(5, 40)
        made.append(even(0.0, at + 0.07, tokens, 0.01))
        free[free.index(at)] = at + 0.07 + (tokens - 1) * 0.01
    found = joining.turn_gap_ms(streams(made, max(free) + 1))
    assert found is not None
    assert found.value == pytest.approx(70, abs=1)


def test_one_let_through_every_quarter_of_a_second_leaves_what_is_left_of_it() -> None:
    seen = streams([even(0.0, 0.3 + 0.25 * n, 5, 0.01) for n in range(20)], 6)
    assert joining.turn_gap_ms(seen) == about(210.0, 19)
