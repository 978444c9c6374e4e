"""What changes while the load stays: seeded cold starts, drifts, spells and steps, and noise that has none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from tests.unit.diagnose.made import about, even, near, stream, streams

from nilometer.core.record import Record
from nilometer.diagnose.features import over_time
from nilometer.diagnose.streams import Streams


def one_by_one(ttft_s: Sequence[float], gap_s: float = 0.02) -> list[Record]:
    """A request a second, with these times to their first token."""
    return [even(i, i + ttft, 4, gap_s) for i, ttft in enumerate(ttft_s)]


def with_gaps(gaps_s: Sequence[float], beside: int = 2) -> Streams:
    """Streams that go on for the whole run, all with these gaps."""
    end = 1 + sum(gaps_s)
    return streams([stream(0, 0.5, gaps_s) for _ in range(beside)], end)


def test_a_cold_start_is_in_the_head() -> None:
    seen = streams(one_by_one([2.6, 0.4, 0.3] + [0.1] * 20), 40)
    assert over_time.head_ratio(seen) == about(11.0, 20)


def test_the_head_is_that_of_the_run_though_the_window_begins_later() -> None:
    seen = streams(one_by_one([0.3] * 3 + [0.1] * 20), 40, start_s=10)
    assert over_time.head_ratio(seen) == about(3.0, 20)


def test_a_warm_start_has_a_head_like_the_rest_and_few_requests_have_none() -> None:
    assert over_time.head_ratio(streams(one_by_one([0.1] * 20), 40)) == about(1.0, 17)
    assert over_time.head_ratio(streams(one_by_one([0.1] * 12), 40)) is None


def test_the_first_request_after_an_idle_spell_is_cold() -> None:
    """Requests at 0, 0.3, 0.6 s, then nothing for 4.3 s; three times over."""
    records = [
        even(5 * k + i * 0.3, 5 * k + i * 0.3 + (0.15 if i or not k else 0.6), 2, 0.05)
        for k in range(4)
        for i in range(3)
    ]
    assert over_time.after_idle_ratio(streams(records, 20)) == about(4.0, 3)


def test_without_idle_spells_there_is_nothing_to_wake_from() -> None:
    assert over_time.after_idle_ratio(streams(one_by_one([0.9] * 9), 20)) is None


def test_a_drift_is_found_and_told_from_none() -> None:
    grown = streams(one_by_one(np.linspace(0.1, 0.2, 100).tolist()), 120)
    share, p = over_time.drift_share(grown, "ttft"), over_time.drift_p(grown, "ttft")
    assert share == about(100 * 0.1 / 99 / 0.15, 100)
    assert p is not None
    assert p.value < 1e-4
    assert over_time.drift_share(grown, "tpot") == about(0, 100, abs=1e-6)
    assert over_time.drift_share(streams(one_by_one([0.1] * 49), 60), "ttft") is None


def test_what_grows_from_nothing_has_no_share() -> None:
    """Nothing in flight for most of the window, then more and more."""
    seen = streams([even(30 + i, 60, 3, 0.1) for i in range(8)], 40)
    assert over_time.in_flight_drift_share(seen) is None
    assert over_time.drift_share(seen, "ttft") is None


def test_prompts_that_grow_are_told_too() -> None:
    seen = streams([even(i, i + 0.1, 3, prompt_tokens=100 + i) for i in range(100)], 120)
    assert over_time.tokens_drift_share(seen, "prompt_tokens") == about(100 / 149.5, 100, rel=0.01)
    assert over_time.tokens_drift_share(seen, "output_tokens") == about(0, 100)


def test_an_open_loop_that_piles_up() -> None:
    """A request a second, each there for as long as 30 s have left."""
    seen = streams([even(i, 30, 3, 0.1) for i in range(30)], 30)
    drift = over_time.in_flight_drift_share(seen)
    assert drift is not None
    assert drift.n == 30
    assert drift.value > 1.5


def test_a_neighbour_that_takes_a_second_of_three() -> None:
    """20 ms a token, five times as much for 1 s in 3, for 30 s."""
    seen = with_gaps(([0.02] * 100 + [0.1] * 10) * 10)
    slow, spell, separation = (
        feature(seen) for feature in (over_time.slow_ratio, over_time.slow_spell_s, over_time.slow_separation)
    )
    assert slow is not None
    assert spell is not None
    assert separation is not None
    assert 3.5 < slow.value < 5
    assert 0.8 < spell.value < 1.6
    assert spell.n == 10
    assert separation.value > 0.85
    share = over_time.slow_time_share(seen)
    assert share is not None
    assert 0.3 < share.value < 0.5


def test_noise_alone_has_no_second_mode() -> None:
    noise = np.random.default_rng(3).lognormal(-4, 0.05, 1500).tolist()
    seen = with_gaps(noise)
    slow, separation = over_time.slow_ratio(seen), over_time.slow_separation(seen)
    assert slow is not None
    assert separation is not None
    assert slow.value < 1.1
    assert separation.value < 0.75


def test_slow_spells_that_come_with_prompts_are_the_loads_own() -> None:
    """Each prompt slows the others down for the quarter of a second in which it is worked on."""
    gaps = ([0.025] * 30 + [0.0625] * 4) * 10
    own = stream(0, 0.25, gaps)
    arrivals = [even(1.0001 + k, 1.2 + k, 2, 0.01, output_tokens=2) for k in range(10)]
    together = over_time.slow_prefill_r(streams([own, *arrivals], 10.5, start_s=0.5))
    others = [even(0.5 + k, 0.6 + k, 2, 0.025) for k in range(10)]
    apart = over_time.slow_prefill_r(streams([own, *others], 10.5, start_s=0.5))
    assert together is not None
    assert apart is not None
    assert together.value > 0.9
    assert apart.value < 0.1


def test_a_step_from_one_moment_on() -> None:
    """20 ms a token for 10 s, then 30 ms for 15 s."""
    seen = with_gaps([0.02] * 500 + [0.03] * 500)
    ratio, at, separation = (
        feature(seen) for feature in (over_time.step_ratio, over_time.step_at_s, over_time.step_separation)
    )
    assert ratio is not None
    assert at is not None
    assert separation is not None
    assert ratio.value == pytest.approx(1.5, rel=0.01)
    assert at.value == pytest.approx(10.5, abs=0.5)
    assert separation.value > 0.98


def test_a_straight_drift_is_no_clean_step() -> None:
    separation = over_time.step_separation(with_gaps(np.geomspace(0.02, 0.03, 1000).tolist()))
    assert separation is not None
    assert separation.value < 0.8


def test_short_runs_tell_of_neither() -> None:
    seen = with_gaps([0.02] * 100)
    assert over_time.slow_ratio(seen) is over_time.step_ratio(seen) is over_time.step_at_s(seen) is None
    assert over_time.slow_spell_s(seen) is over_time.slow_prefill_r(seen) is None


def test_values_that_do_not_vary_have_no_halves() -> None:
    split = over_time.two_groups(np.full(8, 3.0))
    assert (split.ratio, split.between) == near(1, 0)
    assert over_time.in_order(np.full(8, 3.0)) is None


def test_a_stretch_that_was_cut_off_and_was_faster_shows_that_the_service_got_slower() -> None:
    """300 gaps of 10 ms before the window, 100 of 15 ms in it; a warm-up has it the other way round."""
    fast, slow = even(0.0, 0.1, 301, 0.010), even(4.0, 4.1, 101, 0.015)
    assert over_time.cut_ratio(streams([fast, slow], start_s=3.5)) == about(1.5, 300)
    slow_first, then = even(0.0, 0.1, 231, 0.015), even(4.0, 4.1, 101, 0.010)
    assert over_time.cut_ratio(streams([slow_first, then], start_s=3.9)) == about(10 / 15, 230)
    assert over_time.cut_ratio(streams([slow], start_s=3.5)) is None
