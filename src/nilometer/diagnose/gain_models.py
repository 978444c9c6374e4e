"""THE models of what remedies bring: each computes from the levels of this case, and says what it assumes.

A model that lacks a figure answers None: no gain is better than one that nobody computed.
"""

from __future__ import annotations

import math

from .case import Case
from .causes.engine import bandwidth_use
from .gain import (
    NOISE,
    Gain,
    Interval,
    about,
    alone_ms,
    at_load,
    more_streams,
    paces,
    throughput,
    tpot,
    ttft_p95,
)
from .level import LevelEvidence
from .params import greatest, slots_at

MOST_PROCESSES = 8
"""A front end is not spread over more."""
_NEARLY_ALL = 0.9
"""A load that brings so much of the most throughput is as good as the highest."""
_A_STEP, _CLEAR = 1.15, 0.85
"""A step is at least so much slower, and explains so much of the variance."""
_SELDOM = 0.99
LEAST_CHUNK, MOST_CHUNK = 256, 2048
"""Tokens of a chunk of a prompt: below, steps are many and each reads all weights."""
FULL = 0.95
"""Share of a KV cache that can be filled without losing streams again."""


def capped(case: Case) -> Gain | None:
    """No more in flight than decode: TTFT without the queue.

    With c in flight for c slots nobody waits for one. Other prompts are worked on beside a request: of the c - n that
    are more than at the level measured nearest below, each is at its prompt for the share TTFT / E2E of its time
    (arrival theorem, Reiser and Lavenberg 1980): their mean makes the middle, the number that is exceeded in one case
    of a hundred the upper end.
    """
    slots, before = slots_at(case), ttft_p95(case.highest)
    below = [one for one in case.group.levels if slots is not None and (one.level or 0) <= max(round(slots), 1)]
    if not slots or before is None or not below:
        return None
    level = below[-1]
    ttft, mean, whole = ttft_p95(level), level.value("ttft_mean"), level.value("e2e_mean")
    if not ttft or not mean or not whole:
        return None
    least = min(value for one in below if (value := ttft_p95(one)))
    others = max(round(slots) - (level.level or 1.0), 0.0)
    share = min(mean / whole, 1.0)
    after = Interval(
        least * (1 - 2 * NOISE), ttft * (1 + others * share), ttft * (1 + _seldom(others, share)) * (1 + 2 * NOISE)
    )
    return Gain("ttft_p95_ms", "ms", before, after.under(before))


def _seldom(others: float, share: float) -> int:
    """Of so many that each do something for a share of their time, the number that is exceeded in 1 % of cases."""
    n, seen = math.ceil(others), 0.0
    for k in range(n + 1):
        seen += math.comb(n, k) * share**k * (1 - share) ** (n - k)
        if seen >= _SELDOM:
            return k
    return n


def slots_to(case: Case) -> int | None:
    """How many slots to ask for: twice those there are, no more than the load fills or the cache holds."""
    slots, load = slots_at(case), case.highest.level
    if slots is None or load is None:
        return None
    used, wanted = case.highest.value("kv_usage_max"), min(2 * max(round(slots), 1), math.floor(load))
    if used:
        wanted = min(wanted, math.floor(round(slots) * FULL / used))
    return wanted if wanted > round(slots) else None


def more_slots(case: Case, slots: int | None = None) -> Gain | None:
    """Throughput with so many slots (None = `slots_to`), while requests wait to fill them: see `more_streams`."""
    there, wanted = slots_at(case), slots_to(case) if slots is None else slots
    if there is None or wanted is None or wanted > (case.highest.level or 0):
        return None
    return _throughput(case, wanted / max(round(there), 1))


def twice_held(case: Case) -> Gain | None:
    """Cache of half the bytes a token holds twice the requests, as far as there are so many."""
    return _held(case, 2.0)


def context_cut(case: Case) -> Gain | None:
    """Slots of a context that is twice what requests use, in the same memory."""
    use = _context_use(case)
    return None if use is None else _held(case, 1 / (2 * use))


