"""Speculative decoding: tokens a round, what it gains at a batch, the acceptance below which it loses.

A round drafts k tokens and checks them in one step of the model: a token is kept while all before it were, each with
the chance a, and the model's own next token always comes beside them. Drafts cost c of a step each. At a batch the
checking step is no longer free: it multiplies (k + 1) B tokens, while the cache of B sequences is read once.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from ..interval import Interval
from ..latency.roofline import PRIOR, Latency, Lengths, Tuning, tuned_tpot
from ..latency.step import Step, decode_step
from ..latency.work import Setup
from ..model.parallel import Parallel
from .drafters import Drafter

MOST_DRAFTED = 16
GUIDE_GOOD, GUIDE_OFF = 0.6, 0.4
"""The guide's rule: 60 % acceptance is good, below 40 % it is to be switched off. It names no draft cost."""
USUAL_DRAFTED = 4
"""Drafted tokens a round where none are named: engines are mostly started with so many."""


def tokens_per_round(acceptance: float, drafted: int) -> float:
    """(1 - a^(k+1)) / (1 - a): 1 token where nothing is kept, k + 1 where all is (Leviathan et al., 2211.17192)."""
    return sum(acceptance**place for place in range(drafted + 1))


def acceptance_for(tokens: float, drafted: int) -> float | None:
    """The acceptance at which a round makes so many tokens; None where not even full acceptance does."""
    if tokens > drafted + 1:
        return None
    low, high = 0.0, 1.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if tokens_per_round(middle, drafted) < tokens else (low, middle)
    return high


def acceptance_of_share(share: float, drafted: int) -> float:
    """The chance of a token after kept ones, from the share of drafted tokens that was kept, as servers report it.

    The share counts what was drafted behind a refused token too, so it is the smaller of the two.
    """
    found = acceptance_for(1 + share * drafted, drafted)
    return 1.0 if found is None else found


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds of a round of `drafted` tokens for each of `batch` sequences, and of the plain step in its place."""

    drafted: int
    batch: float
    step_s: float
    draft_s: float
    """Of all drafts."""
    check_s: float

    @property
    def cost(self) -> float:
        """c: one draft, in plain steps."""
        return self.draft_s / self.drafted / self.step_s

    @property
    def checking(self) -> float:
        """The checking step, in plain steps: 1 = free."""
        return self.check_s / self.step_s

    def speedup(self, acceptance: float) -> float:
        """Plain steps that a round stands for, over what it takes."""
        return tokens_per_round(acceptance, self.drafted) * self.step_s / (self.draft_s + self.check_s)

    @property
    def break_even(self) -> float | None:
        """The acceptance below which it loses; None = it loses at any."""
        return acceptance_for((self.draft_s + self.check_s) / self.step_s, self.drafted)


def check_step(setup: Setup, drafted: int, batch: float, context: float) -> Step:
    """The step that checks `drafted` tokens of each sequence and makes one of its own.

    Weights (of a mixture: the experts that any of the (k + 1) B tokens chose) and operations are those of as many
    sequences; the cache is read once, and what the host does for a sequence it does once. With pipeline stages the
    tokens of a sequence stay together, however few sequences there are.
    """
    wide = decode_step(setup, (drafted + 1) * max(batch, float(setup.parallel.pipeline)), context)
    plain = decode_step(setup, batch, context)
    return replace(wide, cache_s=plain.cache_s, overhead_s=plain.overhead_s, host_s=plain.host_s)


def one_round(setup: Setup, drafter: Drafter, drafted: int, batch: float, context: float) -> Round:
    """A round on ONE copy of the model; the drafts' steps are those of the drafter's own shape, where it has one."""
    step = decode_step(setup, batch, context)
    return Round(
        drafted=drafted,
        batch=batch,
        step_s=step.seconds,
        draft_s=drafted * draft_seconds(setup, drafter, batch, context, step),
        check_s=check_step(setup, drafted, batch, context).seconds,
    )


def draft_seconds(setup: Setup, drafter: Drafter, batch: float, context: float, step: Step) -> float:
    """One draft of one token for each sequence: device time alone, as drafts run without the host's scheduling."""
    if drafter.shape is None or drafter.precision is None:
        return drafter.share * step.seconds
    alone = replace(setup.parallel, pipeline=1, expert=1)
    parallel = _dividing(alone, drafter)
    own = replace(setup, shape=drafter.shape, precision=drafter.precision, parallel=parallel, weight_scale=1.0)
    return decode_step(own, batch, context).device_s


