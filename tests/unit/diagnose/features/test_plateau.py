"""How many decode at a time, how many tokens they hold, and Little's law: loads whose plateau is known."""

from __future__ import annotations

from tests.unit.diagnose.made import about, even, streams

from nilometer.core.record import Record
from nilometer.diagnose.features import plateau
from nilometer.diagnose.figure import Figure


def slots(n: int, *, tokens: int = 11, until_s: float = 20.0) -> list[Record]:
    """`n` slots, never empty: each takes a request that waited for 1 s when the one before has ended, 1 s later."""
    return [even(t - 1, t, tokens, 1 / (tokens - 1)) for t in range(1, int(until_s)) for _ in range(n)]


def test_a_plateau_at_the_slots() -> None:
    seen = streams(slots(3), 15, start_s=5)
    assert plateau.decoding(seen) == about(3, 30)
    assert plateau.decoding_most(seen) == Figure(3.0, 30)
    assert plateau.waiting(seen) == about(3, 30)
    assert plateau.in_flight(seen) == about(6, 30)
    assert plateau.decoding_share(seen) == about(0.5, 30)
    assert plateau.decoding_cv(seen) == about(0, 30)
    assert plateau.full_decoding(seen) == about(3, 30)
    assert plateau.full_decoding_cv(seen) == about(0, 30)


def test_a_plateau_in_tokens_is_not_one_in_count() -> None:
    """Two streams with prompts of 1,000 take turns with four of 500, second by second; one request waits throughout."""
    many = [(4, 500), (2, 1000)] * 10
    records = [
        even(t, t + 0.001, 3, 0.4989, prompt_tokens=prompt, output_tokens=3)
        for t, (n, prompt) in enumerate(many)
        for _ in range(n)
    ]
    waits = even(0, 30, 2, 0.1)
    seen = streams([*records, waits], 20)
    count, tokens = plateau.full_decoding_cv(seen), plateau.full_held_tokens_cv(seen)
    assert plateau.full_decoding(seen) == about(3, 61, rel=0.01)
    assert plateau.full_held_tokens(seen) == about(2000, 61, rel=0.01)
    assert count == about(1 / 3, 61, abs=0.01)
    assert tokens is not None
    assert tokens.value < 0.05


def test_without_anybody_waiting_there_is_no_plateau() -> None:
    seen = streams([even(0.5, 1, 101, 0.1)], 8, start_s=2)
    assert plateau.decoding(seen) == about(1, 0)
    assert plateau.full_decoding(seen) is plateau.full_held_tokens(seen) is None


def test_prompts_that_are_not_counted_leave_the_tokens_unknown() -> None:
    seen = streams([even(0.5, 1, 11, 0.1, prompt_tokens=None)])
    assert plateau.held_tokens(seen) is plateau.held_tokens_cv(seen) is None
    assert plateau.decoding(seen) == about(0.1, 1)


def test_littles_law_holds_in_a_steady_window() -> None:
    """Whole and parts: 3 requests a second; 2 s each, 1 s of it waiting and 1 s decoding."""
    seen = streams(slots(3), 15, start_s=5)
    for law in (plateau.little, plateau.little_waiting, plateau.little_decoding):
        assert law(seen) == about(0, 30)


def test_littles_law_fails_in_a_window_shorter_than_a_request() -> None:
    seen = streams([even(0, 1, 101, 0.1), even(1, 2, 21, 0.1)], 6, start_s=3)
    assert plateau.in_flight(seen) == about(4 / 3, 0)
    assert plateau.little(seen) == about(abs(4 / 3 - 1) / (4 / 3), 1)


def test_slots_that_stand_idle_are_missing_from_what_was_asked() -> None:
    seen = streams(slots(3), 15, start_s=5, level=8)
    assert plateau.little_asked(seen) == about(0.25, 30)


def test_an_empty_run_is_not_measured() -> None:
    seen = streams([], 0)
    assert plateau.in_flight(seen) is plateau.decoding_share(seen) is plateau.little(seen) is None
    assert plateau.held_tokens(seen) is plateau.little_asked(seen) is None