def context_to(case: Case) -> int | None:
    """That context: twice what the mean request uses, a whole number of 256."""
    prompt, output = case.highest.value("prompt_tokens"), case.highest.value("output_tokens")
    use = _context_use(case)
    if prompt is None or output is None or use is None or use >= 0.5:
        return None
    return 256 * math.ceil(2 * (prompt + output) / 256)


def admitted(case: Case) -> Gain | None:
    """As many more requests as the cache has room for beside those that run."""
    used = case.highest.value("kv_usage_mean")
    return None if not used else _held(case, FULL / used)


def filled(case: Case) -> Gain | None:
    """All that was asked for in flight."""
    missing = case.highest.value("little_asked")
    return None if missing is None or missing >= 1 else _throughput(case, 1 / (1 - missing))


def twice_the_load(case: Case) -> Gain | None:
    """Twice as many in flight, where nobody waits yet."""
    return _throughput(case, 2.0)


def continuous(case: Case) -> Gain | None:
    """Slots that are filled as they come free.

    Of a static batch of B only D decode in the mean, as short answers end before the longest: B / D times as many do
    when the gaps are filled, as far as the load has so many. D and B are those of the client's own view.
    """
    decoding, most = case.highest.value("decoding"), case.highest.value("decoding_most")
    if not decoding or not most:
        return None
    return _throughput(case, max(min(most, case.highest.level or most) / decoding, 1.0))


def chunk_to(case: Case) -> int | None:
    """Tokens a step of prompts: the power of two whose work takes no longer than a token does now."""
    slope, gap = _slope_ms(case), case.highest.value("token_gap")
    if not slope or not gap:
        return None
    return min(max(1 << math.floor(math.log2(max(gap / slope, 1.0))), LEAST_CHUNK), MOST_CHUNK)


def chunked(case: Case) -> Gain | None:
    """The p99 of the gaps between tokens with prompts in chunks: a step and one chunk in place of a whole prompt.

    A chunk costs its share of the prompt's time as measured alone (the upper end), or hides behind the step (the lower
    one), as where the step waits for memory. The work itself does not go away: E2E stays about as it is.
    """
    gap, tail, slope, chunk = (
        case.highest.value("token_gap"),
        case.high("gap_tail_ratio"),
        _slope_ms(case),
        chunk_to(case),
    )
    if not gap or tail.value is None or not slope or chunk is None:
        return None
    before, whole = gap * tail.value, gap + slope * chunk
    after = Interval(gap * (1 - NOISE), gap + slope * chunk / 2, whole * (1 + 2 * NOISE))
    return Gain("frame_gap_p99_ms", "ms", before, after.under(before))


def no_preemption(case: Case) -> Gain | None:
    """Throughput without streams that are thrown out and start over.

    Each one thrown out has its prompt and half an answer worked on again, at the lowest level's time per prompt token:
    that part of the server's time is free again at most, and none of it at least (where it hid behind decoding).
    """
    lost, rate = case.highest.value("preemptions_per_100"), case.highest.value("requests_per_s")
    prompt, output = case.highest.value("prompt_tokens"), case.highest.value("output_tokens")
    slope, made = _slope_ms(case), throughput(case.highest)
    if not lost or rate is None or prompt is None or output is None or slope is None or made is None:
        return None
    share = min(rate * lost / 100 * (prompt + output / 2) * slope / 1000, 0.5)
    after = Interval(made, made / (1 - share / 2), made / (1 - share))
    return Gain("output_tokens_per_s", "tokens/s", made, after)


def processes_to(case: Case) -> int | None:
    """Front-end processes that let all in flight through as fast as the engine takes them."""
    spacing, alone, load = case.highest.value("first_token_spacing"), alone_ms(case), case.highest.level
    if not spacing or alone is None or load is None:
        return None
    return min(max(math.ceil(load * spacing / alone[1]), 2), MOST_PROCESSES)


