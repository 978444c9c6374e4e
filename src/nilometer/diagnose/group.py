"""The evidence of a whole group: how the levels differ, beside what each of them shows by itself.

Levels by their number, lowest first; runs of the same level stand side by side and the first of them speaks for it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

import msgspec
import numpy as np

from nilometer.core.finding import Evidence
from nilometer.core.record import Record
from nilometer.core.run import Run
from nilometer.metrics import curve

from .base import Base
from .evidence import exponent
from .level import LevelEvidence, evidence_of, level_number

WAITING_SHARE = 0.5
"""A level shows a plateau where somebody waits for half of the time at least."""


class GroupEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """Levels from the lowest up, and figures of the step between them. None = not measured."""

    levels: tuple[LevelEvidence, ...]
    base: Base | None
    """The lowest level's."""
    base_level: float | None
    figures: dict[str, Evidence | None]
    """knee, gap_ratio, gap_elasticity, gap_elasticity_past_knee, throughput_gain, throughput_gain_last, wait,
    wait_share, prefill_load, plateau, plateau_spread, plateau_tokens, plateau_tokens_spread, plateau_share."""
    elasticities: tuple[Evidence, ...]
    """d ln token gap / d ln N of each step from level to level."""

    def value(self, name: str) -> float | None:
        """The value of a figure; KeyError of a name that is none, None where it was not measured."""
        found = self.figures[name]
        return None if found is None or not isinstance(found.value, int | float) else float(found.value)

    @property
    def lowest(self) -> LevelEvidence | None:
        return self.levels[0] if self.levels else None

    @property
    def highest(self) -> LevelEvidence | None:
        return self.levels[-1] if self.levels else None


def evidence_of_runs(runs: Iterable[tuple[Run, Iterable[Record]]]) -> GroupEvidence:
    """The evidence of the runs of one group and their records. A run whose level is not known is left out.

    The lowest level is read first: the budgets of all are held against its base.
    """
    known = [(level, run, records) for run, records in runs if (level := level_number(run))]
    levels: list[LevelEvidence] = []
    for _, run, records in sorted(known, key=lambda one: one[0]):
        base = levels[0].base if levels else None
        levels.append(evidence_of(run, records, base=base, lowest=not levels))
    return evidence_of_group(levels)


def evidence_of_group(levels: Sequence[LevelEvidence]) -> GroupEvidence:
    """The evidence of a group whose levels were each looked at, in any order.

    Figures of a step need two levels, all of the same kind of loop; else they are None.
    """
    ordered = sorted((level for level in levels if level.level), key=lambda level: level.level or 0.0)
    low, high = (ordered[0], ordered[-1]) if ordered else (None, None)
    steps = pairwise(_first_of_each(ordered))
    figures: dict[str, Evidence | None] = dict.fromkeys(FIGURES)
    if low is not None and high is not None and low.level != high.level and len({one.is_open for one in ordered}) == 1:
        figures |= _between(ordered, low, high)
    return GroupEvidence(
        levels=tuple(ordered),
        base=low.base if low else None,
        base_level=low.level if low else None,
        figures=figures,
        elasticities=tuple(found for step in steps if (found := _elasticity("gap_elasticity", *step)) is not None),
    )


FIGURES = (
    "knee",
    "gap_ratio",
    "gap_elasticity",
    "gap_elasticity_past_knee",
    "throughput_gain",
    "throughput_gain_last",
    "wait",
    "wait_share",
    "prefill_load",
    "plateau",
    "plateau_spread",
    "plateau_tokens",
    "plateau_tokens_spread",
    "plateau_share",
)


def _between(ordered: list[LevelEvidence], low: LevelEvidence, high: LevelEvidence) -> dict[str, Evidence | None]:
    each = _first_of_each(ordered)
    knee = None if high.is_open else curve.knee([level.rung for level in each if level.rung is not None])
    before_knee = [level for level in each if knee is not None and (level.level or 0.0) <= knee] or [low]
    past = before_knee[-1] if knee is not None and before_knee[-1] is not high else None
    return {
        "knee": _figure("knee", knee, low, high, "requests"),
        "gap_ratio": _figure("gap_ratio", _quotient(high, low, "token_gap"), low, high),
        "gap_elasticity": _elasticity("gap_elasticity", low, high),
        "gap_elasticity_past_knee": None if past is None else _elasticity("gap_elasticity_past_knee", past, high),
        "throughput_gain": _gain("throughput_gain", low, high),
        "throughput_gain_last": _gain("throughput_gain_last", each[-2], high),
        "wait": _figure("wait", _wait_ms(low, high), low, high, "ms"),
        "wait_share": _figure("wait_share", _wait_share(low, high), low, high, "share"),
        "prefill_load": _figure("prefill_load", _prefill_load(low, high), low, high, "share"),
        **_plateau("plateau", "full_decoding", "requests", each),
        **_plateau("plateau_tokens", "full_held_tokens", "tokens", each),
        "plateau_share": _figure("plateau_share", high.value("decoding_share"), low, high, "share"),
    }


