"""The published measurements that plans of latency are held to, with the shapes of their models from the table."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from nilometer.plan.devices import device
from nilometer.plan.latency.roofline import PRIOR, Latency, Lengths, Tuning, latency
from nilometer.plan.latency.throughput import held_requests, max_throughput
from nilometer.plan.latency.work import Setup
from nilometer.plan.memory.kv import cache_precision
from nilometer.plan.model.parallel import Parallel
from nilometer.plan.model.precision import precision_of
from nilometer.plan.model.weights import weight_bytes
from nilometer.sources.models.known import look_up, shape_of_row

DATA = Path(__file__).parent / "data" / "plan_latency.csv"
KV_SHARE = 0.9
"""Of what weights leave on a device: the rest is activations, graphs, the driver."""


class Published(NamedTuple):
    """One measurement. What a source does not state is None."""

    id: str
    kind: str
    engine: str
    version: str
    model: str
    setup: Setup
    lengths: Lengths
    concurrency: float | None
    output_tokens_per_s: float | None
    ttft_ms: float | None
    tpot_ms: float | None
    assumed: str
    doubt: str
    source: str

    @property
    def group(self) -> tuple[object, ...]:
        """What the goal of a calibrated plan counts as one configuration; its rows may be of several devices."""
        split = self.setup.parallel
        return (self.model, self.engine, self.version, split.tensor, split.expert)


@cache
def published() -> tuple[Published, ...]:
    """All rows, the doubtful ones too."""
    with DATA.open(newline="", encoding="utf-8") as lines:
        return tuple(_read(row) for row in csv.DictReader(lines))


def _number(text: str) -> float | None:
    return float(text) if text else None


def _read(row: Mapping[str, str]) -> Published:
    split = Parallel(tensor=int(row["tp"]), pipeline=int(row["pp"]), expert=int(row["ep"]), data=int(row["dp"]))
    setup = Setup(
        shape=shape_of_row(look_up(row["shape"]).row),
        device=device(row["hw"]),
        precision=precision_of(row["precision"]),
        cached=cache_precision(row["kv_precision"]),
        parallel=split,
        engine=row["engine"],
        version=row["engine_version"] or None,
    )
    each = _number(row["concurrency"])
    return Published(
        id=row["id"],
        kind=row["kind"],
        engine=row["engine"],
        version=row["engine_version"],
        model=row["model"],
        setup=setup,
        lengths=Lengths(float(row["input_tokens"]), float(row["output_tokens"])),
        concurrency=None if each is None else each * split.data,
        output_tokens_per_s=_number(row["output_tokens_per_s"]),
        ttft_ms=_number(row["ttft_ms"]),
        tpot_ms=_number(row["tpot_ms"]),
        assumed=row["assumed"],
        doubt=row["doubt"],
        source=row["url"],
    )


def kv_room_bytes(setup: Setup) -> float:
    """KV cache of one rank by the rule of thumb of this bench; the plan of memory knows better."""
    has = setup.device.shown_bytes.bytes
    return KV_SHARE * max(0.0, has - weight_bytes(setup.shape, setup.precision, setup.parallel))


def with_slots(row: Published) -> Setup:
    """The setup with as many slots as its KV cache holds."""
    held = held_requests(row.setup, row.lengths, kv_room_bytes(row.setup))
    return msgspec.structs.replace(row.setup, slots=held)


def planned(row: Published, tuning: Tuning = PRIOR) -> Latency | None:
    """The plan of a row; None where too little is stated for one."""
    if row.kind == "throughput":
        return max_throughput(row.setup, row.lengths, kv_room_bytes(row.setup), tuning=tuning)
    if row.concurrency is None:
        return None
    return latency(with_slots(row), row.lengths, row.concurrency, tuning)