def spread_front(case: Case, processes: int | None = None) -> Gain | None:
    """TTFT with so many processes in front (None = `processes_to`), each as fast as the one there is.

    At least that of the lowest level, less what several may save of one request's own time there; at most what is
    waited for now over their number, and behind it the engine, which has prompts of others to do with as in `capped`.
    """
    count, alone, before = (
        processes_to(case) if processes is None else processes,
        alone_ms(case),
        ttft_p95(case.highest),
    )
    least, load, spacing = ttft_p95(case.lowest), case.highest.level, case.highest.value("first_token_spacing")
    if count is None or alone is None or before is None or not least or load is None or spacing is None:
        return None
    engine = max(alone[0] - spacing, 0.0)
    beside = least + engine * (load - (case.lowest.level or 1)) * min(engine / alone[1], 1.0)
    most = (beside + max(before - least, 0.0) / count) * (1 + 2 * NOISE)
    low = max(least - spacing * (1 - 1 / count), least / count) * (1 - 2 * NOISE)
    return Gain("ttft_p95_ms", "ms", before, Interval(low, math.sqrt(low * most), most).under(before))


def unbuffered(case: Case) -> Gain | None:
    """The server's own TTFT; None where it does not tell it: no request shows what it is."""
    own, before = case.highest.value("server_ttft_mean"), case.highest.value("ttft_mean")
    return None if not own or not before else Gain("ttft_mean_ms", "ms", before, about(own, 2 * NOISE).under(before))


def undisturbed(case: Case) -> Gain | None:
    """The pace between the slow spells.

    A mean m over a share q of the time that is r times as slow is m (1 - q + q / r) without it: tokens a second add up
    over time. At each end of the loads, as each shows q and r for itself.
    """
    before = tpot(case.highest)
    kept = [
        1 - share + share / ratio
        for level in (case.lowest, case.highest)
        if (share := level.value("slow_time_share")) is not None and (ratio := level.value("slow_ratio"))
    ]
    if before is None or not kept:
        return None
    after = Interval(min(kept) * (1 - NOISE), kept[-1], max(kept) * (1 + NOISE)).times(before)
    return Gain("tpot_mean_ms", "ms", before, after.under(before))


def unthrottled(case: Case) -> Gain | None:
    """The pace before the step, or without the pauses.

    A step to r times as slow after a share t of the window leaves m (t + (1 - t) / r) of a mean m. Pauses take the
    share of the time that they are measured to take.
    """
    stepped = [one for one in case.group.levels if _has_step(one)]
    if stepped and (before := tpot(stepped[-1])) is not None:
        early = (stepped[-1].value("step_at") or 0.0) / stepped[-1].facts.length_s
        kept = min(early, 1.0) + max(1 - early, 0.0) / (stepped[-1].value("step_ratio") or 1.0)
        return Gain("tpot_mean_ms", "ms", before, about(before * kept).under(before))
    paused = case.highest.value("pause_time_share")
    before = tpot(case.highest)
    if paused is None or before is None:
        return None
    return Gain("tpot_mean_ms", "ms", before, about(before * (1 - paused), 2 * NOISE).under(before))


def fresh(case: Case) -> Gain | None:
    """As at the start of the window: half of the drift below its mean. What was lost before it is not known."""
    drift, before = greatest(*(one.value("tpot_drift") for one in case.group.levels)), tpot(case.highest)
    if drift is None or before is None:
        return None
    return Gain("tpot_mean_ms", "ms", before, about(before * max(1 - drift / 2, 0.0)).under(before))


def fast_replicas(case: Case) -> Gain | None:
    """The pace of the fast ones: a mean m of which a share q of requests is r times as slow is m / (1 - q + q r)."""
    ratio, share, before = (
        case.highest.value("tpot_mode_ratio"),
        case.highest.value("tpot_mode_share"),
        tpot(case.highest),
    )
    if not ratio or share is None or before is None:
        return None
    fast = before / (1 - share + share * ratio)
    return Gain("tpot_mean_ms", "ms", before, Interval(fast * (1 - NOISE), fast, before).under(before))


