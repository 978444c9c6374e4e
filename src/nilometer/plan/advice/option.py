"""One piece of advice: what is changed, the figures before and after, what it costs, whether it is needed.

The form, and what is alike for every kind of change. Which changes there are is the part of `options_weights`,
`options_speculate` and `options_parallel`; `options` ranks them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec

from nilometer.core.errors import Param

from ..answer import Answer, answer
from ..interval import Interval
from ..latency.roofline import Latency
from ..latency.step import Wall
from ..memory.budget import Memory
from ..model.shape import Shape
from ..question import Question
from .objective import Held, Objective, held
from .quality import Quality
from .speculate import Speculation

Kind = Literal["precision", "kv", "speculation", "parallel"]
Effect = Literal["enough", "helps", "not_needed", "no_gain"]

_WORTH = 0.01
"""A change of less than this share is none."""


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """Of a plan at the asked load, all copies together; None = not known, or not forecast as it does not fit."""

    fits: bool | None
    tpot_ms: Interval | None
    ttft_ms: Interval | None
    output_tokens_per_s: Interval | None
    full_tokens_per_s: Interval | None
    """With every slot taken."""
    bound: Wall | None
    max_concurrency: Interval | None
    """Requests of the asked length that memory holds at once."""
    weights_bytes: float | None
    """Of one copy."""
    free_bytes: float | None
    """What the asked requests leave of the KV pool of one device; below 0: what is missing."""
    devices: int
    price_per_hour: float | None


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What advice is asked for: a plan, what it is to reach, and what may be spent."""

    plan: Answer
    objectives: tuple[Objective, ...] = ()
    most_devices: int = 8
    price_per_device_hour: float | None = None
    rate_per_s: float | None = None
    users: float | None = None
    acceptance: float | None = None
    """The user's own: the chance of a drafted token after kept ones."""
    drafted: int | None = None
    draft: Shape | None = None
    """A small model to draft with."""
    draft_precision: str | None = None

    @property
    def question(self) -> Question:
        """What the plan answers."""
        return self.plan.question


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """One. `caution` and `quality.caution` are slugs of what may make it wrong here; the general words go by `slug`."""

    slug: str
    kind: Kind
    params: Mapping[str, Param]
    question: Question | None
    """The changed one; None where no field of a question says it."""
    plan: Answer
    before: Figures
    after: Figures
    held: tuple[Held, ...]
    """The objectives, after it."""
    effect: Effect
    """enough: all is reached with it. not_needed: all is without. helps: nearer, not there. no_gain: no nearer."""
    quality: Quality | None = None
    speculation: Speculation | None = None
    caution: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    """The engine's own; empty where it has none: then what it loads, or how many are started, says it."""

    @property
    def speedup(self) -> float | None:
        """TPOT before over after, by the middle: both err alike, so it is surer than either."""
        if self.before.tpot_ms is None or self.after.tpot_ms is None:
            return None
        return self.before.tpot_ms.mid / self.after.tpot_ms.mid

    @property
    def extra_devices(self) -> int:
        """More than before."""
        return self.after.devices - self.before.devices


def figures(plan: Answer, price: float | None = None, row: Latency | None = None) -> Figures:
    """Of a plan, at the asked load or a row of its own."""
    question, memory = plan.question, plan.memory
    row = row or row_at(plan, question.concurrency)
    devices = question.parallel.devices
    return Figures(
        fits=plan.fits,
        tpot_ms=None if row is None else row.tpot_s.times(1e3),
        ttft_ms=None if row is None else row.ttft_s.times(1e3),
        output_tokens_per_s=None if row is None else row.output_tokens_per_s,
        full_tokens_per_s=None if row is None or plan.full is None else plan.full.output_tokens_per_s,
        bound=None if row is None else row.bound,
        max_concurrency=None if memory is None else memory.concurrency.times(question.parallel.data),
        weights_bytes=plan.weights_bytes,
        free_bytes=None if memory is None else _free(memory),
        devices=devices,
        price_per_hour=None if price is None else price * devices,
    )


