"""Lower precision of weights and of the cache: the table of tiers, and the advice that follows from it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from ..answer import Answer, answer
from ..interval import Interval
from ..model.parameters import parameters
from ..model.precision import PRECISIONS
from ..model.shape import Experts
from ..question import Question, model_bytes
from .option import Asked, Figures, Option, advised, figures, row_at
from .quality import Quality, cache_quality, weights_quality
from .support import CACHE_TIER, Computes, computes, flags, tiers

_SMALLER = 0.97
"""A tier is one only where it takes less than this share of what the weights take now."""
_FEWER_BITS = 0.4
"""And where it has so many bits fewer: what was published in 4 bits is not to be quantised to 4 bits again."""
_LONG_CONTEXT = 32_768
_CACHE_SHARE = 0.2
"""Of a decode step, from which its reading of the cache is worth halving."""
_MEASURED_PARAMETERS = 6e9
"""The published losses are of models of 7 billion parameters and more."""


class Tier(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table: the model in a precision on the device as asked. None = it does not fit, or no device."""

    precision: str
    current: bool
    computes: Computes | None
    weights_bytes: float
    """Of one copy."""
    weights_share: float
    """Of what they take now."""
    fits: bool | None
    max_concurrency: Interval | None
    alone_tpot_ms: Interval | None
    """Of a single request."""
    tpot_ms: Interval | None
    """At the asked load."""
    full_tokens_per_s: Interval | None
    alone_speedup: float | None
    load_speedup: float | None
    """TPOT now over TPOT then, of a single request and at the asked load: where these differ arithmetic is the wall."""
    full_speedup: float | None
    quality: Quality


def precision_table(plan: Answer) -> tuple[Tier, ...]:
    """The asked precision, and each tier of the engine with fewer bytes, in that order.

    Empty for a shape of which only the cache is known.
    """
    if plan.weights_bytes is None:
        return ()
    rows = [_tier(plan, plan)]
    rows += [_tier(plan, answer(asked)) for asked in lower(plan)]
    return tuple(rows)


def lower(plan: Answer) -> tuple[Question, ...]:
    """The question in each tier of its engine that takes fewer bytes, most bits first; true file sizes left behind."""
    question = plan.question
    changed = (
        replace(question, precision=PRECISIONS[name], file_bytes=None)
        for name in tiers(question.engine)
        if PRECISIONS[name].linear_bits < _bits(question) - _FEWER_BITS
    )
    now = plan.weights_bytes or 0.0
    return tuple(asked for asked in changed if now and model_bytes(asked) < _SMALLER * now)


def _bits(question: Question) -> float:
    """Of most of the weights as they are."""
    own = question.precision
    return own.linear_bits if own.expert_bits is None else own.expert_bits


def _tier(now: Answer, then: Answer) -> Tier:
    question = then.question
    single, was = row_at(then, 1), row_at(now, 1)
    load, load_was = row_at(then, question.concurrency), row_at(now, question.concurrency)
    full, full_was = (figures(each).full_tokens_per_s for each in (then, now))
    return Tier(
        precision=question.precision.name,
        current=then is now,
        computes=None if question.device is None else computes(question.device, question.precision, question.engine),
        weights_bytes=model_bytes(question),
        weights_share=model_bytes(question) / model_bytes(now.question),
        fits=then.fits,
        max_concurrency=figures(then).max_concurrency,
        alone_tpot_ms=None if single is None else single.tpot_s.times(1e3),
        tpot_ms=None if load is None else load.tpot_s.times(1e3),
        full_tokens_per_s=full,
        alone_speedup=None if single is None or was is None else was.tpot_s.mid / single.tpot_s.mid,
        load_speedup=None if load is None or load_was is None else load_was.tpot_s.mid / load.tpot_s.mid,
        full_speedup=None if full is None or full_was is None else full.mid / full_was.mid,
        quality=weights_quality(question.precision.name),
    )


def weights_options(asked: Asked) -> list[Option]:
    """A tier each, those left out that the device cannot run."""
    device = asked.question.device
    if device is None:
        return []
    found = []
    for question in lower(asked.plan):
        how = computes(device, question.precision, question.engine)
        if how != "no":
            found.append(_weights(asked, question, how))
    return found


def _weights(asked: Asked, question: Question, how: Computes) -> Option:
    name, engine = question.precision.name, question.engine
    slug = "weights_gguf" if engine == "llama.cpp" else f"weights_{name}"

    def caution(before: Figures, after: Figures, _plan: Answer) -> Sequence[str]:
        found = []
        if how == "weight_only" and name == "fp8":
            found.append("weight_only")
        if how == "unproven":
            found.append("kernel_unproven")
        if after.bound == "compute" and not _much_faster(before, after):
            found.append("compute_bound")
        return [*found, *_outside(question)]

    return advised(
        asked,
        slug,
        "precision",
        question,
        params={"precision": name, "computes": how},
        quality=weights_quality(name),
        flags=flags(engine, slug, name=name.upper()),
        caution=caution,
    )


def _much_faster(before: Figures, after: Figures) -> bool:
    if before.tpot_ms is None or after.tpot_ms is None:
        return True
    return after.tpot_ms.mid < 0.95 * before.tpot_ms.mid


def _outside(question: Question) -> list[str]:
    """What the published losses were not measured on."""
    found = []
    if parameters(question.shape) < _MEASURED_PARAMETERS:
        found.append("quality_of_larger")
    if any(isinstance(block.feed_forward, Experts) for block in question.shape.kinds):
        found.append("quality_of_dense")
    return found


def cache_options(asked: Asked) -> list[Option]:
    """8 bits in place of 16, where memory is the hard limit, contexts are long, or a step reads much of the cache."""
    question = asked.question
    name = CACHE_TIER.get(question.engine)
    if name is None or question.device is None or not _sixteen_bit(question) or not cache_matters(asked.plan):
        return []
    changed = replace(question, key_precision=name, value_precision=None)
    return [
        advised(
            asked,
            "kv_8bit",
            "kv",
            changed,
            params={"precision": name},
            quality=cache_quality(name),
            flags=flags(question.engine, "kv_8bit"),
        )
    ]


def _sixteen_bit(question: Question) -> bool:
    return min(question.cached.key, question.cached.value) >= 2.0


def cache_matters(plan: Answer) -> bool:
    """Whether the cache is what limits it."""
    question, memory = plan.question, plan.memory
    if plan.kv_bytes_per_token == 0:
        return False
    row = row_at(plan, question.concurrency)
    short = memory is not None and memory.concurrency.mid < memory.asked
    if not plan.fits or short or question.context >= _LONG_CONTEXT or row is None:
        return True
    step = row.parts.step
    return row.bound == "capacity" or step.cache_s >= _CACHE_SHARE * step.seconds
