"""Which core each worker gets."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from nilometer.load.crew import pins


@pytest.mark.parametrize(
    ("workers", "cores", "got"),
    [
        (1, range(8), [None]),
        (2, range(8), [6, 7]),
        (3, [0, 2, 4, 6], [2, 4, 6]),
        (2, [0, 1], [None, None]),
        (4, [0, 1], [None] * 4),
        (2, [], [None, None]),
    ],
)
def test_a_core_of_its_own_where_one_is_left_for_the_rest(
    workers: int, cores: Sequence[int], got: list[int | None]
) -> None:
    assert pins(workers, cores) == got
