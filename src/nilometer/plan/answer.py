"""The whole plan of a question: bytes of weights and cache, what the device holds, latency over the load.

Puts the rooms of memory and latency together. What could be done better is `options`' part, words are `report`'s.
"""

from __future__ import annotations

from itertools import takewhile

import msgspec

from nilometer.core.errors import SpecError

from .devices import Device
from .latency.roofline import Latency, curve, latency
from .latency.step import crossover_batch
from .latency.throughput import MOST_SEQUENCES, max_throughput
from .latency.work import Setup
from .memory.budget import Memory, memory
from .memory.kv import bytes_per_token, cache, need_bytes
from .memory.mix import MixFit, mix_fit
from .question import Question, ask, model_bytes, rank_bytes, setup

MOST_LOAD = 1 << 14
"""Loads above it are not shown unless asked for."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What comes of it. Without a device `memory` and all after it are None or empty."""

    question: Question
    weights_bytes: float | None
    """Of one copy of the model; None of a shape of which only the cache is known."""
    rank_bytes: float | None
    """Of the fullest rank."""
    kv_bytes_per_token: float
    """Of one copy of the model, all ranks together, nothing held twice; while no window is full."""
    kv_bytes: float
    """What `concurrency` requests of `context` tokens need, the same way."""
    memory: Memory | None = None
    mix: MixFit | None = None
    """What one copy holds of the requests' own lengths."""
    slots: int | None = None
    """Requests of these lengths that one copy serves at once."""
    latency: tuple[Latency, ...] = ()
    """By load, smallest first; empty where not even the weights fit, or the device's bandwidth is not known."""
    full: Latency | None = None
    """The greatest throughput, every slot taken."""
    crossover: int | None = None
    """The smallest batch of a copy at which a decode step is bound by arithmetic; None = none is."""

    @property
    def fits(self) -> bool | None:
        """Whether the asked requests stay in memory at once; None without a device."""
        return None if self.memory is None else self.memory.fits and self.memory.starts

    def at(self, concurrency: int) -> Latency | None:
        """The row of a load."""
        return next((row for row in self.latency if row.concurrency == concurrency), None)


def answer(question: Question) -> Answer:
    """The plan; SpecErrors of the rooms that it is made of, and `plan_number_too_small`."""
    if question.parallel.data < 1:
        raise SpecError("plan_number_too_small", key="data", value=question.parallel.data, least=1)
    whole, known = cache(question.shape), question.shape.hidden > 0
    alone = Answer(
        question=question,
        weights_bytes=model_bytes(question) if known else None,
        rank_bytes=max(rank_bytes(question)) if known else None,
        kv_bytes_per_token=bytes_per_token(whole, question.cached),
        kv_bytes=need_bytes(whole, question.cached, question.context, question.concurrency),
    )
    return alone if question.device is None else _on_device(alone, question.device)


def _on_device(alone: Answer, device: Device) -> Answer:
    question = alone.question
    plan = memory(ask(question, device))
    held = mix_fit(plan, question.mix, limit=question.settings.max_seqs)
    made = msgspec.structs.replace(alone, memory=plan, mix=held, slots=held.requests)
    never = plan.slots is not None and not plan.starts
    if never or held.requests < 1 or device.bandwidth_bytes_per_s is None:
        return made
    each = setup(question, device, held.requests)
    rows = curve(each, question.lengths, loads(question, held.requests), question.tuning)
    return msgspec.structs.replace(
        made,
        latency=tuple(rows),
        full=_fullest(made, plan, each),
        crossover=crossover_batch(each, question.lengths.input + question.lengths.output / 2),
    )


def _fullest(made: Answer, plan: Memory, each: Setup) -> Latency:
    """Every request there at once: as the pool holds on average, as there are slots, as the engine lets in."""
    question, held = made.question, made.mix
    if plan.slots is not None or held is None:
        return latency(each, question.lengths, (made.slots or 1) * question.parallel.data, question.tuning)
    most = min(held.paged.by_mean, MOST_SEQUENCES if held.limit is None else held.limit)
    return max_throughput(each, question.lengths, plan.kv_bytes.mid, most=most, tuning=question.tuning)


def loads(question: Question, slots: int) -> tuple[int, ...]:
    """1, 2, 4, ... up to what the copies hold, that itself, and the load that was asked for."""
    held = slots * question.parallel.data
    powers = takewhile(lambda load: load < min(held, MOST_LOAD), (1 << i for i in range(MOST_LOAD.bit_length())))
    return tuple(sorted({*powers, min(held, MOST_LOAD), question.concurrency}))
