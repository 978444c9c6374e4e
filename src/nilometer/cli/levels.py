"""The levels of one service out of the archive: what a diagnosis looks at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from nilometer.core.errors import SpecError
from nilometer.core.run import Run
from nilometer.experiment.sweep import one_a_level

from .pruning import refuse_pruned

if TYPE_CHECKING:
    from nilometer.archive.protocol import Archive


class Levels(NamedTuple):
    """The runs to be looked at, lowest load first; `ref` is how a command may call them."""

    runs: list[Run]
    group: str | None
    ref: str | None


def levels_of(archive: Archive, ref: str) -> Levels:
    """The runs that RUN or GROUP means: a run stands with the other loads of its group. Slug `side_mixed` where a group
    holds two sides, as a verify does: each is a service of its own."""
    found = archive.resolve_either(ref)
    if found.kind == "run":
        run = archive.get(found.id)
        runs = [run] if run.group is None else [one for one in archive.find(run.group) if one.role == run.role]
        group = run.group
    else:
        runs, group = archive.find(found.id), found.id
    sides = sorted({run.role or "" for run in runs})
    if len(sides) > 1:
        raise SpecError("side_mixed", group=ref, parts=", ".join(sides))
    chosen = sorted(_one_each(runs), key=load_of)
    for run in chosen:
        refuse_pruned(archive, run)
    return Levels(chosen, group, ref)


def _one_each(runs: Sequence[Run]) -> list[Run]:
    """One of each load: of repeats the last that was finished."""
    return one_a_level(runs) if len({run.level for run in runs}) > 1 else [_best(runs)]


def _best(runs: Sequence[Run]) -> Run:
    return next((run for run in reversed(runs) if run.verdict != "inadmissible"), runs[-1])


def load_of(run: Run) -> float:
    """Requests in flight, or a second in an open loop; 0 where that is not told."""
    load = run.spec.load
    return float(run.level or load.rate_per_s or load.concurrency or 0)
