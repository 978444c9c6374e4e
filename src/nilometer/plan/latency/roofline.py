"""A closed loop of N requests on a model, a device and an engine: TTFT, TPOT, tokens per second, and the wall.

First order. N requests of equal lengths refill their slots at once. Each request sits through the prefills of the N - 1
others once in its life: the share `together` of them before its own first token (requests that come at the same
moment), the rest while it decodes. Each of p pipeline stages is busy with a prompt for a p-th of its prefill, which is
what that holds the others up. What does not fit the slots waits for them. Left out: unlike lengths, bursts of an open
loop, preemption, shared prefixes, the ramp of a short run; those are a simulator's part.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import exp, hypot, log

import msgspec

from nilometer.core.errors import SpecError

from ..interval import Interval
from .factors import Factors, factors
from .step import Step, Wall, decode_step, prefill_step
from .work import Setup

Z_80 = 1.2816
"""Four fifths of a normal distribution lie within so many standard deviations."""


class Lengths(msgspec.Struct, frozen=True):
    """Tokens of the mean request."""

    input: float
    output: float


class Tuning(msgspec.Struct, frozen=True, kw_only=True):
    """What own measurements say of the model: factors on its parts. All 1 = nothing was measured."""

    fixed: float = 1.0
    """On what a step of one sequence costs in any case."""
    batched: float = 1.0
    """The same for steps of several sequences, which some engines serve by other kernels."""
    growing: float = 1.0
    """On what each sequence adds, other requests' prefills included."""
    prefill: float = 1.0
    """On the time to a first token that is not spent waiting for a slot."""
    together: float | None = None
    """The share of the others' prefills that is waited for, in place of the engine's own; see `Factors.together`."""
    partners: float | None = None
    """The same; see `Factors.partners`."""
    tpot_spread: float | None = None
    ttft_spread: float | None = None
    drift: float = 0.0
    """How fast the spread grows away from the loads measured: per unit of ln(N / nearest)."""
    anchors: tuple[float, ...] = ()
    """The loads measured, per copy of the model."""
    dates: tuple[str, ...] = ()
    """When that was; a date that is not known is empty."""

    @property
    def basis(self) -> str:
        """ "your run of DATE"; empty where nothing was measured."""
        told = dict.fromkeys(f"your run of {date}" if date else "your run" for date in self.dates)
        return ", ".join(told) or ("your run" if self.anchors else "")


PRIOR = Tuning()


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds that one load is made of, before any tuning."""

    running: float
    """Requests served at once by one copy."""
    step: Step
    prefill: Step
    others_s: float
    """The prefills of all others that a request sits through."""
    fixed_s: float
    growing_s: float
    """Of an output token: the decode step's own and other requests' prefills."""
    alone_s: float
    """To a first token that waits for nobody."""
    waits_s: float
    """To a first token: the prefills of the others, and the step in progress."""


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """What a load gives. `bound` is the wall that most of a request's time goes to."""

    concurrency: float
    ttft_s: Interval
    tpot_s: Interval
    output_tokens_per_s: Interval
    bound: Wall
    running: float
    """Requests served at once, of all copies."""
    parts: Parts
    prior: str
    """The source of the factors that hold where nothing was measured."""
    basis: str
    """"prior (SOURCE)" or "your run of DATE"."""


def parts_of(setup: Setup, lengths: Lengths, concurrency: float, tuning: Tuning = PRIOR) -> Parts:
    """The parts of a load of `concurrency` requests on ONE copy of the model; of a tuning only the waiting counts."""
    row = factors(setup.engine, setup.device.kind, setup.version)
    running = min(concurrency, float(setup.slots or concurrency))
    step = decode_step(setup, running, lengths.input + lengths.output / 2)
    prefill = prefill_step(setup, lengths.input)
    each = prefill.riding_s / setup.parallel.pipeline
    others = (running - 1) * each
    busy = running * each / (running * each + lengths.output * step.seconds)
    share = max(_together(row, tuning, running, busy), 1 / lengths.output)
    waits = share * others + (step.seconds / 2 if running > 1 else 0.0)
    return Parts(
        running=running,
        step=step,
        prefill=prefill,
        others_s=others,
        fixed_s=step.fixed_s,
        growing_s=step.growing_s + _riding(1 - share, others, lengths.output),
        alone_s=row.request_s + prefill.seconds,
        waits_s=waits,
    )


