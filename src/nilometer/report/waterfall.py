"""The slowest requests, each a bar in stretches: waiting to be sent, connecting, to the first token, decoding, rest.

Times are those of `metrics.request`: connecting comes before `sent`, and is no part of E2E where nothing was due.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from nilometer.core.clock import NS_PER_MS, NS_PER_S
from nilometer.core.record import Record
from nilometer.core.run import Run
from nilometer.metrics import request
from nilometer.text import units
from nilometer.text.i18n import Catalogue

from .document import Cell, Column, Key, Part, Table, Waterfall

STAGES = ("lag", "connect", "first", "whole", "decode", "rest")
_FAILED = "!"


class Stage(NamedTuple):
    """What a request did for so long."""

    look: str
    ns: int


def stages(record: Record) -> list[Stage]:
    """The stretches of one request in their order, none of them empty; together E2E and what of connecting is before.

    A request that brought no token has one stretch from `sent` to its end.
    """
    connect = request.connect_ns(record) or 0
    lag = max((request.start_lag_ns(record) or 0) - connect, 0)
    found = [Stage("lag", lag), Stage("connect", connect)]
    if record.sent_ns is not None and record.end_ns is not None:
        first, last = record.first_token_ns, record.last_token_ns
        if first is None or last is None:
            found.append(Stage("whole", record.end_ns - record.sent_ns))
        else:
            found += [Stage("first", first - record.sent_ns), Stage("decode", last - first)]
            found.append(Stage("rest", record.end_ns - last))
    return [stage for stage in found if stage.ns > 0]


def waterfall(run: Run, slowest: Sequence[Record], words: Catalogue) -> Waterfall:
    """The bars of these requests of `run`, all on one scale, with their figures in a table."""
    all_stages = [stages(record) for record in slowest]
    longest = max((sum(stage.ns for stage in one) for one in all_stages), default=0) or 1
    seen = {stage.look for one in all_stages for stage in one}
    scale = units.latency_scale(_ms(request.e2e_ns(record)) for record in slowest)
    failed = any(record.outcome != "ok" for record in slowest)
    return Waterfall(
        caption=words.say("screen.waterfall.caption", n=len(slowest)),
        keys=[Key(look, words.say(f"screen.look.{look}")) for look in STAGES if look in seen],
        table=Table(
            columns=list(_columns(scale, words)),
            rows=[_row(run, record, scale) for record in slowest],
            legend=[f"{_FAILED} {words.say('screen.waterfall.failed')}"] if failed else [],
        ),
        bars=[list(_parts(one, longest)) for one in all_stages],
        bar_title=words.say("screen.waterfall.bar"),
        scale=units.latency(longest / NS_PER_MS),
    )


def _parts(found: Sequence[Stage], longest: int) -> Iterator[Part]:
    at = 0
    for stage in found:
        yield Part(stage.look, at / longest, stage.ns / longest)
        at += stage.ns


def _columns(scale: units.Scale, words: Catalogue) -> Iterator[Column]:
    yield Column(words.say("screen.waterfall.started"), "decimal", "s")
    yield Column(words.say("screen.fact.input"), "right", words.say("screen.waterfall.tokens"))
    yield Column(words.say("screen.fact.output"), "right", words.say("screen.waterfall.tokens"))
    yield Column(words.say("short.ttft"), "decimal", scale.symbol)
    yield Column(words.say("short.tpot"), "decimal", "ms")
    yield Column(words.say("short.e2e"), "decimal", scale.symbol)


def _row(run: Run, record: Record, scale: units.Scale) -> list[Cell]:
    start_ns = record.start_ns
    started_s = None if start_ns is None else (start_ns - run.phases.measured_ns) / NS_PER_S
    return [
        Cell(units.fixed(started_s, 1), "" if record.outcome == "ok" else _FAILED),
        Cell(units.count(record.prompt_tokens)),
        Cell(units.count(record.output_tokens)),
        Cell(scale.show(_ms(request.ttft_ns(record)))),
        Cell(units.fixed(_ms(request.tpot_ns(record)), 1)),
        Cell(scale.show(_ms(request.e2e_ns(record)))),
    ]


def _ms(value_ns: float | None) -> float | None:
    return None if value_ns is None else value_ns / NS_PER_MS
