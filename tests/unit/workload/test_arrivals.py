"""When requests are due: rates, spreads and shapes against theory, refusals by their slug."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, takewhile
from math import inf, nan
from random import Random

import pytest

from nilometer.core.errors import SpecError
from nilometer.workload.arrivals import Stretch, mean_rate_per_s, pacer, plan

MS = 1_000_000
S = 1_000_000_000


def gaps_ms(due: list[int]) -> list[float]:
    return [(later - earlier) / MS for earlier, later in zip([0, *due], due, strict=False)]


def mean_and_cv(values: list[float]) -> tuple[float, float]:
    mean = sum(values) / len(values)
    return mean, (sum((value - mean) ** 2 for value in values) / len(values)) ** 0.5 / mean


def per_second(due: Iterator[int], seconds: int) -> list[int]:
    """How many are due in each of the first seconds."""
    counts = [0] * seconds
    for at in takewhile(lambda at: at < seconds * S, due):
        counts[at // S] += 1
    return counts


def test_constant_arrivals_start_at_once_and_keep_their_distance() -> None:
    assert list(islice(pacer("constant", 4.0, Random(1)), 4)) == [0, 250 * MS, 500 * MS, 750 * MS]


def test_a_constant_rate_that_divides_badly_does_not_drift() -> None:
    assert list(islice(pacer("constant", 3.0, Random(1)), 300_000, 300_001)) == [100_000 * S]


def test_poisson_gaps_are_exponential() -> None:
    gaps = gaps_ms(list(islice(pacer("poisson", 100.0, Random(7)), 20_000)))
    mean, cv = mean_and_cv(gaps)
    assert mean == pytest.approx(10.0, rel=0.03)
    assert cv == pytest.approx(1.0, abs=0.03)
    # P(gap > 2 x mean) = e^-2
    assert sum(gap > 20 for gap in gaps) / len(gaps) == pytest.approx(0.1353, abs=0.01)


@pytest.mark.parametrize("cv", [0.25, 1.0, 3.0])
def test_gamma_gaps_have_the_spread_that_is_asked(cv: float) -> None:
    gaps = gaps_ms(list(islice(pacer(f"gamma:{cv:g}", 50.0, Random(3)), 60_000)))
    mean, seen = mean_and_cv(gaps)
    assert mean == pytest.approx(20.0, rel=0.05)
    assert seen == pytest.approx(cv, rel=0.05)


def test_steps_have_each_their_rate_and_the_last_stays() -> None:
    counts = per_second(pacer("steps:100@20s,400@10s,50@1s", None, Random(5)), 60)
    assert sum(counts[:20]) == pytest.approx(2_000, rel=0.08)
    assert sum(counts[20:30]) == pytest.approx(4_000, rel=0.06)
    assert sum(counts[30:60]) == pytest.approx(1_500, rel=0.1)


def test_a_ramp_rises_evenly_and_stays_at_its_end() -> None:
    counts = per_second(pacer("ramp:0,1000,20s", None, Random(5)), 30)
    assert sum(counts[:10]) == pytest.approx(2_500, rel=0.06)  # a quarter of the triangle of 10,000
    assert sum(counts[10:20]) == pytest.approx(7_500, rel=0.05)
    assert sum(counts[20:]) == pytest.approx(10_000, rel=0.04)


def test_a_ramp_may_fall_to_nothing() -> None:
    due = list(pacer("ramp:1000,0,10s", None, Random(5)))
    assert len(due) == pytest.approx(5_000, rel=0.06)
    assert due[-1] < 10 * S
    assert sum(at < 5 * S for at in due) == pytest.approx(3_750, rel=0.06)


def test_a_spike_returns_to_its_base() -> None:
    counts = per_second(pacer("spike:20,500,10s", None, Random(5)), 40)
    assert sum(counts[:10]) == pytest.approx(200, rel=0.25)
    assert sum(counts[10:20]) == pytest.approx(5_000, rel=0.06)
    assert sum(counts[20:]) == pytest.approx(400, rel=0.2)


def test_the_warm_up_has_the_first_rate_and_the_shape_begins_after_it() -> None:
    counts = per_second(pacer("ramp:200,2000,10s", None, Random(5), warmup_s=10), 20)
    assert sum(counts[:10]) == pytest.approx(2_000, rel=0.08)
    assert sum(counts[10:]) == pytest.approx(11_000, rel=0.05)


def test_a_shape_of_one_rate_is_poisson() -> None:
    mean, cv = mean_and_cv(gaps_ms(list(islice(pacer("steps:100@1s", None, Random(7)), 20_000))))
    assert mean == pytest.approx(10.0, rel=0.03)
    assert cv == pytest.approx(1.0, abs=0.03)


def test_the_time_of_an_arrival_is_where_so_many_are_expected() -> None:
    """By hand: from 2/s, rising by 1/s each second, 6 are expected after t with 2 t + t^2 / 2 = 6: t = 2."""
    assert Stretch(10, 2, 12).when_s(6) == pytest.approx(2.0)
    assert Stretch(10, 0, 10).when_s(8) == pytest.approx(4.0)
    assert Stretch(inf, 5, 5).when_s(10) == 2.0
    assert Stretch(10, 2, 12).requests == 70


def test_lengths_may_have_units() -> None:
    assert plan("steps:1@1m,2@500ms,3@1h") == [Stretch(60, 1, 1), Stretch(0.5, 2, 2), Stretch(inf, 3, 3)]
    assert plan("spike:1, 2, 30") == [Stretch(30, 1, 1), Stretch(30, 2, 2), Stretch(inf, 1, 1)]
    assert plan("poisson") is None


@pytest.mark.parametrize(
    ("text", "rate", "seconds", "mean"),
    [
        ("poisson", 3.0, 60, 3.0),
        ("ramp:0,10,20s", None, 20, 5.0),
        ("ramp:0,10,20s", None, 40, 7.5),
        ("ramp:0,10,20s", None, 10, 2.5),
        ("spike:2,8,10s", None, 40, 3.5),
        ("steps:1@10s,3@10s", None, 0, 1.0),
    ],
)
def test_the_mean_rate_is_the_area_over_the_time(text: str, rate: float | None, seconds: float, mean: float) -> None:
    assert mean_rate_per_s(text, rate, seconds) == pytest.approx(mean)


@pytest.mark.parametrize(
    ("text", "rate", "slug"),
    [
        ("sometimes", 1.0, "arrivals_unknown"),
        ("gamma", 1.0, "arrivals_unknown"),
        ("poisson:2", 1.0, "arrivals_unknown"),
        ("gamma:0", 1.0, "arrivals_invalid"),
        ("gamma:-1", 1.0, "arrivals_invalid"),
        ("gamma:nan", 1.0, "arrivals_invalid"),
        ("ramp:1,2", None, "arrivals_invalid"),
        ("ramp:0,0,5s", None, "arrivals_invalid"),
        ("ramp:1,2,0s", None, "arrivals_invalid"),
        ("ramp:1,-2,5s", None, "arrivals_invalid"),
        ("steps:", None, "arrivals_invalid"),
        ("steps:5", None, "arrivals_invalid"),
        ("steps:5@10x", None, "arrivals_invalid"),
        ("spike:1e9,2,3", None, "arrivals_invalid"),
        ("ramp:1,2,5s", 3.0, "two_loops"),
        ("poisson", None, "rate_invalid"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_can(text: str, rate: float | None, slug: str) -> None:
    with pytest.raises(SpecError) as refused:
        pacer(text, rate, Random(1))
    assert refused.value.slug == slug
    if slug.startswith("arrivals"):
        assert refused.value.params["text"] == text
        assert "spike:BASE,PEAK,T" in str(refused.value.params["known"])


@pytest.mark.parametrize("rate", [0.0, -1.0, inf, nan])
def test_a_rate_that_cannot_be_kept_is_refused(rate: float) -> None:
    with pytest.raises(SpecError) as refused:
        pacer("poisson", rate, Random(1))
    assert refused.value.slug == "rate_invalid"
