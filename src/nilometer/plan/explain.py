"""A plan step by step: each formula with the numbers that stand in it and what comes out, in the order one would do it.

Slugs and numbers only; the formulas as one writes them on paper are in the locale files under `step.SECTION.SLUG`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil
from typing import Literal

import msgspec

from .answer import Answer
from .devices import Device
from .latency.factors import Factors, factors
from .latency.roofline import Latency, tuned_tpot
from .latency.step import rate
from .latency.work import Setup, Work, decode_work, prefill_work
from .memory.budget import Memory
from .memory.kv import CacheLayers, cache, layer_bytes, layer_state_bytes, state_element
from .memory.pool import TOKENS_BY_CONCURRENCY
from .model.parameters import parameters
from .model.precision import PLAIN_BITS
from .question import Question, setup
from .versions import parse_version

Section = Literal["weights", "cache", "memory", "prefill", "decode", "load"]
Unit = Literal["bytes", "ms", "tokens", "requests", "per_s"]
_MS, _GIGA, _TERA = 1e3, 1e-9, 1e-12


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One formula: `values` stand in it, `result` comes out."""

    section: Section
    slug: str
    result: float
    unit: Unit
    values: Mapping[str, float | str]
    source: str = ""
    """Of a constant in it; empty where it is arithmetic on what was asked."""
    releases: str = ""
    """Of the engine, which the constant belongs to."""


def explain(answer: Answer) -> tuple[Line, ...]:
    """All that the figures of an answer came from; of latency at the load that was asked about."""
    lines = [*_weights(answer), *_cache(answer)]
    device = answer.question.device
    if answer.memory is not None and device is not None:
        lines += _memory(answer, answer.memory, device)
    row = answer.at(answer.question.concurrency)
    if row is not None and device is not None:
        lines += _latency(answer, row, setup(answer.question, device, answer.slots))
    return tuple(lines)


def _line(section: Section, slug: str, result: float, unit: Unit, source: str = "", /, **values: float | str) -> Line:
    return Line(section=section, slug=slug, result=result, unit=unit, values=values, source=source)


def _weights(answer: Answer) -> Iterator[Line]:
    question, whole = answer.question, answer.weights_bytes
    if whole is None or answer.rank_bytes is None:
        return
    total, precision = parameters(question.shape), question.precision
    if question.file_bytes is not None:
        yield _line("weights", "file", whole, "bytes", parameters=total, bits=8 * whole / total)
    else:
        bits = 8 * whole / total
        source = precision.source if precision.linear_bits < PLAIN_BITS else ""
        yield _line("weights", "bits", whole, "bytes", source, parameters=total, bits=bits)
    split = question.parallel
    if split.tensor * split.pipeline > 1:
        ranks = {"tensor": split.tensor, "pipeline": split.pipeline}
        yield _line("weights", "rank", answer.rank_bytes, "bytes", whole=whole, **ranks)


def _cache(answer: Answer) -> Iterator[Line]:
    question, kinds = answer.question, cache(answer.question.shape)
    for part in kinds:
        yield from _layers(part, answer)
    if len(kinds) > 1:
        yield _line("cache", "token", answer.kv_bytes_per_token, "bytes", kinds=len(kinds))
    plain = all(part.window is None and part.grows for part in kinds)
    yield _line(
        "cache",
        "requests" if plain else "requests_windowed",
        answer.kv_bytes,
        "bytes",
        requests=question.concurrency,
        tokens=question.context,
        each=answer.kv_bytes_per_token,
    )


def _layers(part: CacheLayers, answer: Answer) -> Iterator[Line]:
    """One kind of layer: what a token adds, and what a sequence keeps."""
    precision = answer.question.cached
    if part.grows:
        alike = "attention" if precision.key == precision.value else "attention_unlike"
        slug = "latent" if part.shared else alike + ("_window" if part.window else "")
        yield _line(
            "cache",
            slug,
            part.count * layer_bytes(part, precision),
            "bytes",
            layers=part.count,
            heads=part.heads,
            dim=part.key_dim,
            key=precision.key,
            value=precision.value,
            shared=part.shared,
            index=part.index_bytes,
            window=part.window or 0,
        )
    if part.state or part.convolution:
        yield _line(
            "cache",
            "state",
            part.count * layer_state_bytes(part, precision),
            "bytes",
            layers=part.count,
            state=part.state,
            state_bytes=state_element(part, precision),
            convolution=part.convolution,
            convolution_bytes=precision.convolution,
        )


def _memory(answer: Answer, plan: Memory, device: Device) -> Iterator[Line]:
    """Of the stage with the smallest pool."""
    stage = min(plan.stages, key=lambda one: one.kv_bytes.mid)
    shown = device.shown_bytes.bytes
    yield _line("memory", "usable", stage.usable_bytes, "bytes", share=stage.usable_bytes / shown, shown=shown)
    for term in stage.terms:
        yield Line(
            section="memory",
            slug=f"term_{term.formula}",
            result=term.bytes.mid,
            unit="bytes",
            values={"name": term.name, **term.values},
            source=term.source,
            releases=term.span,
        )
    taken = sum(term.bytes.mid for term in stage.terms)
    pool, held = plan.kv_bytes.mid, plan.concurrency.mid
    yield _line("memory", "pool", pool, "bytes", usable=stage.usable_bytes, taken=taken)
    if plan.slots is not None:
        cells = {"cells": plan.slots.cells, "slots": plan.slots.slots, "each": plan.slots.slot_context}
        yield _line("memory", "slots", held, "requests", context=answer.question.context, **cells)
        return
    yield from _held(plan, answer.question)


