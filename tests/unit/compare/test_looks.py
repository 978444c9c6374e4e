from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from nilometer.compare.looks import Looks
from nilometer.compare.student import beyond

ALPHA = 0.05


def claims(looks: Looks, alpha: float, n: int) -> list[float]:
    """Share of drawn sequences of differences without an effect that were claimed by each look, all former included."""
    drawn = np.random.default_rng(20).standard_normal((n, looks.most))
    claimed = np.zeros(n, dtype=bool)
    shares = []
    for pairs in range(looks.least, looks.most + 1):
        seen = drawn[:, :pairs]
        t = seen.mean(axis=1) / seen.std(axis=1, ddof=1) * math.sqrt(pairs)
        claimed |= t > beyond(looks.level(alpha, pairs), pairs - 1)
        shares.append(float(claimed.mean()))
    return shares


@pytest.mark.parametrize("alpha", [ALPHA, ALPHA / 3])
@pytest.mark.parametrize("looks", [Looks(), Looks(most=5), Looks(rho=1.0), Looks(least=2, most=4)])
def test_all_looks_together_claim_as_often_as_was_planned_and_so_by_every_look(looks: Looks, alpha: float) -> None:
    n = 100_000
    planned = [alpha * (pairs / looks.most) ** looks.rho for pairs in range(looks.least, looks.most + 1)]
    for share, plan in zip(claims(looks, alpha, n), planned, strict=True):
        assert share == pytest.approx(plan, abs=4 * math.sqrt(plan / n))


def test_to_look_at_the_full_rate_each_time_would_claim_three_times_as_often() -> None:
    """What the plan is for: the claim in the module's first paragraph."""
    drawn = np.random.default_rng(4).standard_normal((50_000, 10))
    claimed = np.zeros(len(drawn), dtype=bool)
    for pairs in range(3, 11):
        seen = drawn[:, :pairs]
        claimed |= seen.mean(axis=1) / seen.std(axis=1, ddof=1) * math.sqrt(pairs) > beyond(ALPHA, pairs - 1)
    assert claimed.mean() == pytest.approx(0.15, abs=0.02)


def test_the_first_look_spends_its_share_and_no_more() -> None:
    assert Looks().level(ALPHA, 3) == pytest.approx(ALPHA * 0.3**2.0)


def test_one_look_is_a_test_of_its_own() -> None:
    assert Looks(least=7, most=7).level(ALPHA, 7) == pytest.approx(ALPHA)


def test_there_is_no_claim_before_the_first_look_nor_after_the_last() -> None:
    assert (Looks().level(ALPHA, 2), Looks().level(ALPHA, 11)) == (0.0, 0.0)


def test_what_a_look_spends_lies_between_a_plan_for_strangers_and_one_for_twins() -> None:
    """More than its increment (looks share pairs), less than all that may be spent by then."""
    looks = Looks()
    planned = {pairs: ALPHA * (pairs / 10) ** looks.rho for pairs in range(2, 11)}
    for pairs in range(4, 11):
        assert planned[pairs] - planned[pairs - 1] < looks.level(ALPHA, pairs) < planned[pairs]


def test_later_looks_are_laxer() -> None:
    levels = [Looks(most=20).level(ALPHA, pairs) for pairs in range(4, 21)]
    assert all(one < other for one, other in pairwise(levels))


def test_one_pair_has_no_t() -> None:
    with pytest.raises(ValueError, match="no t"):
        Looks(least=1).level(ALPHA, 1)
