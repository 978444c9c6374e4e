"""From one's own measurements to a `Tuning`: one scales the model, two tell a step's cost from what a sequence adds.

One measurement: one factor on TPOT, one on TTFT. Two or more loads: the fixed part of a step and what grows with the
batch are fitted apart (least squares of the relative error, neither below 0). Where an engine serves a single sequence
by kernels of its own (llama.cpp on a processor), a run of one request tells of that step, the others of steps of
several; what a sequence adds is then taken from the prefill of the request that was alone, until there are two loads
of several requests. A request that was alone also tells how many of the others' prefills one waits for under load.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import msgspec

from nilometer.core.errors import SpecError

from .factors import factors
from .roofline import PRIOR, Lengths, Parts, Tuning, parts_of
from .work import Setup

SPREAD_ONE, SPREAD_MORE = 0.10, 0.08
"""Near a load that was measured: what other lengths and another day change. Source: `make bench-plan`."""
DRIFT_ONE, DRIFT_MORE = 0.10, 0.08
TTFT_SPREAD = 0.35


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One run of one's own in a closed loop. Means of its requests; None = not measured."""

    concurrency: float
    input_tokens: float
    output_tokens: float
    tpot_ms: float
    ttft_ms: float | None = None
    slots: int | None = None
    """How many requests the engine served at once, where it said so."""
    when: str = ""


class _Point(msgspec.Struct, frozen=True):
    setup: Setup
    lengths: Lengths
    each: float
    run: Measured

    def parts(self, tuning: Tuning) -> Parts:
        return parts_of(self.setup, self.lengths, self.each, tuning)

    @property
    def tpot_s(self) -> float:
        return self.run.tpot_ms / 1e3


def calibrate(setup: Setup, runs: Sequence[Measured]) -> Tuning:
    """The tuning under which the model gives what was measured; SpecError `calibration_empty`, `calibration_unusable`.

    One run is reproduced exactly, two are where one pair of parts >= 0 can do so.
    """
    if not runs:
        raise SpecError("calibration_empty")
    points = sorted((_point(setup, run) for run in runs), key=lambda point: point.each)
    waiting = _waiting(points)
    prefill = _prefill(points, waiting)
    made = [(point, point.parts(waiting)) for point in points]
    several = len({part.running for _, part in made}) > 1
    fixed, batched, growing = _tpot(made, prefill)
    return msgspec.structs.replace(
        waiting,
        fixed=fixed,
        batched=batched,
        growing=growing,
        prefill=prefill,
        tpot_spread=SPREAD_MORE if several else SPREAD_ONE,
        ttft_spread=TTFT_SPREAD,
        drift=DRIFT_MORE if several else DRIFT_ONE,
        anchors=tuple(sorted({part.running for _, part in made})),
        dates=tuple(dict.fromkeys(run.when for run in runs)),
    )


def _point(setup: Setup, run: Measured) -> _Point:
    for key, value in (
        ("tpot_ms", run.tpot_ms),
        ("concurrency", run.concurrency),
        ("output_tokens", run.output_tokens),
    ):
        if not 0 < value < float("inf"):
            raise SpecError("calibration_unusable", key=key, value=value)
    slots = run.slots if run.slots is not None else setup.slots
    lengths = Lengths(max(1.0, run.input_tokens), max(1.0, run.output_tokens))
    each = max(1.0, run.concurrency / setup.parallel.data)
    return _Point(msgspec.structs.replace(setup, slots=slots), lengths, each, run)


def _first_s(point: _Point) -> float | None:
    """The part of a measured TTFT that was not spent waiting for a slot; None = none is left, or not measured."""
    if point.run.ttft_ms is None:
        return None
    per_slot = point.each / min(point.each, float(point.setup.slots or point.each))
    decoding = (point.lengths.output - 1) * point.tpot_s
    left = (point.run.ttft_ms / 1e3 - decoding * (per_slot - 1)) / per_slot
    return left if left > 0 else None


