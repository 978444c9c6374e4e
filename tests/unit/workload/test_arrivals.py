from __future__ import annotations

from itertools import islice
from math import inf, nan
from random import Random

import pytest

from nilometer.core.errors import SpecError
from nilometer.workload.arrivals import pacer

MS = 1_000_000


def test_constant_arrivals_start_at_once_and_keep_their_distance() -> None:
    assert list(islice(pacer("constant", 4.0, Random(1)), 4)) == [0, 250 * MS, 500 * MS, 750 * MS]


def test_a_constant_rate_that_divides_badly_does_not_drift() -> None:
    assert list(islice(pacer("constant", 3.0, Random(1)), 300_000, 300_001)) == [100_000 * 1_000_000_000]


def test_poisson_gaps_are_exponential() -> None:
    due = list(islice(pacer("poisson", 100.0, Random(7)), 20_000))
    gaps_ms = [(later - earlier) / MS for earlier, later in zip([0, *due], due, strict=False)]
    mean = sum(gaps_ms) / len(gaps_ms)
    spread = (sum((gap - mean) ** 2 for gap in gaps_ms) / len(gaps_ms)) ** 0.5
    assert mean == pytest.approx(10.0, rel=0.03)
    assert spread / mean == pytest.approx(1.0, abs=0.03)
    # P(gap > 2 x mean) = e^-2
    assert sum(gap > 20 for gap in gaps_ms) / len(gaps_ms) == pytest.approx(0.1353, abs=0.01)


def test_a_kind_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(SpecError) as refused:
        pacer("gamma:2", 1.0, Random(1))
    assert refused.value.slug == "arrivals_unknown"
    assert refused.value.params == {"text": "gamma:2", "known": "constant, poisson"}


@pytest.mark.parametrize("rate", [0.0, -1.0, inf, nan])
def test_a_rate_that_cannot_be_kept_is_refused(rate: float) -> None:
    with pytest.raises(SpecError) as refused:
        pacer("poisson", rate, Random(1))
    assert refused.value.slug == "rate_invalid"
