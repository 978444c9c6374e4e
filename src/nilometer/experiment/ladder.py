"""Which load to try next. Pure: from the loads tried so far to the next one, or to the end of the search.

Double until the SLO breaks (or, without one, until more load makes no more tokens), then close in on the border: where
a straight line through the two logarithms would cross it, but never so near to either end that the search creeps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from nilometer.metrics.curve import Rung, borne, gain

TOLERANCE = 0.1
"""The border is known well enough when the load that breaks is by no more than this above the one that keeps."""
FLAT_GAIN = 0.05
"""Without latency bounds: a doubled load that brings less than this is the end."""
_EDGE = 0.2
"""A guess stays this share of the way (in logarithms) off both ends of the bracket."""


class Search(NamedTuple):
    """What is searched: from `first` up to `most`; `whole` levels are counts; `by_slo`: a border, else the plateau."""

    first: float
    most: float
    whole: bool
    by_slo: bool
    flats: int = 1
    """Doublings without a gain that end the search of a plateau: more of them show what lies beyond it."""


def next_level(search: Search, rungs: Sequence[Rung]) -> float | None:
    """The next load to try; None when the answer is known, or cannot be had."""
    if not rungs:
        return search.first
    ordered = sorted(rungs)
    if any(rung.met is None for rung in ordered):
        return None  # the generator, not the service: more of it tells nothing
    broke = next((i for i, rung in enumerate(ordered) if rung.met is False), None)
    if broke is None:
        return _further(search, ordered)
    if not search.by_slo:
        return None
    if broke == 0:
        return _lower(search, ordered[0])
    return _between(search, ordered[broke - 1], ordered[broke], rungs)


def _further(search: Search, ordered: Sequence[Rung]) -> float | None:
    """Double, up to the most, unless the plateau was all that was searched and is reached."""
    last = ordered[-1]
    if last.level >= search.most or (not search.by_slo and _is_flat(ordered, search.flats)):
        return None
    return min(last.level * 2, search.most)


def _is_flat(ordered: Sequence[Rung], flats: int) -> bool:
    """Whether the last `flats` steps together brought next to nothing a doubling: one alone is a matter of noise."""
    last = borne(ordered)[-flats - 1 :]
    return len(last) > flats and gain(last[0], last[-1]) < FLAT_GAIN


def _lower(search: Search, lowest: Rung) -> float | None:
    """Even the lowest load broke it: a quarter of it, until there is none lower."""
    if search.whole:
        return None if lowest.level <= 1 else float(max(1, math.floor(lowest.level / 4)))
    return lowest.level / 4 if lowest.level > search.first / 64 else None


def _between(search: Search, keeps: Rung, breaks: Rung, tried: Sequence[Rung]) -> float | None:
    width = math.log(breaks.level / keeps.level)
    if width <= math.log(1 + TOLERANCE) or (search.whole and breaks.level - keeps.level <= 1):
        return None
    guess = keeps.level * math.exp(width * _crossing(keeps, breaks, tried))
    if not search.whole:
        return float(f"{guess:.3g}")  # a rate is known to a tenth: three digits are enough
    return float(min(max(round(guess), keeps.level + 1), breaks.level - 1))


def _crossing(keeps: Rung, breaks: Rung, tried: Sequence[Rung]) -> float:
    """Where in the bracket the border is looked for, 0..1: on the line, or in the middle where the line misled."""
    below, above = keeps.worst, breaks.worst
    twice = len(tried) >= 2 and tried[-1].met == tried[-2].met and len(tried) > 2 and tried[-1].met is not None
    if twice or below is None or above is None or not 0 < below < 1 < above < math.inf:
        return 0.5
    share = -math.log(below) / (math.log(above) - math.log(below))
    return min(max(share, _EDGE), 1 - _EDGE)
