"""Advice on a plan, in the guide's order: quantise, then the cache, then speculate, then more devices."""

from __future__ import annotations

from collections.abc import Sequence

from ..answer import Answer
from ..model.shape import Shape
from .objective import Objective
from .option import Asked, Effect, Kind, Option
from .options_parallel import parallel_options
from .options_speculate import speculate_options
from .options_weights import cache_options, weights_options

ORDER: Sequence[Kind] = ("precision", "kv", "speculation", "parallel")
"""The guide's: lower precision, then speculation, then more devices; the cache where memory is the limit."""
_EFFECTS: Sequence[Effect] = ("enough", "helps", "not_needed", "no_gain")
_RISKS = ("none", "small", "medium", "unknown", "high")


def options(
    plan: Answer,
    *,
    objectives: Sequence[Objective] = (),
    most_devices: int = 8,
    price_per_device_hour: float | None = None,
    rate_per_s: float | None = None,
    users: float | None = None,
    acceptance: float | None = None,
    drafted: int | None = None,
    draft: Shape | None = None,
    draft_precision: str | None = None,
) -> tuple[Option, ...]:
    """What could be changed, ranked: by the guide's order of kinds, within one by what it does for the objectives.

    Empty without a device, and for a shape of which only the cache is known. `acceptance`: the chance that a drafted
    token is kept after kept ones, of the named `draft`, else of any way to draft. SpecErrors of `answer`, and
    `precision_unknown` for the draft's.
    """
    asked = Asked(
        plan=plan,
        objectives=tuple(objectives),
        most_devices=most_devices,
        price_per_device_hour=price_per_device_hour,
        rate_per_s=rate_per_s,
        users=users,
        acceptance=acceptance,
        drafted=drafted,
        draft=draft,
        draft_precision=draft_precision,
    )
    if plan.question.device is None or plan.weights_bytes is None:
        return ()
    made = [
        *weights_options(asked),
        *cache_options(asked),
        *speculate_options(asked),
        *parallel_options(asked),
    ]
    return tuple(sorted(made, key=_rank))


def _rank(option: Option) -> tuple[int, int, int, float]:
    risk = 0 if option.quality is None else _RISKS.index(option.quality.risk)
    faster = -(option.speedup or 0.0)
    return ORDER.index(option.kind), _EFFECTS.index(option.effect), risk, faster


def first_move(made: Sequence[Option]) -> Option | None:
    """The first in the guide's order that is enough; else that helps; else that would gain, though not needed."""
    for wanted in _EFFECTS[:3]:
        found = next((option for option in made if option.effect == wanted), None)
        if found is not None:
            return found
    return None
