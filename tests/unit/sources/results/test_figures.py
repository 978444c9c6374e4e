"""A tool's own figures in our terms, derived by hand."""

from __future__ import annotations

import math

import pytest

from nilometer.core.summary import Distribution
from nilometer.sources.results.figures import distribution, missing, over


def test_the_deviation_of_a_population_becomes_that_of_a_sample() -> None:
    """1, 2, 3: sqrt(2/3) over n, 1 over n - 1."""
    told = {"mean": 2.0, "sd": math.sqrt(2 / 3)}
    assert distribution(told.get, 3).sd == pytest.approx(1.0)
    assert distribution(told.get, 3, population=False).sd == pytest.approx(math.sqrt(2 / 3))
    assert (distribution(told.get, None).sd, distribution(told.get, 1).sd) == (None, None)


def test_a_percentile_on_too_few_samples_is_marked_where_it_is() -> None:
    told = {"mean": 2.0, "p50": 2.0, "p99": 4.0}
    assert distribution(told.get, 1_000).marked == []
    assert distribution(told.get, 100).marked == ["p99"]
    assert distribution(told.get, None).marked == []


@pytest.mark.parametrize("told", [{}, {"mean": 0.0, "p50": 0.0, "p99": 0.0}])
def test_nothing_but_zeros_is_nothing(told: dict[str, float]) -> None:
    assert distribution(told.get, 4) == Distribution()


def test_missing_percentiles_are_those_of_latencies_that_have_others() -> None:
    some = Distribution(n=4, p50=1.0, p90=1.0, p99=2.0)
    assert missing({"ttft": some, "tpot": Distribution()}) == ["ttft p95"]


def test_a_quotient_of_what_is_not_known_is_not_known() -> None:
    assert (over(6.0, 3), over(6.0, 0), over(None, 3), over(6.0, None)) == (2.0, None, None, None)
