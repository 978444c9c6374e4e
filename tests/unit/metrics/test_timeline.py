from __future__ import annotations

import pytest

from .made import answered, failed, frames, phases, summary, whole


def test_each_second_has_its_own() -> None:
    records = [
        answered(0.25, [1.0, 1.5, 2.0], 2.5, phase="warmup"),
        whole(1.5, 3.0, 12),
        failed(2.0, 2.5, "http_429"),
        failed(2.25, 3.25, None),
    ]
    made = summary(records, phases(1, 3, 4)).timeline
    assert [second.at_s for second in made] == [-1, 0, 1, 2]
    assert [second.in_flight for second in made] == pytest.approx([0.75, 1.5, 0.5 + 1.0 + 0.5 + 0.75, 0.25])
    assert [second.arrivals for second in made] == [1, 1, 2, 0]
    assert [second.output_tokens for second in made] == pytest.approx([0, 2, 1, 12])
    assert [second.errors for second in made] == [0, 0, 1, 1]


def test_the_tokens_of_a_failed_request_are_not_output() -> None:
    broken = failed(0.0, 2.0, "stream_error", frames=frames([0.5, 1.0]), output_tokens=2, token_source="usage")
    made = summary([broken], phases(0, 2))
    assert [second.output_tokens for second in made.timeline] == [0.0, 0.0]
    assert made.throughput.output_tokens_per_s == 0.0
    assert made.throughput.tokens_lost == 2


def test_a_request_whose_end_was_not_seen_is_in_flight_until_the_run_ended() -> None:
    made = summary([failed(0.5, 1.0, None, end_ns=None)], phases(0, 2, 3)).timeline
    assert [second.in_flight for second in made] == pytest.approx([0.5, 1.0, 1.0])


def test_a_warmup_that_is_no_whole_second_begins_within_one() -> None:
    made = summary([whole(0.0, 3.0, 1)], phases(0.5, 3)).timeline
    assert [second.at_s for second in made] == [-1, 0, 1, 2]
    assert [second.in_flight for second in made] == pytest.approx([0.5, 1.0, 1.0, 0.5])