def _dividing(split: Parallel, drafter: Drafter) -> Parallel:
    """Its heads may not divide by as many ranks as the model's: then each rank drafts the whole."""
    heads = drafter.heads
    return split if heads is None or heads % split.tensor == 0 else replace(split, tensor=1)


class Speculation(msgspec.Struct, frozen=True, kw_only=True):
    """What a drafter brings at a load. `gain`: of the decode step's speed, over the range of acceptance."""

    drafter: Drafter
    round: Round
    acceptance: Interval
    acceptance_source: str
    """Empty = the user's own."""
    gain: Interval
    alone_gain: float
    """The same for a single sequence, at the middle acceptance and the k that suits it there."""
    break_even: float | None
    guide: str
    """What the guide's rule says to the middle acceptance: good, off, or between."""

    @property
    def guide_agrees(self) -> bool | None:
        """Whether that is what the arithmetic says too; None where the rule says neither."""
        if self.guide == "between":
            return None
        return (self.guide == "good") == (self.gain.mid > 1)


def speculation(
    setup: Setup,
    drafter: Drafter,
    batch: float,
    context: float,
    *,
    acceptance: float | None = None,
    drafted: int | None = None,
) -> Speculation:
    """At `batch` sequences on one copy of the model, of `context` tokens each.

    `acceptance`: the user's own chance of a token after kept ones; else the drafter's range. `drafted`: tokens a
    round; else the number that gains most at the middle acceptance.
    """
    known = drafter.acceptance if acceptance is None else Interval(acceptance, acceptance, acceptance)
    tried = range(1, MOST_DRAFTED + 1) if drafted is None else (drafted,)
    best = _best(tried, known.mid, lambda k: one_round(setup, drafter, k, batch, context))
    alone = _best(tried, known.mid, lambda k: one_round(setup, drafter, k, 1.0, context))
    return Speculation(
        drafter=drafter,
        round=best,
        acceptance=known,
        acceptance_source=drafter.acceptance_source if acceptance is None else "",
        gain=Interval(best.speedup(known.low), best.speedup(known.mid), best.speedup(known.high)),
        alone_gain=alone.speedup(known.mid),
        break_even=best.break_even,
        guide=guide_says(known.mid),
    )


def _best(tried: range | tuple[int], acceptance: float, made: Callable[[int], Round]) -> Round:
    return max(map(made, tried), key=lambda one: one.speedup(acceptance))


def guide_says(acceptance: float) -> str:
    """good, off or between."""
    if acceptance >= GUIDE_GOOD:
        return "good"
    return "off" if acceptance < GUIDE_OFF else "between"


def sped_up(row: Latency, made: Speculation, lengths: Lengths, tuning: Tuning = PRIOR) -> Latency:
    """A load with the drafter at work: only the decode step's part of TPOT shrinks, other requests' prefills stay.

    Where requests queue for slots, these come free as much sooner: TTFT shrinks with the cycle. The interval spans the
    forecast's own and that of the acceptance together.
    """
    share = tuned_step(row, tuning) / tuned_tpot(row.parts, tuning)
    left = Interval(*(_left(share, gain) for gain in (made.gain.high, made.gain.mid, made.gain.low)))
    over, decoding = max(1.0, row.concurrency / row.running), (lengths.output - 1) * row.tpot_s.mid
    cycle = (row.ttft_s.mid + decoding) / over
    after = Interval(*(cycle - decoding * (1 - each) for each in (left.low, left.mid, left.high)))
    tpot, tokens = row.tpot_s, row.output_tokens_per_s
    return replace(
        row,
        tpot_s=Interval(tpot.low * left.low, tpot.mid * left.mid, tpot.high * left.high),
        ttft_s=row.ttft_s.times(1 - (over - 1) * (cycle - after.mid) / row.ttft_s.mid),
        output_tokens_per_s=Interval(
            tokens.low * cycle / after.high, tokens.mid * cycle / after.mid, tokens.high * cycle / after.low
        ),
    )


def tuned_step(row: Latency, tuning: Tuning) -> float:
    """Seconds of a decode step by itself, as own measurements correct it."""
    step = row.parts.step
    return (tuning.batched if row.parts.running > 1 else tuning.fixed) * step.fixed_s + tuning.growing * step.growing_s


def _left(share: float, gain: float) -> float:
    """What is left of TPOT where this share of it runs so many times as fast."""
    return 1 - share + share / gain
