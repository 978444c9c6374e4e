"""How much of the time of a request what a rule explains takes: of two causes that hold, the greater comes first.

Shares of the E2E p50 at the highest load, from the time budget and from the rules' own figures. They may overlap: what
slows the machine down also makes the queue longer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .case import Case

ENOUGH = 0.25
"""A cause of so much of the time comes as early as its score has it."""
SMALL = 0.6
"""What is left of the score of a cause of next to nothing."""
CLEAR = 0.85
"""Separation from which on a step in time is one."""


def weight(explains: str, case: Case) -> float:
    """A factor on the score in the order of findings, SMALL to 1; 1 where the impact is not known."""
    share = impact(explains, case)
    return 1.0 if share is None else SMALL + (1 - SMALL) * min(max(share, 0.0) / ENOUGH, 1.0)


def impact(explains: str, case: Case) -> float | None:
    """Share of the E2E that it takes; None where that was not measured or makes no sense."""
    of = _IMPACTS.get(explains)
    return None if of is None else of(case)


def _waiting(case: Case) -> float | None:
    """The mean TTFT beyond that of the lowest load, over the mean E2E."""
    alone, ttft = case.lowest.value("ttft_mean"), case.highest.value("ttft_mean")
    e2e = case.highest.value("e2e_mean")
    return None if alone is None or ttft is None or not e2e else max(ttft - alone, 0.0) / e2e


def _stalls(case: Case) -> float | None:
    return _share_of_e2e(case, "stalls")


def _decode(case: Case) -> float | None:
    """All that decoding takes, less the stalls."""
    slower, base = _share_of_e2e(case, "slower_gaps"), _share_of_e2e(case, "base_gaps")
    return None if slower is None or base is None else slower + base


def _pace(case: Case) -> float | None:
    """The greatest of what a drift, a step, slow spells and pauses by a clock take beyond the usual pace."""
    return max((share for of in (_drift, _step, _spells, _pauses) if (share := of(case)) is not None), default=None)


def _drift(case: Case) -> float | None:
    """A pace that grew by d over the window was d / 2 beyond its beginning on the mean."""
    grown = case.most("tpot_drift").value
    return None if grown is None else grown / 2 / (1 + grown / 2)


def _step(case: Case) -> float | None:
    """What a drop of the clocks within a level, or within the time of one request after another, cost from then on."""
    clear = (case.most("step_separation").value or 0.0) >= CLEAR
    found = [case.most("step_ratio").value if clear else None, case.most("cut_ratio").value]
    ratio = max((one for one in found if one is not None), default=None)
    return None if ratio is None else 1 - 1 / max(ratio, 1.0)


def _spells(case: Case) -> float | None:
    slow, ratio = case.low("slow_time_share").value, case.low("slow_ratio").value
    return None if slow is None or ratio is None else slow * (1 - 1 / max(ratio, 1.0))


def _pauses(case: Case) -> float | None:
    return case.low("pause_time_share").value


def _share_of_e2e(case: Case, part: str) -> float | None:
    budget = case.highest.e2e
    return None if budget is None else budget.part(part).share


_IMPACTS: Mapping[str, Callable[[Case], float | None]] = {
    "waiting": _waiting,
    "stalls": _stalls,
    "decode": _decode,
    "pace": _pace,
}
