"""Ids of runs, and the shape of what a Run holds."""

from __future__ import annotations

import re
from random import Random

import msgspec
import pytest

from nilometer.core.run import DEFINITIONS, FORMAT, Health, Phases, new_id


def test_an_id_is_twelve_base32_characters() -> None:
    for seed in range(50):
        assert re.fullmatch("[a-z2-7]{12}", new_id(Random(seed)))


def test_ids_follow_the_random_generator_they_are_given() -> None:
    assert new_id(Random(7)) == new_id(Random(7))
    assert len({new_id(Random(seed)) for seed in range(1000)}) == 1000


def test_ids_use_the_whole_alphabet_in_every_place() -> None:
    random = Random(1)
    ids = [new_id(random) for _ in range(2000)]
    assert all(len({one[place] for one in ids}) == 32 for place in range(12))


def test_a_health_of_nothing_claims_nothing() -> None:
    health = Health()
    assert (health.asked_in_flight, health.event_loop, health.death) == (None, None, None)
    assert (len(health.at), health.wall_steps, health.resent) == (0, 0, 0)


def test_borders_are_all_asked_for() -> None:
    with pytest.raises(msgspec.ValidationError, match="end_ns"):
        msgspec.convert({"started_wall_ns": 1, "start_ns": 1, "measured_ns": 1, "stop_ns": 1}, Phases)


def test_the_format_and_the_definitions_are_the_first() -> None:
    """Raise the number here together with its history in core/run.py and a loader for the former one."""
    assert (FORMAT, DEFINITIONS) == (1, 1)
