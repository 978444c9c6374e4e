"""The audit of an engine's start: THE table of traps, each a small function, and what all of them find.

What a trap costs is a difference of two plans, before and after its remedy, never a phrase. A trap whose figures are
not known - no device, no workload - is passed over. A good command line yields nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from nilometer.core.finding import Finding, Remedy

from ..launch.command import Launch
from .case import COMMAND, Case, Wanted, case_of, figure, finding
from .context import far_over, not_starting, over_trained, too_short
from .load import cache_precision, heads, preempting, queueing, refusing, sampling, share_high, share_low
from .speed import batching_off, chunk_small, chunk_stalls, eager, flash_off, prefix_off, threads

_NAMED = 6
"""So many flags a sentence can carry."""


def unknown(case: Case) -> Iterator[Finding]:
    """Flags that the engine does not have, as far as the table knows."""
    for one in case.launch.unknown:
        told = {"flag": one.name[:80], "engine": case.engine}
        place = [figure("audit_place", one.place, None, COMMAND)] if one.place else []
        if one.nearest is None:
            yield finding("audit_flag_unknown", "low", told, evidence=place, note=True)
        else:
            remedy = Remedy(slug="audit_flag_misspelt", flags=[one.nearest])
            told["nearest"] = one.nearest
            yield finding("audit_flag_misspelt", "medium", told, evidence=place, remedies=[remedy], note=True)


def uncounted(case: Case) -> Iterator[Finding]:
    """Flags that change memory or speed and that a plan does not count."""
    names = case.launch.uncounted
    if names:
        more = ", ..." if len(names) > _NAMED else ""
        yield finding("audit_flags_uncounted", "low", {"flags": ", ".join(names[:_NAMED]) + more}, note=True)


TRAPS: Mapping[str, Callable[[Case], Iterator[Finding]]] = {
    trap.__name__: trap
    for trap in (
        heads,
        over_trained,
        not_starting,
        too_short,
        far_over,
        share_low,
        share_high,
        preempting,
        refusing,
        queueing,
        sampling,
        cache_precision,
        flash_off,
        prefix_off,
        chunk_stalls,
        chunk_small,
        eager,
        batching_off,
        threads,
        unknown,
        uncounted,
    )
}
"""THE table of traps."""


def audit(launch: Launch, asked: Wanted) -> tuple[Finding, ...]:
    """What is wrong with how an engine was started, for what it is asked to serve; the order is that of the table.

    SpecErrors of the plan's rooms for what cannot be computed with: a precision that is not known, lengths below zero.
    """
    case = case_of(launch, asked)
    return tuple(found for trap in TRAPS.values() for found in trap(case))