def row_at(plan: Answer, load: int) -> Latency | None:
    """The forecast of a load; None where there is none, or the engine would not start."""
    return plan.at(load) if plan.memory is not None and plan.memory.starts else None


def _free(memory: Memory) -> float:
    return -memory.short_bytes if memory.short_bytes else memory.kv_bytes.mid - memory.need_bytes


def reached(plan: Answer, row: Latency | None, objectives: Sequence[Objective]) -> tuple[bool, tuple[Held, ...]]:
    """(whether it fits and every objective is likely kept, each of them beside its forecast)."""
    if row is None:
        return False, ()
    told = tuple(held(row, one, plan.question.lengths) for one in objectives)
    return bool(plan.fits) and all(one.met in {"yes", "likely"} for one in told), told


def advised(
    asked: Asked,
    slug: str,
    kind: Kind,
    question: Question | None,
    *,
    params: Mapping[str, Param],
    quality: Quality | None = None,
    flags: tuple[str, ...] = (),
    caution: Callable[[Figures, Figures, Answer], Sequence[str]] | None = None,
) -> Option:
    """A change of the question: asked again, and held against what it was."""
    plan = asked.plan if question is None else answer(question)
    return judged(asked, slug, kind, question, plan, None, params=params, quality=quality, flags=flags, caution=caution)


def judged(
    asked: Asked,
    slug: str,
    kind: Kind,
    question: Question | None,
    plan: Answer,
    row: Latency | None,
    *,
    params: Mapping[str, Param],
    quality: Quality | None = None,
    speculation: Speculation | None = None,
    flags: tuple[str, ...] = (),
    caution: Callable[[Figures, Figures, Answer], Sequence[str]] | None = None,
) -> Option:
    """A change whose plan, and row at the asked load, are there already."""
    old = asked.plan
    before, after = figures(old, asked.price_per_device_hour), figures(plan, asked.price_per_device_hour, row)
    load = row or row_at(plan, plan.question.concurrency)
    was, told_before = reached(old, row_at(old, old.question.concurrency), asked.objectives)
    now, told = reached(plan, load, asked.objectives)
    return Option(
        slug=slug,
        kind=kind,
        params=params,
        question=question,
        plan=plan,
        before=before,
        after=after,
        held=told,
        effect=_effect(was=was, now=now, before=before, after=after, held_before=told_before, held_after=told),
        quality=quality,
        speculation=speculation,
        caution=tuple(dict.fromkeys(caution(before, after, plan))) if caution else (),
        flags=flags,
    )


def _effect(
    *,
    was: bool,
    now: bool,
    before: Figures,
    after: Figures,
    held_before: Sequence[Held],
    held_after: Sequence[Held],
) -> Effect:
    gains = _gains(before, after, held_before, held_after)
    if was:
        return "not_needed" if gains else "no_gain"
    if now:
        return "enough"
    return "helps" if gains else "no_gain"


def _gains(before: Figures, after: Figures, held_before: Sequence[Held], held_after: Sequence[Held]) -> bool:
    """Whether what is wanted gets better: what is missing; where nothing is, speed, and room that costs none."""
    if not before.fits:
        lacking = before.free_bytes or 0.0
        return bool(after.fits) or (lacking < 0 and (after.free_bytes or 0.0) > lacking)
    missed = [
        (one.objective.at_most, one.value, then.value)
        for one, then in zip(held_before, held_after, strict=False)
        if one.met in {"unlikely", "no"}
    ]
    if missed:
        return any(better(then, now, less=at_most) for at_most, now, then in missed)
    if _faster(after, before):
        return True
    return better(after.max_concurrency, before.max_concurrency, less=False) and not _faster(before, after)


def _faster(new: Figures, old: Figures) -> bool:
    """By the time of a token, or by how many there are of them."""
    more = better(new.output_tokens_per_s, old.output_tokens_per_s, less=False)
    return more or better(new.tpot_ms, old.tpot_ms, less=True)


def better(new: Interval | None, old: Interval | None, *, less: bool) -> bool:
    """Whether a figure improves by more than nothing."""
    if new is None or old is None:
        return new is not None
    return new.mid < old.mid * (1 - _WORTH) if less else new.mid > old.mid * (1 + _WORTH)
