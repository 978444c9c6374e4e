"""What changes while the load stays: each way to see it, and what looks alike and is not it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.unit.diagnose.cases import Shown, case_of

from nilometer.diagnose.causes import over_time

SPELLS = {"slow_ratio": 1.8, "slow_separation": 0.91, "slow_spell": 1.0, "slow_time_share": 0.26}
"""As three busy programs for one second of four make on a core that an engine has."""
BLURRED = {"slow_ratio": 1.8, "slow_separation": 0.7, "slow_spell": 0.6, "slow_time_share": 0.3}
"""The same where prompts stop the streams as well."""


def test_spells_at_the_lowest_load_are_enough_where_the_highest_has_stops_of_its_own() -> None:
    found = over_time.noisy_neighbour(case_of(Shown(low=SPELLS, high=BLURRED)))
    assert found.score == pytest.approx(1.0)


@pytest.mark.parametrize(
    "low",
    [
        {"tpot_mode_separation": 0.99, "tpot_mode_in_time": 0.05},  # slow from beginning to end, whenever it is
        {"replica_tpot_share": 0.8},
        {"target_tpot_share": 0.8},
    ],
)
def test_requests_that_a_slow_replica_answers_are_no_spells(low: Mapping[str, float]) -> None:
    assert not over_time.noisy_neighbour(case_of(Shown(low={**SPELLS, **low}, high=BLURRED))).holds


GROWN = {"tpot_drift": 0.3, "tpot_drift_p": 0.001}


def test_growth_goes_on_at_every_load() -> None:
    assert over_time.growing_state(case_of(Shown(low=GROWN, high=GROWN))).holds


def test_a_pace_that_falls_at_one_load_and_rises_at_the_other_is_a_machine_that_breathes() -> None:
    """As measured on a shared machine: -36 % over the window alone, +32 % at eight requests."""
    breathing = Shown(low={"tpot_drift": -0.36, "tpot_drift_p": 0.009}, high=GROWN)
    assert over_time.growing_state(case_of(breathing)).score == 0


def test_of_a_few_seconds_no_growth_is_told() -> None:
    assert over_time.growing_state(case_of(Shown(low=GROWN, high=GROWN, facts={"length_s": 8.0}))).score == 0


def test_clocks_that_drop_before_the_window_are_seen_by_what_was_cut_off() -> None:
    assert over_time.throttling(case_of(Shown(high={"cut_ratio": 1.9}))).holds
    assert over_time.throttling(case_of(Shown(low={"cut_ratio": 1.9}))).holds
    assert not over_time.throttling(case_of(Shown(high={"cut_ratio": 1.2}))).holds
    assert not over_time.throttling(case_of(Shown(high={"cut_ratio": 1.6, **GROWN}))).holds, "it grew"


PAUSES = {"pause_unevenness": 0.5, "pause_time_share": 0.4, "pause_length": 0.09, "pause_period": 0.4}


def test_a_clock_is_one_though_half_of_its_strokes_are_missed() -> None:
    """Stops of 80 ms every 200 ms, of which those within a first token's wait are not seen."""
    assert over_time.stopped(case_of(Shown(low={**PAUSES, "pause_clock": 0.98}))).score == pytest.approx(1.0)
    assert not over_time.stopped(case_of(Shown(low={**PAUSES, "pause_clock": 0.0}))).holds


def test_a_part_of_the_quotas_period_without_tokens_is_one_of_its_stops() -> None:
    assert over_time.throttling(case_of(Shown(high={"quota_quiet_share": 0.5}))).score == pytest.approx(1.0)
    assert over_time.throttling(case_of(Shown(high={"quota_quiet_share": 0.05}))).score == 0
