"""Advice on speculation: nothing but the text so far, a head, or a named small model, at the asked load."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ..answer import Answer, answer
from ..interval import Interval
from ..latency.roofline import Latency
from ..model.precision import precision_of
from ..question import Question, model_bytes, setup
from .drafters import NGRAM, Drafter, draft_model, head
from .option import Asked, Option, judged, row_at
from .speculate import Speculation, speculation, sped_up
from .support import FLAGS, flags

_ACCEPTANCE_EATEN = 0.85
"""Of the gain of a single sequence: below this the batch has taken it."""


_PUBLISHED_LESS_FROM = 16
"""Sequences from which what was published of heads (1.38 at 64 in SGLang: EAGLE-3, arXiv 2503.01840) is less."""


def speculate_options(asked: Asked) -> list[Option]:
    """One for each way to draft that the engine has a flag for; none where nothing is forecast at the asked load."""
    question = asked.question
    if question.device is None or row_at(asked.plan, question.concurrency) is None:
        return []
    offered = FLAGS.get(question.engine, {})
    found = (_one(asked, drafter) for drafter in drafters(asked) if f"speculate_{drafter.method}" in offered)
    return [one for one in found if one is not None]


def drafters(asked: Asked) -> tuple[Drafter, ...]:
    """What could draft for the model."""
    shape = asked.question.shape
    if asked.draft is None:
        return NGRAM, head(shape)
    named = None if asked.draft_precision is None else precision_of(asked.draft_precision)
    return NGRAM, draft_model(asked.draft, named)


def _one(asked: Asked, drafter: Drafter) -> Option | None:
    changed = _with_memory(asked.question, drafter)
    plan = asked.plan if changed is None else answer(changed)
    made = speculated(asked, plan, drafter)
    if made is None:
        return None
    told, row = made
    best = told.round.drafted
    one = judged(
        asked,
        f"speculate_{drafter.method}",
        "speculation",
        None,
        plan,
        row,
        params=_params(told),
        speculation=told,
        flags=flags(asked.question.engine, f"speculate_{drafter.method}", k=best, k1=best + 1),
        caution=lambda _before, _after, _plan: _caution(asked.question, told),
    )
    after = replace(
        one.after,
        weights_bytes=model_bytes(asked.question) + drafter.weights_bytes,
        max_concurrency=_shared(one.after.max_concurrency, plan, drafter),
        full_tokens_per_s=None,
    )
    return replace(one, after=after)


def speculated(asked: Asked, plan: Answer, drafter: Drafter) -> tuple[Speculation, Latency] | None:
    """(what a drafter brings at the asked load of a plan, that load with it); None where the plan has no such row."""
    question, device = plan.question, plan.question.device
    row = row_at(plan, question.concurrency)
    if row is None or device is None:
        return None
    own = asked.acceptance if drafter.method != "ngram" or asked.draft is None else None
    told = speculation(
        setup(asked.question, device, plan.slots),
        drafter,
        row.parts.running,
        question.lengths.input + question.lengths.output / 2,
        acceptance=own,
        drafted=asked.drafted,
    )
    return told, sped_up(row, told, question.lengths, question.tuning)


def _params(told: Speculation) -> dict[str, str | int | float | None]:
    return {
        "drafted": told.round.drafted,
        "acceptance": told.acceptance.mid,
        "cost": told.round.cost,
        "checking": told.round.checking,
        "break_even": told.break_even,
        "gain": told.gain.mid,
        "alone_gain": told.alone_gain,
        "batch": told.round.batch,
        "guide": told.guide,
    }


def _with_memory(question: Question, drafter: Drafter) -> Question | None:
    """The same with the drafter's weights beside the model's; None where it has none."""
    if not drafter.weights_bytes:
        return None
    return replace(question, beside_bytes=drafter.weights_bytes)


def _shared(held: Interval | None, plan: Answer, drafter: Drafter) -> Interval | None:
    """Requests at once where the drafter's cache grows with them."""
    own = plan.kv_bytes_per_token
    if held is None or not own or plan.memory is None or plan.memory.slots is not None:
        return held
    return held.times(own / (own + drafter.kv_bytes_per_token))


def _caution(question: Question, told: Speculation) -> Sequence[str]:
    found = []
    if told.gain.mid < 1:
        found.append("speculation_loses")
    elif told.gain.low < 1:
        found.append("acceptance_unsure")
    if told.gain.mid < _ACCEPTANCE_EATEN * told.alone_gain:
        found.append("batch_eats_gain")
    if told.drafter.method == "head" and told.gain.mid > 1 and told.round.batch >= _PUBLISHED_LESS_FROM:
        found.append("batch_measured_less")
    if told.guide_agrees is False:
        found.append("guide_rule_differs")
    if question.engine == "vllm" and question.parallel.pipeline > 1:
        found.append("no_pipeline_beside")
    found.append("acceptance_prior" if told.acceptance_source else "acceptance_chance")
    return found
