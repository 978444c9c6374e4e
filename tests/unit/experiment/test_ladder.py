"""The search for the greatest load, on services whose answer is known: found within 10 %, with few loads tried."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random

import pytest

from nilometer.experiment.ladder import TOLERANCE, Search, next_level
from nilometer.metrics.curve import Rung, greatest, knee

Service = Callable[[float], Rung]


def climb(search: Search, service: Service, most_steps: int = 40) -> list[Rung]:
    """All loads that the search tries, in order."""
    tried: list[Rung] = []
    while (level := next_level(search, tried)) is not None:
        assert level not in [rung.level for rung in tried], f"{level} twice"
        assert len(tried) < most_steps
        tried.append(service(level))
    return tried


def slots(n: int, step_ms: float = 20.0, limit_ms: float = 500.0, noise: Random | None = None) -> Service:
    """A service of n slots: a request beyond them waits for a multiple of its share of an E2E of 100 steps."""

    def at(level: float) -> Rung:
        wait_ms = 100.0 + max(level / n - 1, 0.0) * 100 * step_ms
        wait_ms *= math.exp(noise.gauss(0, 0.03)) if noise else 1.0
        return Rung(level, wait_ms <= limit_ms, wait_ms / limit_ms, min(level, n) * 1000 / step_ms)

    return at


def slowing(rate: float, limit_ms: float = 50.0) -> Service:
    """A service whose every token gets slower with the load: TPOT = 5 ms + level x rate."""

    def at(level: float) -> Rung:
        tpot_ms = 5 + level * rate
        return Rung(level, tpot_ms <= limit_ms, tpot_ms / limit_ms, level * 1000 / tpot_ms)

    return at


CLOSED = Search(first=1, most=1024, whole=True, by_slo=True)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 13, 24, 40, 64, 100, 200])
def test_the_border_of_a_service_of_slots(n: int) -> None:
    """At 500 ms, with 2 s of work a request, the wait may be 0.4 s: 1.2 n are borne."""
    tried = climb(CLOSED, slots(n))
    truth = math.floor(1.2 * n + 1e-9)
    found = greatest(tried)
    assert found is not None
    assert found.hi is not None
    assert found.level <= truth < found.hi
    assert found.hi - found.lo <= max(1, TOLERANCE * found.lo + 1)
    assert len(tried) <= math.log2(1.2 * n) + 8


@pytest.mark.parametrize("rate", [0.1, 0.5, 1.0, 3.0, 9.0])
def test_the_border_of_a_service_that_slows_down(rate: float) -> None:
    truth = math.floor(45 / rate + 1e-9)
    tried = climb(CLOSED, slowing(rate))
    found = greatest(tried)
    assert found is not None
    assert found.level <= truth < (found.hi or 0)


def test_a_rate_is_found_within_a_tenth() -> None:
    tried = climb(Search(first=0.5, most=1000, whole=False, by_slo=True), slots(17))
    found = greatest(tried)
    assert found is not None
    assert found.lo <= 20.4 <= (found.hi or 0) <= found.lo * 1.1 + 1e-9
    assert len(tried) <= 12


def test_noise_at_the_border_ends_all_the_same() -> None:
    for seed in range(50):
        tried = climb(CLOSED, slots(30, noise=Random(seed)))
        found = greatest(tried)
        assert found is not None
        assert 32 <= found.level <= 40


def test_a_service_that_never_keeps_it_is_tried_down_to_one() -> None:
    tried = climb(Search(first=16, most=64, whole=True, by_slo=True), slots(1, limit_ms=50))
    assert [rung.level for rung in tried] == [16, 4, 1]
    assert greatest(tried) is None


def test_a_service_that_bears_the_most_ends_there_without_an_upper_end() -> None:
    tried = climb(Search(first=1, most=48, whole=True, by_slo=True), slots(1000))
    assert [rung.level for rung in tried] == [1, 2, 4, 8, 16, 32, 48]
    assert greatest(tried) == (48, 48, None)


def test_without_a_bound_it_stops_where_more_load_makes_no_more_tokens() -> None:
    tried = climb(Search(first=1, most=1024, whole=True, by_slo=False), slots(8, limit_ms=math.inf))
    assert [rung.level for rung in tried] == [1, 2, 4, 8, 16]
    assert knee(tried) == pytest.approx(8.0)


def test_a_limited_generator_ends_the_search() -> None:
    for search in (CLOSED, CLOSED._replace(by_slo=False)):
        assert next_level(search, [Rung(1, True, 0.1, 50), Rung(2, None, 0.1, 90)]) is None


def test_three_steps_without_a_gain_end_it_though_one_of_them_is_a_tenth_by_chance() -> None:
    """Tokens a second of an engine on one thread, as measured on a shared machine: none of it is the load's doing."""
    measured = {1: 105.0, 2: 101.0, 4: 112.0, 8: 106.0, 16: 133.0}
    search = Search(first=1, most=128, whole=True, by_slo=False, flats=3)
    tried = climb(search, lambda level: Rung(level, True, None, measured[round(level)]))
    assert [rung.level for rung in tried] == [1, 2, 4, 8]
