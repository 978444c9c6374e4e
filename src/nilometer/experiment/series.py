"""Several load tests one after the other. What was measured stays, whatever ends the series."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from nilometer.core.errors import NiloError
from nilometer.core.run import Run

from .follow import Stop


class Series(NamedTuple):
    """The runs that were measured, never none. `fault` is what the next one met; `cut`: the user ended it early."""

    runs: list[Run]
    fault: NiloError | None = None
    cut: bool = False


def one_by_one(tests: Iterable[Callable[[], Run]], stop: Stop) -> Series:
    """Run the tests in order. What ends the first before it measured anything is raised."""
    runs: list[Run] = []
    for test in tests:
        if runs and stop.asked:
            return Series(runs, cut=True)
        try:
            runs.append(test())
        except KeyboardInterrupt:
            if not runs:
                raise
            return Series(runs, cut=True)
        except NiloError as fault:
            if not runs:
                raise
            return Series(runs, fault)
    return Series(runs)
