"""Piling up, filling up and drifting, told apart; by hand."""

from __future__ import annotations

from collections.abc import Callable

from nilometer.experiment.growth import Growth


def seen(seconds: float, flight: Callable[[float], float], ttft: Callable[[float], float | None]) -> bool:
    growth = Growth()
    at_s = 0.0
    while at_s <= seconds:
        growth.look(at_s, flight(at_s), ttft(at_s))
        at_s += 0.25
    return growth.is_real()


def test_requests_that_pile_up_and_wait_longer_are_real() -> None:
    assert seen(10, lambda s: 10 + 3 * s, lambda s: 200 + 300 * s)


def test_a_load_that_fills_up_waits_no_longer() -> None:
    assert not seen(20, lambda s: 3 * s, lambda _: 200.0)


def test_a_ttft_that_drifts_alone_is_none() -> None:
    assert not seen(20, lambda _: 40.0, lambda s: 200 + 100 * s)


def test_a_few_requests_more_are_none() -> None:
    assert not seen(20, lambda s: 2 + 0.4 * s, lambda s: 200 + 300 * s)


def test_it_is_not_told_too_early_nor_without_a_ttft() -> None:
    assert not seen(5, lambda s: 100 * s, lambda s: 100 * s)
    assert not seen(20, lambda s: 10 + 10 * s, lambda _: None)
    assert not Growth().is_real()


def test_a_machine_that_was_held_up_looked_too_seldom() -> None:
    growth = Growth()
    for at_s in (0.0, 60.0):
        growth.look(at_s, 1 + at_s, 100 + 100 * at_s)
        assert not growth.is_real()
