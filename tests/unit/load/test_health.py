"""Several workers' health as one."""

from __future__ import annotations

from array import array

import msgspec
import pytest

from nilometer.core.run import Damage, Health
from nilometer.load.health import merged


def column(*values: int) -> bytes:
    return array("q", values).tobytes()


ONE = Health(
    at=column(10, 20, 30), wall_offset=column(5, 5, 6), lag_max=column(1, 9, 1), in_flight=column(4, 4, 3),
    cpu=column(0, 7, 8), asked_in_flight=4, event_loop="uvloop", connections_opened=5, resent=1, socketless=2,
    wall_steps=1,
)  # fmt: skip
TWO = Health(
    at=column(11, 19), wall_offset=column(4, 6), lag_max=column(2, 3), in_flight=column(1, 2), cpu=column(1, 5),
    asked_in_flight=3, event_loop="uvloop", connections_opened=3, resent=2, socketless=1, wall_steps=0,
    death="killed",
)  # fmt: skip


def test_one_worker_is_as_it_was() -> None:
    assert merged([ONE]) is ONE


def test_two_workers_over_the_rows_both_have() -> None:
    assert merged([ONE, TWO]) == Health(
        at=column(10, 19), wall_offset=column(4, 5), lag_max=column(2, 9), in_flight=column(5, 6), cpu=column(1, 7),
        asked_in_flight=7, event_loop="uvloop", connections_opened=8, resent=3, socketless=3, wall_steps=1,
        death="killed",
    )  # fmt: skip


def test_the_order_of_workers_does_not_matter() -> None:
    assert merged([ONE, TWO]) == merged([TWO, ONE])


def test_a_worker_that_left_no_rows_hides_nobody_elses() -> None:
    mute = Health(asked_in_flight=2, death="killed")
    both = merged([ONE, mute])
    assert (both.at, both.in_flight, both.asked_in_flight, both.death) == (ONE.at, ONE.in_flight, 6, "killed")


def test_an_open_loop_asks_for_no_number_in_flight() -> None:
    open_loop = msgspec.structs.replace(ONE, asked_in_flight=None)
    assert merged([open_loop, open_loop]).asked_in_flight is None
    assert merged([open_loop, TWO]).asked_in_flight == 3


@pytest.mark.parametrize("field", Health.__struct_fields__)
def test_no_field_is_forgotten(field: str) -> None:
    """A field that `merged` does not name would fall back to its default."""
    full = msgspec.structs.replace(ONE, death="x", damage=(Damage(file="j", lost_bytes=1, gaps=1),))
    assert (
        getattr(merged([full, full]), field)
        != msgspec.structs.fields(Health)[Health.__struct_fields__.index(field)].default
    )