def _wait_ms(low: LevelEvidence, high: LevelEvidence) -> float | None:
    """Mean TTFT at the highest level beyond W0 of its mean prompt: a line holds for means too."""
    ttft, prompt, line = high.value("ttft_mean"), high.value("prompt_tokens"), low.base.line
    if ttft is None or line is None or (prompt is None and line.slope_ms is not None):
        return None
    return ttft - float(line.at_ms(np.array([prompt or 0.0]))[0])


def _wait_share(low: LevelEvidence, high: LevelEvidence) -> float | None:
    """Wait / TTFT of the means, not below 0."""
    wait, ttft = _wait_ms(low, high), high.value("ttft_mean")
    return max(wait / ttft, 0.0) if wait is not None and ttft else None


def _prefill_load(low: LevelEvidence, high: LevelEvidence) -> float | None:
    """How much of the server's time the prompts alone take: requests/s x mean prompt x slope of the lowest level."""
    line, prompt = low.base.line, high.value("prompt_tokens")
    rate = high.value("requests_per_s")
    if line is None or line.slope_ms is None or prompt is None or rate is None:
        return None
    return rate * prompt * max(line.slope_ms, 0.0) / 1000


def _plateau(name: str, figure: str, unit: str, levels: Sequence[LevelEvidence]) -> dict[str, Evidence | None]:
    """The mean over the levels at which requests wait, and its spread over them: (greatest - least) / mean.

    The level below them does not count: its slots may not be full. The spread needs two such levels.
    """
    full = [level for level in levels if (level.value("prefill_time_share") or 0.0) >= WAITING_SHARE]
    held = [(level, value) for level in full if (value := level.value(figure))]
    if not held:
        return {name: None, f"{name}_spread": None}
    values = [value for _, value in held]
    mean, low, high = math.fsum(values) / len(values), held[0][0], held[-1][0]
    spread = (max(values) - min(values)) / mean if len(values) > 1 else None
    return {
        name: _figure(name, mean, low, high, unit),
        f"{name}_spread": _figure(f"{name}_spread", spread, low, high),
    }


def _elasticity(name: str, before: LevelEvidence, after: LevelEvidence) -> Evidence | None:
    """d ln token gap / d ln N: 0 = a stream does not feel the others, 1 = it slows down as they grow."""
    ratio = _quotient(after, before, "token_gap")
    grown = (after.level or 0.0) / before.level if before.level else 1.0
    value = exponent(ratio, grown) if ratio and grown > 1 else None
    return _figure(name, value, before, after)


def _gain(name: str, before: LevelEvidence, after: LevelEvidence) -> Evidence | None:
    """By what share the throughput grows when the load doubles."""
    made = [(level.level, level.rung.throughput) for level in (before, after) if level.level and level.rung]
    known = [(level, throughput) for level, throughput in made if throughput]
    value = curve.gain(*known) if len(known) == 2 and known[0][0] < known[1][0] else None
    return _figure(name, value, before, after, "share")


def _quotient(above: LevelEvidence, below: LevelEvidence, name: str) -> float | None:
    over, under = above.value(name), below.value(name)
    return over / under if over is not None and under else None


def _figure(
    name: str, value: float | None, before: LevelEvidence, after: LevelEvidence, unit: str | None = None
) -> Evidence | None:
    """A figure of several levels; n is that of the level with fewer ok requests, as far as they are known."""
    if value is None:
        return None
    counts = [found.n for level in (before, after) if (found := level.figures["ttft_mean"]) and found.n is not None]
    return Evidence(
        name=name,
        value=value,
        unit=unit,
        n=min(counts, default=None),
        window=before.window if before.window == after.window else None,
        level=_levels(before, after),
        source="client",
    )


def _levels(before: LevelEvidence, after: LevelEvidence) -> str:
    low, high = (f"{level.level:g}" for level in (before, after))
    return low if before is after else f"{low} -> {high}"


def _first_of_each(ordered: Iterable[LevelEvidence]) -> list[LevelEvidence]:
    """One of each level, the first in order."""
    return list({level.level: level for level in reversed(list(ordered))}.values())[::-1]
