"""The screen of a plan: whether it fits, where the memory goes, latency over the load, and what to know beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from nilometer.core.finding import Finding
from nilometer.plan.advice.advise import Advice
from nilometer.plan.answer import Answer
from nilometer.plan.devices import Device
from nilometer.plan.explain import Line
from nilometer.plan.interval import Interval
from nilometer.plan.latency.roofline import Latency
from nilometer.plan.memory.budget import Memory
from nilometer.text import units
from nilometer.text.i18n import Catalogue

from . import explain, findings, plan_advice
from .document import (
    Bar,
    Bars,
    Block,
    Cell,
    Column,
    Document,
    Fact,
    Facts,
    Foot,
    Heading,
    Lead,
    Note,
    Notes,
    Table,
    Text,
)
from .plan_words import devices_of, precision_of, requests_of

MOST_ROWS = 7
"""Loads that a screen shows; the machine form has all."""


class Beside(NamedTuple):
    """What is shown beside a plan. `lengths_from`: given, context, workload or default; `lines`: its formulas;
    `notes`: what is told beside those of the plan itself; `detailed`: whether the advice is told whole."""

    lengths_from: str
    advice: Advice
    lines: Sequence[Line] = ()
    notes: Sequence[Finding] = ()
    detailed: bool = False
    traps: Sequence[Finding] | None = None
    """What the audit found; None where none was asked for."""


def plan_document(answer: Answer, beside: Beside, words: Catalogue) -> Document:
    """A plan in words."""
    advice = beside.advice
    blocks: list[Block] = [_lead(answer, advice, words)]
    blocks += plan_advice.shortfall(advice.shortfall, words)
    blocks.append(Facts(rows=list(_facts(answer, words, beside.lengths_from))))
    blocks += _audit(beside.traps, words)
    if answer.latency:
        rows = shown(answer)
        blocks += [_table(rows, words), _bars(rows, words)]
    if told := list(plan_advice.facts(advice, words)):
        blocks.append(Facts(rows=told))
    blocks += plan_advice.devices(advice.devices, answer.question.concurrency, words)
    if beside.detailed:
        blocks += plan_advice.details(advice, words)
    blocks += _notes([*(answer.memory.notes if answer.memory else ()), *beside.notes], words)
    blocks += explain.blocks(beside.lines, words)
    if answer.memory is not None:
        blocks.append(_foot(answer, beside, words))
    return Document(lang=words.lang, blocks=blocks)


def _lead(answer: Answer, advice: Advice, words: Catalogue) -> Lead:
    """The verdict in one sentence."""
    question, plan = answer.question, answer.memory
    facts = {
        "devices": devices_of(question, words),
        "precision": precision_of(question),
        "context": question.context,
        "asked": question.concurrency,
        "model": question.shape.name or words.say("screen.plan.shape"),
        "weights": answer.weights_bytes,
        "each": answer.kv_bytes_per_token,
        "kv": answer.kv_bytes,
    }
    if plan is None:
        key = "cache_alone" if answer.weights_bytes is None else "model_alone"
        return Lead(text=words.say(f"screen.plan.{key}", **facts))
    missing = max(stage.missing_bytes for stage in plan.stages)
    if missing:
        return Lead(text=words.say("screen.plan.too_large", missing=missing, **facts), tone="trouble")
    held = int(plan.concurrency.mid) * question.parallel.data
    if not plan.starts and plan.fits:
        told = {"engine": findings.ENGINES.get(plan.engine, plan.engine), "longest": plan.context}
        return Lead(text=words.say("screen.plan.too_long", held=held, **facts, **told), tone="trouble")
    if not plan.fits and plan.starts and not plan.short_bytes:
        return Lead(text=words.say("screen.plan.too_few_slots", held=held, **facts), tone="trouble")
    if not plan.fits:
        text = words.say("screen.plan.too_many", held=held, short=plan.short_bytes, **facts)
        return Lead(text=text, tone="trouble")
    at = answer.at(question.concurrency)
    then = "" if at is None else words.say("screen.plan.at", n=question.concurrency, **_figures(at, words))
    missed = plan_advice.missed(advice, words)
    text = words.say("screen.plan.fits", held=held, **facts) + then + missed + words.say("screen.plan.stop")
    return Lead(text=text, tone="trouble" if missed else "plain")


def _figures(row: Latency, words: Catalogue) -> dict[str, object]:
    tpot = row.tpot_s.times(1e3)
    return {
        "tpot": tpot.mid,
        "low": tpot.low,
        "high": tpot.high,
        "wall": words.say(f"screen.plan.wall.{row.bound}"),
    }


def _facts(answer: Answer, words: Catalogue, lengths_from: str) -> Iterator[Fact]:
    question, plan = answer.question, answer.memory
    if plan is not None:
        yield Fact(words.say("screen.plan.memory"), _memory(plan, words))
        yield Fact(words.say("screen.plan.holds"), _holds(answer, plan, words))
    yield Fact(words.say("screen.plan.requests"), requests_of(question, words, lengths_from))
    if question.device is not None:
        yield Fact(words.say("screen.plan.device"), _device(question.device, words))
    if answer.latency:
        yield Fact(words.say("screen.plan.forecast"), _basis(answer, words))
    if answer.crossover is not None:
        yield Fact(words.say("screen.plan.crossover"), words.say("screen.plan.crossover_at", n=answer.crossover))


def _basis(answer: Answer, words: Catalogue) -> str:
    """Whose measurements the efficiencies are from."""
    question = answer.question
    if question.tuning.anchors:
        dates = words.say("screen.list_join").join(date for date in question.tuning.dates if date)
        loads = words.say("screen.list_join").join(units.mean(load) for load in question.tuning.anchors)
        return words.say("screen.plan.basis_run", dates=dates or units.NOT_MEASURED, loads=loads)
    return words.say("screen.plan.basis_prior", source=answer.latency[0].prior)


def _memory(plan: Memory, words: Catalogue) -> str:
    """Of the fullest stage: what is taken, what is left, of what."""
    stage = min(plan.stages, key=lambda one: one.kv_bytes.mid)
    parts = [
        words.say("screen.plan.part", name=words.say(f"screen.plan.term.{term.name}"), size=term.bytes.mid)
        for term in stage.terms
        if term.bytes.mid
    ]
    parts.insert(1, words.say("screen.plan.part", name=words.say("screen.plan.term.kv"), size=_cache_bytes(plan)))
    return words.say("screen.plan.of", parts=words.say("screen.plan.join").join(parts), usable=stage.usable_bytes)


def _cache_bytes(plan: Memory) -> float:
    """All that is left, or where the cache is made for its slots alone, what that takes."""
    return plan.kv_bytes.mid if plan.slots is None else plan.need_bytes


def _holds(answer: Answer, plan: Memory, words: Catalogue) -> str:
    text = words.say(
        "screen.plan.tokens",
        tokens=plan.tokens.mid,
        each=plan.bytes_per_token,
        n=plan.concurrency.mid,
        context=answer.question.context,
    )
    if answer.question.parallel.data > 1:
        text = words.say("screen.plan.each_copy", text=text)
    if answer.mix is None or not answer.slots:
        return text
    paged, limit = answer.mix.paged, answer.mix.limit
    text += words.say(
        "screen.plan.mix",
        n=paged.by_quantile,
        share=paged.share,
        worst=paged.by_worst_case,
        contiguous=answer.mix.contiguous,
    )
    limited = limit is not None and limit < paged.by_quantile
    return text + (words.say("screen.plan.limited", limit=limit) if limited else "")


def _device(device: Device, words: Catalogue) -> str:
    bandwidth = device.bandwidth_bytes_per_s
    return words.say(
        "screen.plan.device_is",
        name=device.name,
        bandwidth=None if bandwidth is None else bandwidth / 1e9,
        flops=None if "fp16" not in device.flops else device.flops["fp16"] / 1e12,
        source=device.source,
    )


def shown(answer: Answer) -> Sequence[Latency]:
    """The loads of a screen: the first, the last, the asked one, and of the others every second as long as needed."""
    rows = list(answer.latency)
    keep = {rows[0].concurrency, rows[-1].concurrency, answer.question.concurrency}
    while len(rows) > MOST_ROWS:
        inner = [row for row in rows if row.concurrency not in keep]
        dropped = set(map(id, inner[::2]))
        rows = [row for row in rows if id(row) not in dropped]
    return rows


def _table(rows: Sequence[Latency], words: Catalogue) -> Table:
    ttft = units.latency_scale(row.ttft_s.mid * 1e3 for row in rows)
    tpot = units.latency_scale(row.tpot_s.mid * 1e3 for row in rows)
    tokens = words.say("screen.tokens_unit")
    return Table(
        columns=[
            Column(words.say("short.in_flight"), "right"),
            Column(words.say("short.ttft"), "decimal", ttft.symbol),
            Column(words.say("screen.plan.within"), "right"),
            Column(words.say("short.tpot"), "decimal", tpot.symbol),
            Column(words.say("screen.plan.within"), "right"),
            Column(words.say("short.tokens_all"), "decimal", tokens),
            Column(words.say("screen.plan.within"), "right"),
            Column(words.say("screen.plan.bound"), "left"),
        ],
        rows=[
            [
                Cell(units.count(row.concurrency)),
                *_latency(row.ttft_s, ttft),
                *_latency(row.tpot_s, tpot),
                Cell(units.rate(row.output_tokens_per_s.mid)),
                Cell(_span(row.output_tokens_per_s)),
                Cell(words.say(f"screen.plan.wall_short.{row.bound}")),
            ]
            for row in rows
        ],
        legend=[words.say("screen.plan.legend")],
    )


def _latency(figure: Interval, scale: units.Scale) -> Iterator[Cell]:
    yield Cell(scale.show(figure.mid * 1e3))
    yield Cell(_span(figure.times(1e3 / scale.ms)))


def _span(figure: Interval) -> str:
    return f"{units.rate(figure.low)}-{units.rate(figure.high)}"


def _bars(rows: Sequence[Latency], words: Catalogue) -> Bars:
    return Bars(
        title=words.say("screen.plan.chart"),
        rows=[
            Bar(
                label=units.count(row.concurrency),
                value=row.output_tokens_per_s.mid,
                text=units.rate(row.output_tokens_per_s.mid),
            )
            for row in rows
        ],
    )


def _audit(traps: Sequence[Finding] | None, words: Catalogue) -> Iterator[Block]:
    """What is wrong with how the engine was started, the gravest first."""
    if traps is None:
        return
    yield Heading(text=words.say("screen.plan.audit"))
    if traps:
        yield from _notes(traps, words)
    else:
        yield Text(text=words.say("screen.plan.audit_clean"))


def _notes(told: Sequence[Finding], words: Catalogue) -> list[Block]:
    rows = [
        Note(
            slug=one.slug,
            severity=one.severity,
            cause=findings.cause(one, words),
            evidence=findings.evidence(one, words),
            step=findings.step(one, words),
        )
        for one in sorted(told, key=findings.rank)
    ]
    return [Notes(rows=rows)] if rows else []


def _foot(answer: Answer, beside: Beside, words: Catalogue) -> Foot:
    """What could be asked for besides."""
    wanted = (
        ("--calibrate RUN", bool(answer.latency) and not answer.question.tuning.anchors),
        ("--slo chat", bool(answer.latency) and not beside.advice.wishes.objectives),
        ("--advice", bool(beside.advice.options) and not beside.detailed),
        ("--explain", not beside.lines),
    )
    commands = [command for command, offered in wanted if offered]
    return Foot(text="", lead=words.say("screen.plan.more"), commands=commands)
