"""What must be true of a play for its label to be: by the machine's own state, and where that has none by what it did.

None of this is seen by a diagnosis, and none of it uses what one computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, log
from statistics import mean, median

from nilometer.core.record import Record

from .play import Level
from .service import Draft


def clean(d: Draft, levels: Sequence[Level]) -> bool:
    """No slot, pool, or processor of the engine is a limit at any level."""
    one_by_one = all(
        one.truth.full_share < 0.1 and one.truth.blocked_share < 0.3 and not one.truth.preemptions for one in levels
    )
    return one_by_one and len(levels) == len(d.levels) and elasticity(levels) < 0.45


def well(d: Draft, levels: Sequence[Level]) -> bool:
    """The top was reached, and throughput still grew there."""
    return len(levels) == len(d.levels)


def queue(d: Draft, levels: Sequence[Level]) -> bool:
    top = levels[-1].truth
    return top.full_share > 0.5 and top.preemptions == 0 and all(one.truth.blocked_share < 0.1 for one in levels[1:])


def decode_compute(d: Draft, levels: Sequence[Level]) -> bool:
    top = levels[-1].truth
    return top.full_share == 0 and top.preemptions == 0 and top.blocked_share < 0.3 and elasticity(levels[-2:]) > 0.7


def prefill(d: Draft, levels: Sequence[Level]) -> bool:
    """Prompts take most of the engine's time at the top, by its own cost."""
    rate = len(_ok(levels[-1])) / levels[-1].truth.seconds
    top = levels[-1].truth
    return rate * d.prompt * d.prefill_s * _slowness(d) > 0.65 and top.full_share == 0 and top.preemptions == 0


def _slowness(d: Draft) -> float:
    """Of a machine with slow spells, in the mean."""
    faults = d.faults
    return 1 + (faults.spell_slowness - 1) * faults.spell_s / max(faults.spell_s + faults.quiet_s, 1e-9)


def stalls(d: Draft, levels: Sequence[Level]) -> bool:
    """A prompt takes as long as several steps."""
    return d.prompt * d.prefill_s > 7 * d.tpot and len(levels) > 1


def kv_capacity(d: Draft, levels: Sequence[Level]) -> bool:
    top = levels[-1].truth
    return top.full_share < 0.05 and top.held_share > 0.6 and (top.preemptions > 3 or top.blocked_share > 0.5)


def reserved(d: Draft, levels: Sequence[Level]) -> bool:
    top = levels[-1].truth
    return top.blocked_share > 0.5 and top.full_share == 0 and top.preemptions == 0 and top.held_share < 0.5


def static_batching(d: Draft, levels: Sequence[Level]) -> bool:
    return levels[-1].truth.users >= 8 and levels[-1].truth.waiting_share > 0.5


def adapters(d: Draft, levels: Sequence[Level]) -> bool:
    return d.adapters > d.adapter_slots and d.adapter_swap_s > 4 * d.tpot


def cold_start(d: Draft, levels: Sequence[Level]) -> bool:
    first = _by_sending(levels[0])
    later = median(_ttft(one) for one in first[d.faults.cold_requests :])
    return mean(_ttft(one) for one in first[:3]) > 4 * later


def front_end(d: Draft, levels: Sequence[Level]) -> bool:
    """One thread is busy nearly all the time at the top."""
    ok, seconds = _ok(levels[-1]), levels[-1].truth.seconds
    each = d.faults.front_s + d.faults.front_token_s * d.prompt
    return len(ok) / seconds * each > 0.85 and levels[-1].truth.full_share == 0


def rate_limit(d: Draft, levels: Sequence[Level]) -> bool:
    refused = sum(one.status == 429 for one in levels[-1].records)
    return refused > 0.05 * len(levels[-1].records)


def failures(d: Draft, levels: Sequence[Level]) -> bool:
    """At each level some were lost, whether the client saw it or a gateway asked again."""
    if d.faults.timeout_s is None:
        return all(sum(one.outcome == "error" for one in level.records) > 1 for level in levels)
    limit = d.faults.timeout_s
    return all(sum(_ttft(one) > limit for one in _ok(level)) > 1 for level in levels)


def noisy(d: Draft, levels: Sequence[Level]) -> bool:
    return d.faults.spell_slowness > 1.8


def growing_state(d: Draft, levels: Sequence[Level]) -> bool:
    """A level ends at least 8 % slower than it began."""
    return all(d.faults.leak_per_s * one.truth.seconds > 0.08 for one in levels[:1])


def throttling(d: Draft, levels: Sequence[Level]) -> bool:
    if d.faults.throttle_after_s < inf:
        first = levels[0].truth
        return 0.2 * first.seconds < d.faults.throttle_after_s < 0.8 * first.seconds and (
            d.faults.throttle_slowness > 1.25
        )
    return d.faults.duty_share < 0.8 and d.faults.duty_period_s * (1 - d.faults.duty_share) > 0.02


def imbalance(d: Draft, levels: Sequence[Level]) -> bool:
    return max(d.faults.replica_slowness, default=1.0) > 1.7


def short_answers(d: Draft, levels: Sequence[Level]) -> bool:
    ok = _ok(levels[-1])
    return median((one.output_tokens or 0) / (one.asked_output or 1) for one in ok) < 0.5


def too_short(d: Draft, levels: Sequence[Level]) -> bool:
    """Fewer than three waves and fewer than 20 requests at each level."""
    return all(len(_ok(one)) < max(20, 3 * one.truth.users) and len(_ok(one)) >= 3 for one in levels)


def generator_limited(d: Draft, levels: Sequence[Level]) -> bool:
    return d.client.away_share > 0.2


def client_pool(d: Draft, levels: Sequence[Level]) -> bool:
    pool = d.client.path_pool or d.client.own_pool or inf
    return levels[-1].truth.users >= 1.3 * pool and levels[-1].truth.full_share == 0


def prefix_flattered(d: Draft, levels: Sequence[Level]) -> bool:
    ok = [one for level in levels for one in _ok(level)]
    return d.prompts is not None and len(ok) > 10 * d.prompts


def unreal_lengths(d: Draft, levels: Sequence[Level]) -> bool:
    prompts = [one.prompt_tokens or 0 for one in _ok(levels[-1])]
    return max(prompts) - min(prompts) < 0.05 * mean(prompts)


def elasticity(levels: Sequence[Level]) -> float:
    """Of the mean time per token over the load, from the first to the last of these; 0 of one level."""
    if len(levels) < 2:
        return 0.0
    low, high = levels[0], levels[-1]
    return log(_tpot(high) / _tpot(low)) / log(high.truth.users / low.truth.users)


def _tpot(level: Level) -> float:
    took = [(one.last_token_ns or 0) - (one.first_token_ns or 0) for one in _ok(level)]
    tokens = [(one.output_tokens or 1) - 1 for one in _ok(level)]
    return max(sum(took), 1) / max(sum(tokens), 1)


def _ok(level: Level) -> list[Record]:
    return [one for one in level.records if one.outcome == "ok" and one.phase == "measured"]


def _by_sending(level: Level) -> list[Record]:
    return sorted((one for one in level.records if one.outcome == "ok"), key=lambda one: one.sent_ns or 0)


def _ttft(record: Record) -> float:
    return ((record.first_token_ns or 0) - (record.sent_ns or 0)) / 1e9