def _prefill(points: Sequence[_Point], waiting: Tuning) -> float:
    """By the smallest load whose TTFT is known."""
    for point in points:
        if (first := _first_s(point)) is not None:
            made = point.parts(waiting)
            return first / (made.alone_s + made.waits_s)
    return 1.0


def _waiting(points: Sequence[_Point]) -> Tuning:
    """Of others' prefills the share waited for: by a request that was alone and the next larger load."""
    alone = _first_s(points[0])
    if alone is None or points[0].each > 1:
        return PRIOR
    scale = alone / points[0].parts(PRIOR).alone_s
    for point in points[1:]:
        first, made = _first_s(point), point.parts(PRIOR)
        if first is not None and made.others_s > 0:
            step = made.step.seconds / 2
            share = min(1.0, max(0.0, (first / scale - made.alone_s - step) / made.others_s))
            return _share(point, share, made.running)
    return PRIOR


def _share(point: _Point, share: float, running: float) -> Tuning:
    """That share at this load, in the form in which the engine's own is known.

    Where that form reaches to other loads, one run says it no better than the row does: their geometric mean.
    """
    known = factors(point.setup.engine, point.setup.device.kind, point.setup.version).partners
    if known is None or share in (0.0, 1.0):
        return Tuning(together=share)
    return Tuning(partners=sqrt(known * (running - 1) * (1 - share) / share))


def _tpot(made: Sequence[tuple[_Point, Parts]], prefill: float) -> tuple[float, float, float]:
    """Factors on the fixed part of single steps, of batched ones, and on what grows."""
    setup = made[0][0].setup
    row = factors(setup.engine, setup.device.kind, setup.version)
    lines = [(part.fixed_s, part.growing_s, point.tpot_s) for point, part in made]
    if row.batched_weights == 1.0 or all(part.running > 1 for _, part in made):
        fixed, growing = _fitted(lines)
        return fixed, fixed, growing
    single = [line for line, (_, part) in zip(lines, made, strict=True) if part.running <= 1]
    more = [line for line, (_, part) in zip(lines, made, strict=True) if part.running > 1]
    if len({part.running for _, part in made if part.running > 1}) > 1:
        batched, growing = _fitted(more)
        return _fixed(single, growing), batched, growing
    least = min(tpot / grown for _, grown, tpot in lines if grown > 0)
    growing = prefill if prefill < least else _scale(lines)
    fixed = _fixed(single, growing)
    return fixed, _fixed(more, growing) if more else fixed, growing


def _fixed(lines: Sequence[tuple[float, float, float]], growing: float) -> float:
    """The mean factor on the fixed part that is left, what grows being known."""
    return max(0.0, sum((tpot - growing * grown) / fixed for fixed, grown, tpot in lines) / len(lines))


def _scale(lines: Sequence[tuple[float, float, float]]) -> float:
    """One factor on both."""
    both = [(fixed + grown) / tpot for fixed, grown, tpot in lines]
    return sum(both) / sum(one * one for one in both)


def _fitted(lines: Sequence[tuple[float, float, float]]) -> tuple[float, float]:
    """(a, b) >= 0 with the least sum of ((a fixed + b growing) / TPOT - 1)^2; equal where one load is all there is."""
    first = [fixed / tpot for fixed, _, tpot in lines]
    second = [grown / tpot for _, grown, tpot in lines]
    aa, bb = sum(x * x for x in first), sum(x * x for x in second)
    ab = sum(x * y for x, y in zip(first, second, strict=True))
    a, b = sum(first), sum(second)
    determinant = aa * bb - ab * ab
    if determinant <= 1e-9 * aa * bb:
        return (_scale(lines),) * 2
    fixed, grown = (a * bb - b * ab) / determinant, (b * aa - a * ab) / determinant
    if fixed < 0:
        return 0.0, b / bb
    return (fixed, grown) if grown >= 0 else (a / aa, 0.0)
