"""Noise floor, smallest change and drift, against values worked out by hand and by simulation."""

from __future__ import annotations

import math
from random import Random
from statistics import fmean

import pytest

from nilometer.compare.looks import Looks
from nilometer.compare.noise import claim_level, drift, pairs_for, run_spread, smallest_change
from nilometer.compare.student import beyond
from nilometer.compare.verdict import Rule, judge_values


def test_two_runs_of_each_pair_share_its_spread() -> None:
    """Differences 1, 3: sd is sqrt(2); that of one run is 1."""
    assert run_spread([1.0, 3.0]) == pytest.approx(1.0)
    assert run_spread([1.0]) is None


def test_the_smallest_change_is_found_in_four_of_five_cases() -> None:
    """By simulation: pairs with just this change are shown to be beyond the margin by a t test in 80 %."""
    spread, pairs, margin = 0.03, 8, math.log1p(0.05)
    change = smallest_change(spread, pairs, margin, 0.05)
    assert change is not None
    draw, found, of = Random(7), 0, 4_000
    for _ in range(of):
        differences = [change + draw.gauss(0, spread * math.sqrt(2)) for _ in range(pairs)]
        mean = fmean(differences)
        error = math.sqrt(sum((one - mean) ** 2 for one in differences) / (pairs - 1) / pairs)
        found += (mean - margin) / error > beyond(0.05, pairs - 1)
    assert found / of == pytest.approx(0.80, abs=0.03)


def test_one_pair_shows_nothing() -> None:
    assert smallest_change(0.03, 1, 0.05, 0.05) is None


def test_the_pairs_for_a_change_are_the_fewest_that_show_it() -> None:
    rule = Rule(interleaved=True, looks=Looks())
    spread, change, margin = 0.02, math.log1p(0.10), math.log1p(0.05)
    pairs = pairs_for(spread, change, margin, rule)
    assert pairs is not None
    least = [smallest_change(spread, n, margin, claim_level(rule, n)) or math.inf for n in (pairs - 1, pairs)]
    assert least[1] <= change < least[0]
    assert pairs_for(1e-6, change, margin, rule) == 3, "no verdict below three"
    assert pairs_for(spread, margin, margin, rule) is None, "no number shows a change of just the margin"


def test_the_smallest_change_told_is_found_by_a_verify_in_four_of_five_cases() -> None:
    """By simulation of whole verifies, looked at after each pair, with three figures that are judged."""
    rule = Rule(interleaved=True, looks=Looks(most=8))
    names = [row.name for row in rule.family]
    (row,) = (row for row in rule.family if row.name == "tpot_p50")
    change = smallest_change(0.03, 8, row.log_margin, claim_level(rule, 8))
    assert change is not None
    draw, found, of = Random(11), 0, 400
    for _ in range(of):
        a = {name: [math.exp(draw.gauss(0, 0.03)) for _ in range(8)] for name in names}
        b = {name: [math.exp(draw.gauss(0, 0.03)) for _ in range(8)] for name in names}
        b["tpot_p50"] = [value * math.exp(change) for value in b["tpot_p50"]]
        for n in range(3, 9):
            of_a, of_b = ({name: values[:n] for name, values in side.items()} for side in (a, b))
            if judge_values(of_a, of_b, rule)[0] == "REGRESSED":
                found += 1
                break
    assert found / of == pytest.approx(0.80, abs=0.06)


def test_drift_is_told_apart_from_the_sides() -> None:
    """b is 0.5 above a, and everything grows by 0.01 a run."""
    sides = "abbaabba"
    logs = [0.01 * i + (0.5 if side == "b" else 0.0) for i, side in enumerate(sides)]
    assert drift(logs, sides) == pytest.approx(0.01)


@pytest.mark.parametrize("sides", ["a", "ab", "aab"])
def test_too_few_runs_have_no_drift(sides: str) -> None:
    assert drift([0.0] * len(sides), sides) is None
