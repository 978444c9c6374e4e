"""Adapters that are held: by hand."""

from __future__ import annotations

from nilometer.sim.adapters import Adapters


def test_an_adapter_is_loaded_once_and_the_one_unused_for_longest_goes() -> None:
    held = Adapters(2, 0.5)
    for adapter, seconds in ((1, 0.5), (2, 0.5), (1, 0.0), (3, 0.5), (1, 0.0), (2, 0.5)):
        assert held.fits(adapter)
        assert held.enters(adapter) == seconds
        held.leaves(adapter)


def test_one_in_use_keeps_its_place() -> None:
    held = Adapters(2, 0.5)
    held.enters(1)
    held.enters(2)
    assert held.fits(1)
    assert not held.fits(3)
    held.leaves(2)
    assert held.enters(3) == 0.5
    assert held.enters(1) == 0.0
    held.leaves(1)
    assert not held.fits(4)
    held.leaves(1)
    assert held.fits(4)


def test_a_sequence_without_one_always_fits() -> None:
    held = Adapters(1, 0.5)
    held.enters(1)
    assert held.fits(None)
    assert held.enters(None) == 0.0
    held.leaves(None)
    assert not held.fits(2)
