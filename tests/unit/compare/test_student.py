from __future__ import annotations

import math

import pytest

from nilometer.compare.student import beyond, quantile, tail


def integrated(t: float, df: float) -> float:
    """P(0 < T < t) by Simpson's rule on the density."""
    front = math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2)) / math.sqrt(df * math.pi)
    n = 20_000
    ordinates = [front * math.pow(1 + (t * i / n) ** 2 / df, -(df + 1) / 2) for i in range(n + 1)]
    return t / n / 3 * (ordinates[0] + ordinates[-1] + 4 * sum(ordinates[1:-1:2]) + 2 * sum(ordinates[2:-1:2]))


@pytest.mark.parametrize(
    ("p", "df", "printed"),
    [
        (0.975, 1, 12.706204736),
        (0.975, 2, 4.302652730),
        (0.95, 4, 2.131846786),
        (0.975, 5, 2.570581836),
        (0.95, 9, 1.833112933),
        (0.975, 10, 2.228138852),
        (0.995, 10, 3.169272673),
        (0.975, 30, 2.042272456),
        (0.95, 120, 1.657650899),
    ],
)
def test_quantiles_are_those_of_the_printed_tables(p: float, df: float, printed: float) -> None:
    assert quantile(p, df) == pytest.approx(printed, abs=6e-10)
    assert tail(-printed, df) == pytest.approx(p, abs=1e-10)


@pytest.mark.parametrize("t", [-30.0, -2.5, -0.1, 0.0, 1e-6, 0.7, 3.0, 50.0])
def test_one_and_two_degrees_have_a_closed_form(t: float) -> None:
    assert tail(-t, 1) == pytest.approx(0.5 + math.atan(t) / math.pi, abs=1e-13)
    assert tail(-t, 2) == pytest.approx(0.5 + t / (2 * math.sqrt(2 + t * t)), abs=1e-13)


@pytest.mark.parametrize("df", [1.5, 3, 4.71, 9, 38.2])
@pytest.mark.parametrize("t", [0.3, 1.0, 2.2, 4.5])
def test_broken_degrees_agree_with_the_integral_of_the_density(t: float, df: float) -> None:
    assert tail(-t, df) - 0.5 == pytest.approx(integrated(t, df), abs=1e-10)


def test_far_out_the_tail_keeps_its_precision() -> None:
    """Of 3 degrees P(T > t) is 2 sqrt(3) / pi / t^3, but for a share of 18 / 5 / t^2."""
    assert tail(1e5, 3) == pytest.approx(2 * math.sqrt(3) / math.pi * 1e-15, rel=1e-9)


def test_many_degrees_are_the_normal_distribution() -> None:
    assert tail(1.959963985, 1e7) == pytest.approx(0.025, abs=2e-8)


def test_the_ends() -> None:
    assert quantile(0.5, 7) == pytest.approx(0, abs=1e-12)
    assert (quantile(0.0, 7), quantile(1.0, 7)) == (-math.inf, math.inf)
    assert (tail(math.inf, 3), tail(-math.inf, 3)) == (0.0, 1.0)
    assert (beyond(0.0, 3), beyond(1.0, 3)) == (math.inf, -math.inf)
    assert beyond(1e-9, 4) == pytest.approx(-beyond(1 - 1e-9, 4), rel=1e-6)
