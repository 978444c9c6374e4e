"""What the doctor says of this machine, from figures of a machine that is not this one."""

from __future__ import annotations

import pytest

from nilometer.experiment.doctor import clocks

MS, S = 1_000_000, 1_000_000_000


@pytest.mark.parametrize(
    ("moved_ns", "while_ns", "state"),
    [
        (0, 2 * S, "ok"),
        (-MS // 2, 2 * S, "ok"),
        (MS + MS // 2, 2 * S, "ok"),  # a clock that is turned to the right time at 500 ppm moves 1 ms in 2 s
        (MS + MS // 2, S // 2, "warn"),
        (-3 * MS, 2 * S, "warn"),
        (3600 * S, 2 * S, "warn"),
    ],
)
def test_a_wall_clock_may_be_turned_but_not_moved(moved_ns: int, while_ns: int, state: str) -> None:
    check = clocks(moved_ns, while_ns)
    assert (check.state, check.value) == (state, abs(moved_ns) / MS)
