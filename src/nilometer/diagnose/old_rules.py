"""The first rules on what limits a service, over the levels of one group: queue, decode, else not yet known.

Client figures only, so no rule is surer than `likely`: only an experiment confirms. Each threshold stands below with
its reason; the pattern of each cause is that of seeded faults with known ground truth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from nilometer.core.finding import Confidence, Evidence, Finding
from nilometer.core.summary import Summary

from .evidence import Level, between, elasticity, gain_per_doubling, level_of

WAIT_SHARE = 0.5
"""Most of the TTFT at the highest load must be waiting: TTFT beyond that of the lowest load."""
FLAT_TPOT_RATIO = 1.3
"""TPOT may grow by this much once the slots are full: the same streams decode, but more prompts come between them."""
PLATEAU_SPREAD = 0.25
"""Decoding streams at full slots differ by less than this between levels; with room they grow with the load."""
PLATEAU_SHARE = 0.75
"""Fewer of the requests in flight than this are decoding: the others have no slot."""
PREFILL_SHARE = 0.7
"""From here on the time that prompts take alone fills the server: then they queue for prefill, not for a slot."""
PREFILL_DOUBT = 0.4
"""From here on prefill is a rival cause."""
COMPUTE_ELASTICITY = 0.7
"""TPOT grows with the load nearly as the load does; memory-bound decoding stays below 0.3."""
DECODING_SHARE = 0.75
"""Decode-bound: (nearly) all requests in flight decode, none waits for a slot."""
SATURATED_GAIN = 0.10
"""Tokens/s that grow by less when the load doubles have reached their limit."""
SLOWING_GAIN = 2 ** (1 - COMPUTE_ELASTICITY) - 1
"""What an elasticity of COMPUTE_ELASTICITY leaves of a doubled load (23 %): beyond it decode is not the limit."""
_FEW = 20
"""A level with fewer requests says too little for `likely`."""


def limits(levels: Sequence[tuple[int, Summary]]) -> list[Finding]:
    """What limits the service, most to the point first; never empty.

    `levels` are (concurrency, Summary) of one group, in any order. Where no rule fires, where fewer than two levels
    could be used, or where the load generator was the limit, the one finding is `not_yet_known` with what was missing.
    """
    missing = _missing(levels)
    known = sorted(filter(None, (level_of(n, summary) for n, summary in levels)), key=lambda level: level.concurrency)
    if missing or len(known) < 2:
        return [_not_yet_known(known, missing or ["two_levels"])]
    found = [finding for finding in (_queue(known), _decode(known)) if finding is not None]
    return found or [_not_yet_known(known, [])]


def _missing(levels: Sequence[tuple[int, Summary]]) -> list[str]:
    """What forbids a diagnosis before it begins."""
    limited = any(summary.generator.verdict == "limited" for _, summary in levels)
    return ["fit_generator"] if limited else []


def _queue(levels: list[Level]) -> Finding | None:
    """Requests wait for a slot: TTFT grows, TPOT does not, and the streams that decode stop at a number."""
    low, high = levels[0], levels[-1]
    wait, prefill = _wait_share(low, high), high.requests_per_s * low.ttft_ms / 1000
    if wait < WAIT_SHARE or high.decoding_share >= PLATEAU_SHARE or prefill >= PREFILL_SHARE:
        return None
    full = _level_before(levels, _at_plateau)
    before = full or _level_before(levels, _below_plateau)
    if before is None:
        return None
    rivals = ["prefill"] if prefill >= PREFILL_DOUBT else []
    sure = full is not None and low.concurrency == 1 and not rivals and min(low.n, high.n) >= _FEW
    return Finding(
        slug="queue",
        kind="cause",
        severity="high",
        confidence=_confidence(sure),
        metric="ttft",
        level=high.name,
        params={"slots": round(_served(low, high)), "concurrency": high.concurrency, "wait": wait},
        evidence=[
            between("wait_share", wait, low, high, "share"),
            before.figure("decoding"),
            high.figure("decoding"),
            between("tpot_ratio", high.tpot_ms / before.tpot_ms, before, high),
        ],
        against=[between("prefill_share", prefill, low, high, "share"), *_no_room(low, before)],
        missing=["server_metrics"],
        rivals=[*rivals, "kv_capacity", "front_end"],
    )


def _wait_share(low: Level, high: Level) -> float:
    """Share of the TTFT at the highest load that is not there at the lowest."""
    return max(0.0, 1 - low.ttft_ms / high.ttft_ms)


def _served(low: Level, high: Level) -> float:
    """Mean number of requests in a slot at the highest load: those that decode, and those whose prompt is at work."""
    return high.decoding + high.requests_per_s * min(low.ttft_ms, high.ttft_ms) / 1000


def _level_before(levels: list[Level], stands: Callable[[Level, Level], bool]) -> Level | None:
    """The next lower level that stands so to the highest, with streams (nearly) as fast as there; None without one."""
    high = levels[-1]
    fast = (level for level in levels[-2::-1] if high.tpot_ms / level.tpot_ms < FLAT_TPOT_RATIO)
    return next((level for level in fast if stands(level, high)), None)


def _at_plateau(level: Level, high: Level) -> bool:
    """The slots were full at this level already: as many streams decoded."""
    return abs(level.decoding / high.decoding - 1) < PLATEAU_SPREAD


def _below_plateau(level: Level, high: Level) -> bool:
    """Too few requests to fill the slots, and all of them decoded: the plateau is seen at one level only."""
    return level.concurrency <= high.decoding * (1 + PLATEAU_SPREAD) and level.decoding_share > DECODING_SHARE


def _no_room(low: Level, before: Level) -> list[Evidence]:
    """That each stream slowed down as the slots filled: more slots would not make more tokens."""
    if before.concurrency <= low.concurrency:
        return []
    steep = elasticity(low, before)
    return [between("tpot_elasticity", steep, low, before)] if steep > COMPUTE_ELASTICITY else []


def _decode(levels: list[Level]) -> Finding | None:
    """All requests decode, each slower the more there are, and tokens/s grow no more."""
    bound = [step for step in pairwise(levels) if _decode_bound(*step)]
    if not bound:
        return None
    before, after = bound[-1]
    if max(level.tokens_per_s for level in levels) > after.tokens_per_s * (1 + SATURATED_GAIN):
        return None  # a higher load brought more after all: that was no limit
    gain = gain_per_doubling(before, after)
    sure = gain < SATURATED_GAIN and min(before.n, after.n) >= _FEW
    return Finding(
        slug="decode",
        kind="cause",
        severity="high" if after is levels[-1] else "medium",
        confidence=_confidence(sure),
        metric="tpot",
        level=after.name,
        params={"before": before.concurrency, "after": after.concurrency, "tokens_per_s": after.tokens_per_s},
        evidence=[
            between("tpot_elasticity", elasticity(before, after), before, after),
            between("throughput_gain", gain, before, after, "share"),
        ],
        against=[after.figure("decoding_share", "share")],
        missing=["server_metrics"],
        rivals=["prefill_stalls"],
    )


def _decode_bound(before: Level, after: Level) -> bool:
    return (
        elasticity(before, after) > COMPUTE_ELASTICITY
        and gain_per_doubling(before, after) < SLOWING_GAIN
        and after.decoding_share > DECODING_SHARE
    )


def _not_yet_known(levels: list[Level], missing: list[str]) -> Finding:
    """No rule fires; what was seen is handed on."""
    seen = []
    if len(levels) >= 2:
        low, high = levels[0], levels[-1]
        seen = [
            between("throughput_gain", gain_per_doubling(low, high), low, high, "share"),
            between("tpot_elasticity", elasticity(low, high), low, high),
            between("wait_share", _wait_share(low, high), low, high, "share"),
        ]
    return Finding(slug="not_yet_known", kind="note", severity="low", evidence=seen, missing=missing)


def _confidence(sure: bool) -> Confidence:
    return "likely" if sure else "possible"