def _riding(share: float, others: float, output: float) -> float:
    """Of an output token behind the first: this share of the others' prefills, dealt over all of these."""
    return share * others / (output - 1) if share > 0 else 0.0


def _together(row: Factors, tuning: Tuning, running: float, busy: float) -> float:
    if tuning.together is not None:
        return tuning.together
    partners = tuning.partners if tuning.partners is not None else row.partners
    if partners is not None:
        return (running - 1) / (running - 1 + partners) if running > 1 else 0.0
    return row.together + row.together_busy * busy


def latency(setup: Setup, lengths: Lengths, concurrency: float, tuning: Tuning = PRIOR) -> Latency:
    """TTFT, TPOT and output tokens per second of `concurrency` requests in flight on all copies together.

    SpecError for a load or lengths below 1, or a device whose bandwidth is not stated (`device_bandwidth_unknown`).
    """
    _check(setup, lengths, concurrency)
    copies = float(setup.parallel.data)
    each = max(1.0, concurrency / copies)
    made = parts_of(setup, lengths, each, tuning)
    tpot = tuned_tpot(made, tuning)
    first = tuning.prefill * (made.alone_s + made.waits_s)
    cycle = first + (lengths.output - 1) * tpot
    queued = cycle * (each / made.running - 1)
    served = made.running * min(copies, concurrency)
    row = factors(setup.engine, setup.device.kind, setup.version)
    tpot_spread = _spread(tuning.tpot_spread or row.tpot_spread, tuning, each)
    ttft_spread = _spread(tuning.ttft_spread or row.ttft_spread, tuning, each)
    both = hypot(ttft_spread * first, tpot_spread * (cycle - first)) / cycle
    return Latency(
        concurrency=concurrency,
        ttft_s=_interval(first + queued, hypot(ttft_spread * first, both * queued) / (first + queued)),
        tpot_s=_interval(tpot, tpot_spread),
        output_tokens_per_s=_interval(served * lengths.output / cycle, both),
        bound="capacity" if each > made.running else _wall(made, lengths, setup.parallel.pipeline),
        running=served,
        parts=made,
        prior=row.source,
        basis=tuning.basis or f"prior ({row.source})",
    )


def curve(setup: Setup, lengths: Lengths, loads: Iterable[float], tuning: Tuning = PRIOR) -> Sequence[Latency]:
    """A row for each load."""
    return tuple(latency(setup, lengths, load, tuning) for load in loads)


def tuned_tpot(made: Parts, tuning: Tuning) -> float:
    """Seconds of an output token."""
    fixed = tuning.batched if made.running > 1 else tuning.fixed
    return fixed * made.fixed_s + tuning.growing * made.growing_s


def _check(setup: Setup, lengths: Lengths, concurrency: float) -> None:
    for key, value in (
        ("concurrency", concurrency),
        ("input_tokens", lengths.input),
        ("output_tokens", lengths.output),
    ):
        if not value >= 1:
            raise SpecError("plan_number_too_small", key=key, value=value, least=1)
    if setup.device.bandwidth_bytes_per_s is None:
        raise SpecError("device_bandwidth_unknown", device=setup.device.name)


def _wall(made: Parts, lengths: Lengths, stages: int) -> Wall:
    """Over a request's life: its decode steps, its own prefill, and those of all that run beside it."""
    spent = {wall: lengths.output * seconds for wall, seconds in made.step.walls().items()}
    prefills = 1 + (made.running - 1) / stages
    spent["compute"] += prefills * (made.prefill.compute_s + made.prefill.attention_s)
    spent["interconnect"] += prefills * made.prefill.sending_s
    return max(spent, key=lambda wall: spent[wall])


def _spread(at_anchor: float, tuning: Tuning, each: float) -> float:
    if not tuning.anchors:
        return at_anchor
    return hypot(at_anchor, tuning.drift * min(abs(log(each / anchor)) for anchor in tuning.anchors))


def _interval(mid: float, spread: float) -> Interval:
    factor = exp(Z_80 * spread)
    return Interval(mid / factor, mid, mid * factor)
