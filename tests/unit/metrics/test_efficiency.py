"""Tokens for devices, processor time and energy, against sums done by hand; None where a part was not seen."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import pytest

from nilometer.core.run import Draw
from nilometer.metrics.efficiency import efficiency
from nilometer.metrics.window import Span

from .made import at

WINDOW = Span(at(2), at(6))


def draw(
    at_s: Sequence[float], cpu_s: Sequence[float], power_w: Sequence[float] = (), devices: int | None = None
) -> Draw:
    return Draw(
        at=array("q", [at(s) for s in at_s]).tobytes(),
        cpu=array("q", [round(s * 1e9) for s in cpu_s]).tobytes(),
        power=array("q", [round(w * 1e3) for w in power_w]).tobytes(),
        devices=devices,
    )


def test_a_server_of_the_processor_by_its_own_seconds() -> None:
    """From 2 to 6 s it took 9 - 1 = 8 s of two cores; 100 tokens/s for 4 s are 400: 50 for each."""
    made = efficiency(draw([0, 2, 6, 8], [0, 1, 9, 9.5]), WINDOW, 100.0, None)
    assert made.tokens_per_core_s == pytest.approx(50)
    assert (made.devices, made.tokens_per_device_s, made.energy_kwh, made.tokens_per_kwh) == (None, None, None, None)


def test_energy_is_the_power_over_the_window() -> None:
    """Rows 4 s apart, each stretch at its mean: 2 s of 300 W and 2 s of 400 W are 1,400 J."""
    made = efficiency(draw([0, 4, 8], [0, 0, 0], [300, 300, 500], devices=2), WINDOW, 100.0, None)
    assert made.energy_kwh == pytest.approx(1_400 / 3.6e6)
    assert made.tokens_per_kwh == pytest.approx(400 * 3.6e6 / 1_400)
    assert (made.devices, made.tokens_per_device_s) == (2, 50.0)
    assert made.tokens_per_core_s is None, "its processor only looks on"


def test_what_the_user_says_of_devices_goes_before_what_is_seen() -> None:
    assert efficiency(Draw(), WINDOW, 100.0, 8).tokens_per_device_s == 12.5
    assert efficiency(draw([0, 8], [0, 8], devices=1), WINDOW, 100.0, 4).tokens_per_device_s == 25


@pytest.mark.parametrize("seen", [draw([3.5, 8], [0, 8], [1, 1]), draw([0, 4.5], [0, 8], [1, 1]), draw([4], [1], [1])])
def test_what_was_not_sampled_all_through_is_not_told(seen: Draw) -> None:
    made = efficiency(seen, WINDOW, 100.0, None)
    assert (made.tokens_per_core_s, made.energy_kwh, made.tokens_per_kwh) == (None, None, None)


def test_without_tokens_or_without_anything_drawn_there_is_no_rate() -> None:
    assert efficiency(draw([0, 8], [0, 8]), WINDOW, None, None).tokens_per_core_s is None
    assert efficiency(draw([0, 8], [3, 3]), WINDOW, 100.0, None).tokens_per_core_s is None