def _held(plan: Memory, question: Question) -> Iterator[Line]:
    """What the pool holds: of requests by their tokens where every layer keeps all of them, else by what one takes."""
    pool, tokens, held, context = plan.pool, plan.tokens.mid, plan.concurrency.mid, question.context
    each = {"pool": plan.kv_bytes.mid, "block": pool.block, "each": plan.bytes_per_token}
    grouped = {"blocks": pool.blocks or 0, "needed": (pool.blocks or 0) / held if held else 0.0, "context": context}
    many = pool.layout is not None and pool.layout.kind != "uniform"
    shown = many and (parse_version(plan.version) or ()) >= TOKENS_BY_CONCURRENCY
    if not shown:
        yield _line("memory", "tokens_grouped" if many else "tokens", tokens, "tokens", **each, **grouped)
    if all(part.window is None and part.grows for part in cache(question.shape)):
        rounded = ceil(context / pool.block) * pool.block
        yield _line("memory", "concurrency", held, "requests", tokens=tokens, context=rounded)
    elif pool.kept is not None:
        kept = {"pool": plan.kv_bytes.mid, "needed": pool.kept.bytes(context), "context": context}
        yield _line("memory", "concurrency_kept", held, "requests", **kept)
    else:
        yield _line("memory", "concurrency_grouped", held, "requests", **grouped)
    if shown:
        yield _line("memory", "tokens_shown", tokens, "tokens", held=held, context=context)


def _latency(answer: Answer, row: Latency, each: Setup) -> Iterator[Line]:
    """Of one copy of the model."""
    lengths, made, tuning = answer.question.lengths, row.parts, answer.question.tuning
    table = factors(each.engine, each.device.kind, each.version)
    context = lengths.input + lengths.output / 2
    share = max(1.0, made.running / each.parallel.pipeline)
    yield from _prefill(each, table, prefill_work(each, lengths.input), row, lengths.input)
    yield from _decode(each, table, decode_work(each, share, context), row, context)
    tuned = "_tuned" if tuning.anchors else ""
    yield _line(
        "load",
        f"tpot{tuned}",
        _MS * tuned_tpot(made, tuning),
        "ms",
        fixed_ms=_MS * made.fixed_s,
        growing_ms=_MS * made.growing_s,
        scale_fixed=tuning.batched if made.running > 1 else tuning.fixed,
        scale_growing=tuning.growing,
    )
    first = tuning.prefill * (made.alone_s + made.waits_s)
    waits = {"alone_ms": _MS * made.alone_s, "waits_ms": _MS * made.waits_s, "scale": tuning.prefill}
    yield _line("load", f"ttft{tuned}", _MS * first, "ms", **waits)
    cycle = first + (lengths.output - 1) * row.tpot_s.mid
    if row.bound == "capacity":
        loads = {"asked": row.concurrency, "running": row.running}
        yield _line("load", "queue", _MS * row.ttft_s.mid, "ms", first_ms=_MS * first, cycle_ms=_MS * cycle, **loads)
    rate_ = row.output_tokens_per_s.mid
    yield _line("load", "throughput", rate_, "per_s", running=row.running, output=lengths.output, cycle_ms=_MS * cycle)


def _prefill(each: Setup, table: Factors, work: Work, row: Latency, tokens: float) -> Iterator[Line]:
    step, arithmetic = row.parts.prefill, table.arithmetic or each.precision.arithmetic
    computed = _computed(each, arithmetic, work.operations + work.expert_operations, step.compute_s)
    yield _line("prefill", "compute", _MS * step.compute_s, "ms", table.source, tokens=tokens, **computed)
    attended = _computed(each, "fp16", work.attention_operations, step.attention_s)
    yield _line("prefill", "attention", _MS * step.attention_s, "ms", table.source, tokens=tokens, **attended)
    alone = {"request_ms": _MS * table.request_s, "step_ms": _MS * step.seconds}
    yield _line("prefill", "alone", _MS * row.parts.alone_s, "ms", table.source, **alone)


def _decode(each: Setup, table: Factors, work: Work, row: Latency, context: float) -> Iterator[Line]:
    step, arithmetic = row.parts.step, table.arithmetic or each.precision.arithmetic
    batch = {"sequences": work.sequences, "context": context}
    for slug, read_bytes, seconds in (
        ("weights", work.weight_bytes, step.weights_s),
        ("cache", work.cache_bytes, step.cache_s),
    ):
        read = _read(each, read_bytes, seconds)
        yield _line("decode", slug, _MS * seconds, "ms", table.source, **batch, **read)
    computed = _computed(each, arithmetic, work.operations + work.expert_operations, step.compute_s)
    yield _line("decode", "compute", _MS * step.compute_s, "ms", table.source, **batch, **computed)
    waits = {"waits_ms": _MS * step.waits_s, "sending_ms": _MS * step.sending_s, "overhead_ms": _MS * step.overhead_s}
    layers = {"layers": each.shape.layers, "reduces": work.reduces}
    yield _line("decode", "beside", sum(waits.values()), "ms", table.source, **waits, **layers)
    yield _line("decode", "step" if step.overlaps else "step_summed", _MS * step.seconds, "ms")


def _computed(each: Setup, arithmetic: str, operations: float, seconds: float) -> dict[str, float]:
    """The share is what the time comes to, all factors together."""
    per_s = rate(each.device, arithmetic) or 0.0
    share = operations / (per_s * seconds) if per_s and seconds else 0.0
    return {"tera_operations": _TERA * operations, "tera_per_s": _TERA * per_s, "share": share}


def _read(each: Setup, read_bytes: float, seconds: float) -> dict[str, float]:
    per_s = each.device.bandwidth_bytes_per_s or 0.0
    share = read_bytes / (per_s * seconds) if per_s and seconds else 0.0
    return {"bytes": read_bytes, "gb_per_s": _GIGA * per_s, "share": share}
