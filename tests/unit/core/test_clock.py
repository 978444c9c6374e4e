"""The virtual clock moves when told, and its two readings as those of a machine do."""

from __future__ import annotations

import pytest

from nilometer.core.clock import NS_PER_MS, NS_PER_S, Clock, SystemClock, VirtualClock


def test_a_virtual_clock_stands_still_until_told() -> None:
    clock = VirtualClock(monotonic_ns=5, wall_ns=100)
    assert (clock.monotonic_ns(), clock.wall_ns()) == (5, 100)
    assert (clock.monotonic_ns(), clock.wall_ns()) == (5, 100)


def test_advancing_moves_both_readings() -> None:
    clock = VirtualClock(monotonic_ns=5, wall_ns=100)
    clock.advance(NS_PER_S)
    clock.advance(0)
    assert (clock.monotonic_ns(), clock.wall_ns()) == (NS_PER_S + 5, NS_PER_S + 100)


def test_time_does_not_run_back() -> None:
    clock = VirtualClock()
    with pytest.raises(ValueError, match="does not go back"):
        clock.advance(-1)
    assert clock.monotonic_ns() == 0


@pytest.mark.parametrize("step_ns", [NS_PER_MS, -NS_PER_S])
def test_a_wall_step_leaves_the_monotonic_reading_alone(step_ns: int) -> None:
    clock = VirtualClock(monotonic_ns=7, wall_ns=NS_PER_S)
    clock.step_wall(step_ns)
    assert (clock.monotonic_ns(), clock.wall_ns()) == (7, NS_PER_S + step_ns)


def test_the_system_clock_never_goes_back_and_both_are_clocks() -> None:
    clocks: list[Clock] = [SystemClock(), VirtualClock()]
    readings = [clocks[0].monotonic_ns() for _ in range(100)]
    assert readings == sorted(readings)
    assert clocks[0].wall_ns() > 1_600_000_000 * NS_PER_S  # after 2020: ns, not ms or s
