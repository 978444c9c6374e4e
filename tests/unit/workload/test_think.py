from __future__ import annotations

import math
from random import Random
from statistics import fmean, median

import pytest

from nilometer.core.errors import SpecError
from nilometer.workload import think


def drawn(text: str, n: int = 20_000) -> list[float]:
    random = Random(7)
    of = think.parse(text)
    return [of(random) for _ in range(n)]


def test_a_number_is_always_the_same() -> None:
    assert set(drawn("2.5", 10)) == {2.5}
    assert set(drawn("0", 10)) == {0.0}


def test_an_exponential_has_its_mean_and_as_much_spread() -> None:
    seen = drawn("exponential:4")
    assert fmean(seen) == pytest.approx(4, rel=0.03)
    assert median(seen) == pytest.approx(4 * math.log(2), rel=0.03)


def test_a_lognormal_has_its_median_and_its_p95() -> None:
    seen = sorted(drawn("lognormal:3,12"))
    assert seen[10_000] == pytest.approx(3, rel=0.03)
    assert seen[19_000] == pytest.approx(12, rel=0.05)


def test_a_uniform_stays_between_its_bounds() -> None:
    seen = drawn("uniform:1,3")
    assert 1 <= min(seen) < 1.01
    assert 2.99 < max(seen) <= 3


@pytest.mark.parametrize("text", ["2.5", "uniform:1,3", "exponential:4", "lognormal:3,12"])
def test_the_mean_is_that_of_what_is_drawn(text: str) -> None:
    assert think.mean_s(text) == pytest.approx(fmean(drawn(text)), rel=0.03)


@pytest.mark.parametrize(
    "text",
    ["", "x", "-1", "nan", "inf", "1e9", "gauss:1,2", "uniform:3,1", "uniform:1", "lognormal:0,3", "exponential:-1"],
)
def test_what_is_no_think_time_is_refused(text: str) -> None:
    with pytest.raises(SpecError) as caught:
        think.parse(text)
    assert caught.value.slug == "think_unknown"