def half_the_weights(case: Case) -> Gain | None:
    """Weights of half the bytes, where reading them sets the pace.

    A step reads them for a share of its time that is at least what they take at the memory's own rate (`bandwidth_use`)
    and at most all of it; half of that time goes. The milliseconds are those of the lowest level, at any load.
    """
    use, alone, before = bandwidth_use(case).value, tpot(case.lowest), tpot(case.highest)
    if use is None or alone is None or before is None:
        return None
    ends = sorted(max(before - alone * share / 2, 0.0) for share in (1.0, (1 + min(use, 1.0)) / 2, min(use, 1.0)))
    low, middle, high = ends
    return Gain("tpot_mean_ms", "ms", before, Interval(low * (1 - NOISE), middle, high * (1 + NOISE)).under(before))


def faster_arithmetic(case: Case) -> Gain | None:
    """Arithmetic of half the bits, where that sets the pace: what each stream adds to a step is halved at best."""
    seen, before = paces(case), tpot(case.highest)
    if len(seen) < 2 or before is None:
        return None
    first, last = seen[0], seen[-1]
    each = max((last.ms - first.ms) / (last.streams - first.streams), 0.0)
    best = max(before - each * last.streams / 2, before / 2)
    return Gain("tpot_mean_ms", "ms", before, Interval(best * (1 - NOISE), (best + before) / 2, before))


def nearly_all(case: Case) -> float | None:
    """The smallest load that was measured with nearly all of the throughput; None where that is the highest."""
    known = [(one.level, made) for one in case.group.levels if one.level and (made := throughput(one))]
    most = max((made for _, made in known), default=0.0)
    found = next((number for number, made in known if made >= _NEARLY_ALL * most), None)
    return None if found is None or found == case.highest.level else found


def capped_early(case: Case) -> Gain | None:
    """TPOT as measured at the smallest load with nearly all of the throughput."""
    load, before = nearly_all(case), tpot(case.highest)
    after = None if load is None else at_load(case, load, tpot, NOISE)
    return None if after is None or before is None else Gain("tpot_mean_ms", "ms", before, after.under(before))


def twice_the_copies_ttft(case: Case) -> Gain | None:
    """Two copies, each with half of the load: TTFT as at that load."""
    return _halved(case, "ttft_p95_ms")


def twice_the_copies_tpot(case: Case) -> Gain | None:
    """The same of TPOT."""
    return _halved(case, "tpot_mean_ms")


def _halved(case: Case, metric: str) -> Gain | None:
    reading, error = (ttft_p95, 2 * NOISE) if metric == "ttft_p95_ms" else (tpot, NOISE)
    before, load = reading(case.highest), case.highest.level
    after = None if load is None else at_load(case, load / 2, reading, error)
    return None if after is None or before is None else Gain(metric, "ms", before, after.under(before))


def _has_step(level: LevelEvidence) -> bool:
    """Whether the level was clearly slower from one moment of its window on."""
    clear = (level.value("step_ratio") or 1.0) > _A_STEP and (level.value("step_separation") or 0.0) > _CLEAR
    return clear and level.value("step_at") is not None and level.facts.length_s > 0


def _held(case: Case, grown: float) -> Gain | None:
    """Throughput where so many times as many requests have a place, no more than are in flight."""
    there, load = slots_at(case), case.highest.level
    return None if not there or not load else _throughput(case, min(grown, load / there))


def _throughput(case: Case, grown: float) -> Gain | None:
    before, after = throughput(case.highest), more_streams(case, grown) if grown > 1 else None
    if before is None or after is None:
        return None
    return Gain("output_tokens_per_s", "tokens/s", before, after)


def _context_use(case: Case) -> float | None:
    context = case.highest.value("context_tokens") or case.facts.context_tokens
    prompt, output = case.highest.value("prompt_tokens"), case.highest.value("output_tokens")
    return None if not context or not prompt or output is None else (prompt + output) / context


def _slope_ms(case: Case) -> float | None:
    """Time of a prompt token, ms: the slope of the lowest level's line, or all of its TTFT where prompts are alike."""
    line = case.group.base.line if case.group.base else None
    if line is not None and line.slope_ms:
        return max(line.slope_ms, 0.0)
    ttft, prompt = case.lowest.value("ttft_mean"), case.lowest.value("prompt_tokens")
    return ttft / prompt if ttft and prompt else None
