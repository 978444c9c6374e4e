"""Noise floor, smallest change and drift, against values worked out by hand and by simulation."""

from __future__ import annotations

import math
from random import Random
from statistics import fmean

import pytest

from nilometer.compare.noise import drift, pairs_for, run_spread, smallest_change
from nilometer.compare.student import beyond


def test_two_runs_of_each_pair_share_its_spread() -> None:
    """Differences 1, 3: sd is sqrt(2); that of one run is 1."""
    assert run_spread([1.0, 3.0]) == pytest.approx(1.0)
    assert run_spread([1.0]) is None


def test_the_smallest_change_is_found_in_four_of_five_cases() -> None:
    """By simulation: pairs with just this change are shown to be beyond the margin by a t test in 80 %."""
    spread, pairs, margin = 0.03, 8, math.log1p(0.05)
    change = smallest_change(spread, pairs, margin)
    assert change is not None
    draw, found, of = Random(7), 0, 4_000
    for _ in range(of):
        differences = [change + draw.gauss(0, spread * math.sqrt(2)) for _ in range(pairs)]
        mean = fmean(differences)
        error = math.sqrt(sum((one - mean) ** 2 for one in differences) / (pairs - 1) / pairs)
        found += (mean - margin) / error > beyond(0.05, pairs - 1)
    assert found / of == pytest.approx(0.80, abs=0.03)


def test_one_pair_shows_nothing() -> None:
    assert smallest_change(0.03, 1, 0.05) is None


def test_the_pairs_for_a_change_are_the_fewest_that_show_it() -> None:
    spread, margin = 0.02, math.log1p(0.05)
    pairs = pairs_for(spread, math.log1p(0.10), margin)
    assert pairs is not None
    assert (
        (smallest_change(spread, pairs, margin) or 1)
        <= math.log1p(0.10)
        < (smallest_change(spread, pairs - 1, margin) or 0)
    )
    assert pairs_for(1e-6, math.log1p(0.10), margin) == 3, "no verdict below three"
    assert pairs_for(spread, margin, margin) is None, "no number shows a change of just the margin"


def test_drift_is_told_apart_from_the_sides() -> None:
    """b is 0.5 above a, and everything grows by 0.01 a run."""
    sides = "abbaabba"
    logs = [0.01 * i + (0.5 if side == "b" else 0.0) for i, side in enumerate(sides)]
    assert drift(logs, sides) == pytest.approx(0.01)


@pytest.mark.parametrize("sides", ["a", "ab", "aab"])
def test_too_few_runs_have_no_drift(sides: str) -> None:
    assert drift([0.0] * len(sides), sides) is None
