"""The machine form of a plan: the contract's Plan object, its keys in the contract's order, times in ms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from nilometer.plan.answer import Answer
from nilometer.plan.devices import Device
from nilometer.plan.interval import Interval
from nilometer.plan.latency.roofline import Latency
from nilometer.plan.memory.budget import Memory, Stage
from nilometer.plan.model.parameters import parameters

from .machine import findings_of, head
from .plan_advice_machine import advice_objects

if TYPE_CHECKING:
    from nilometer.report.plan import Beside

    from .planning import Asked


def plan_object(asked: Asked, answer: Answer, beside: Beside) -> dict[str, object]:
    """The whole of it; None where there is no device, or the shape is known by its cache alone."""
    question, plan = answer.question, answer.memory
    return {
        **head("plan"),
        "model": _model(asked, answer),
        "device": None if question.device is None else _device(question.device),
        "engine": {"name": question.engine, "version": plan.version if plan else question.version},
        "parallel": msgspec.to_builtins(question.parallel),
        "requests": {
            "concurrency": question.concurrency,
            "context": question.context,
            "input_tokens": question.lengths.input,
            "output_tokens": question.lengths.output,
            "lengths_from": asked.lengths_from,
        },
        "fits": answer.fits,
        "weights": {"bytes": _whole(answer.weights_bytes), "rank_bytes": _whole(answer.rank_bytes)},
        "kv": _kv(answer, plan),
        "memory": None if plan is None else [_stage(stage) for stage in plan.stages],
        "latency": [_latency(row) for row in answer.latency],
        "greatest_throughput": None if answer.full is None else _latency(answer.full),
        "crossover_batch": answer.crossover,
        **advice_objects(beside.advice),
        "audit": None if beside.traps is None else findings_of(beside.traps),
        "findings": findings_of([*(() if plan is None else plan.notes), *beside.notes]),
    }


def _model(asked: Asked, answer: Answer) -> dict[str, object]:
    question, read = answer.question, asked.read
    known = answer.weights_bytes is not None
    return {
        "name": question.shape.name or None,
        "origin": "numbers" if read is None else read.origin,
        "source": None if read is None else read.source,
        "precision": question.precision.name,
        "parameters": parameters(question.shape) if known else None,
        "max_context": question.shape.max_context,
        "left_out": list(question.shape.left_out),
    }


def _device(device: Device) -> dict[str, object]:
    return {key: value for key, value in msgspec.to_builtins(device).items() if key != "note" or value}


def _kv(answer: Answer, plan: Memory | None) -> dict[str, object]:
    return {
        "bytes_per_token": _exact(answer.kv_bytes_per_token),
        "bytes": _exact(answer.kv_bytes),
        "tokens": None if plan is None else round(plan.tokens.mid),
        "max_concurrency": None if plan is None else plan.concurrency.mid,
        "rank_bytes_per_token": None if plan is None else _exact(plan.bytes_per_token),
        "pool_bytes": None if plan is None else _interval(plan.kv_bytes),
        "tokens_interval": None if plan is None else _interval(plan.tokens),
        "max_concurrency_interval": None if plan is None else _interval(plan.concurrency),
        "fits_of_these_lengths": answer.slots,
    }


def _stage(stage: Stage) -> dict[str, object]:
    return {
        "usable_bytes": stage.usable_bytes,
        "kv_bytes": _interval(stage.kv_bytes),
        "terms": [
            {
                "name": term.name,
                "bytes": _interval(term.bytes),
                "formula": term.formula,
                "values": dict(term.values),
                "releases": term.span or None,
                "source": term.source or None,
            }
            for term in stage.terms
        ],
    }


def _latency(row: Latency) -> dict[str, object]:
    return {
        "concurrency": _exact(row.concurrency),
        "ttft_ms": _interval(row.ttft_s.times(1e3)),
        "tpot_ms": _interval(row.tpot_s.times(1e3)),
        "output_tokens_per_s": _interval(row.output_tokens_per_s),
        "bound": row.bound,
        "running": _exact(row.running),
        "basis": row.basis,
    }


def _interval(figure: Interval) -> dict[str, float]:
    return {"low": figure.low, "mid": figure.mid, "high": figure.high}


def _exact(value: float) -> float | int:
    """A whole number without its idle point."""
    return int(value) if value == int(value) else value


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
