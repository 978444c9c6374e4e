"""Several load tests one after the other. What was measured stays, whatever ends the series."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from nilometer.core.errors import NiloError
from nilometer.core.run import Run
from nilometer.core.spec import Spec

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


def tokens_left(spec: Spec, measured: Sequence[Run]) -> int | None:
    """What the runs so far leave of the token budget that a series has; None without one.

    A prompt that the server did not count is taken at the mean length asked for.
    """
    budget = spec.load.max_total_tokens
    return None if budget is None else budget - sum(map(_tokens_used, measured))


def within(spec: Spec, tokens: int | None) -> Spec:
    """The test with this for its token budget."""
    return msgspec.structs.replace(spec, load=msgspec.structs.replace(spec.load, max_total_tokens=tokens))


def _tokens_used(run: Run) -> int:
    used, asked = run.summary.cost, run.summary.lengths.asked_input.mean
    return (used.prompt_tokens or 0) + (used.output_tokens or 0) + round((used.uncounted or 0) * (asked or 0))
