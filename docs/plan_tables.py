"""The tables that plans lean on, for the reference: known models, devices, and each plan beside what was measured."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.plan_latency import plan_latency
from benchmarks.plan_memory import plan_memory
from benchmarks.result import Row

from nilometer.plan.devices import DEVICES, Device
from nilometer.plan.memory.kv import bytes_per_token, cache, cache_precision
from nilometer.plan.model.parameters import parameters
from nilometer.sources.models.known import shape_of_row, table
from nilometer.text import units
from nilometer.text.i18n import Catalogue

from .markdown import row_of

_FLOPS = ("fp16", "fp8", "int8", "fp4")


def models(words: Catalogue) -> Iterator[str]:
    """Every known model: its size as computed and as published, what a token caches, and where its facts are from."""
    yield from _head(words, "model", "parameters", "published", "layers", "cache", "context", "source")
    for row in table():
        shape = shape_of_row(row)
        yield row_of(
            f"`{row.name}`",
            units.count(parameters(shape)),
            units.count(row.published),
            str(shape.layers),
            units.size(bytes_per_token(cache(shape), cache_precision())),
            units.count(shape.max_context),
            "; ".join(filter(None, (row.source, row.note))),
        )


def devices(words: Catalogue) -> Iterator[str]:
    """Every device: memory as a program sees it, rates of dense matrices, link, power, confidence, source."""
    yield from _head(words, "device", "memory", "bandwidth", *_FLOPS, "link", "power", "confidence", "source")
    for one in DEVICES.values():
        yield row_of(f"`{one.name}`", _memory(one), _giga(one.bandwidth_bytes_per_s), *_rates(one), *_rest(one))


def _memory(one: Device) -> str:
    shown = one.shown_bytes
    return ("" if shown.known else "~") + units.size(shown.bytes or None)


def _rates(one: Device) -> Iterator[str]:
    return (units.rate(one.flops[key] / 1e12 if key in one.flops else None) for key in _FLOPS)


def _rest(one: Device) -> tuple[str, ...]:
    sources = "; ".join(filter(None, (one.source, one.note, one.visible_source)))
    return _giga(one.link_bytes_per_s), units.count(one.power_w), one.confidence, sources


def _giga(per_s: float | None) -> str:
    return units.count(None if per_s is None else per_s / 1e9)


def accuracy(words: Catalogue) -> Iterator[str]:
    """Each plan beside what an engine's log or a published measurement said, good rows and bad."""
    for title, rows in (("doc.plan-accuracy.memory", plan_memory()), ("doc.plan-accuracy.latency", plan_latency())):
        yield f"\n## {words.say(title)}\n"
        yield from _head(words, "what", "goal", "off", "met", "note")
        for row in sorted(rows, key=lambda one: one.met is None):
            yield row_of(row.what, row.goal, _figure(row), _met(row, words), row.note)


def _figure(row: Row) -> str:
    if isinstance(row.measured, str) or row.measured is None:
        return row.measured or units.NOT_MEASURED
    return f"{row.measured:+.1f} {row.unit}" if row.goal == "-" else f"{abs(row.measured):.3g} {row.unit}"


def _met(row: Row, words: Catalogue) -> str:
    return "" if row.met is None else words.say("doc.met" if row.met else "doc.missed")


def _head(words: Catalogue, *columns: str) -> Iterator[str]:
    yield row_of(*(words.say(f"doc.column.{name}") for name in columns))
    yield row_of(*["---"] * len(columns))
