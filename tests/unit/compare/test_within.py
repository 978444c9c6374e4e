from __future__ import annotations

import math
import random

import pytest

from nilometer.compare.within import within

WINDOW_S = (0.0, 120.0)


def flat(blocks: list[float], each: int = 40, block_s: float = 20.0) -> list[tuple[float, float]]:
    """Latencies that are the same all through each block."""
    return [(block_s * (i + j / each), value) for i, value in enumerate(blocks) for j in range(each)]


def test_by_hand() -> None:
    """Logs -1, 1, -1, 1, -1, 1: mean 0, sd sqrt(6/5); t of 5 degrees 2.570582, so the reach is 2.570582 / sqrt(5)."""
    found = within(flat([math.exp(x) for x in (-1, 1, -1, 1, -1, 1)]), WINDOW_S, 95, e2e_p50_s=2.0)
    assert found is not None
    reach = 2.570581836 / math.sqrt(5)
    assert (found.mean, found.lo, found.hi) == pytest.approx((1, math.exp(-reach), math.exp(reach)))
    assert (found.block_s, found.blocks, found.basis) == (20.0, 6, "within_run")


def test_the_order_of_the_requests_and_what_lies_outside_the_window_do_not_matter() -> None:
    series = flat([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    mixed = [*series, (-0.1, 99.0), (120.0, 99.0)]
    random.Random(1).shuffle(mixed)
    assert within(mixed, WINDOW_S, 50, 2.0) == within(series, WINDOW_S, 50, 2.0)


@pytest.mark.parametrize(
    ("window_s", "e2e_p50_s"),
    [((0.0, 89.0), 2.0), ((0.0, 120.0), 7.0), ((0.0, 120.0), None), ((50.0, 50.0), 2.0)],
    ids=["blocks under 15 s", "blocks under three E2E", "E2E unknown", "no window"],
)
def test_too_short_a_window_has_no_interval(window_s: tuple[float, float], e2e_p50_s: float | None) -> None:
    assert within(flat([1.0] * 6), window_s, 95, e2e_p50_s) is None


def test_a_block_needs_a_request_beyond_the_percentile() -> None:
    assert within(flat([1.0] * 6, each=19), WINDOW_S, 95, 2.0) is None
    assert within(flat([1.0] * 6, each=20), WINDOW_S, 95, 2.0) is not None
    assert within(flat([1.0] * 6, each=2), WINDOW_S, 50, 2.0) is not None
    assert within([], WINDOW_S, 50, 2.0) is None


def test_a_latency_of_nothing_has_no_log() -> None:
    assert within(flat([1.0, 1.0, 0.0, 1.0, 1.0, 1.0]), WINDOW_S, 50, 2.0) is None


def test_of_requests_that_do_not_know_each_other_it_holds_the_median_in_95_of_100() -> None:
    rng, n, held = random.Random(3), 300, 0
    for _ in range(n):
        series = [(0.5 * i, rng.lognormvariate(0.0, 0.5)) for i in range(240)]
        found = within(series, WINDOW_S, 50, 2.0)
        held += found is not None and found.lo <= 1.0 <= found.hi
    assert held / n == pytest.approx(0.95, abs=0.04)
