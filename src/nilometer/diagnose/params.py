"""The numbers that the sentence of a cause tells: the load it shows at, and what its own rule had to measure.

The words of a cause name no other parameter than those of `PARAMS`, so that none of them is ever unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nilometer.core.errors import Param

from .case import Case
from .causes.engine import bandwidth_use, time_load
from .level import LevelEvidence

Value = Callable[[Case], Param]


def params_of(slug: str, case: Case) -> dict[str, Param]:
    """The parameters of the sentence of a cause that holds in this case; without any but `load` where it tells none."""
    return {"load": load_of(case.highest), **{name: value(case) for name, value in PARAMS.get(slug, {}).items()}}


def load_of(level: LevelEvidence) -> str:
    """A load in a few letters: `16` requests in flight, `8/s` in an open loop."""
    return f"{level.level or 0:g}" + ("/s" if level.is_open else "")


def greatest(*values: float | None) -> float | None:
    """The greatest of those that were measured."""
    return max((value for value in values if value is not None), default=None)


def slots_at(case: Case) -> float | None:
    """How many decode at a time while somebody waits, at the highest load: where a count is the limit, this is it."""
    seen = case.highest.value("full_decoding")
    share, level = case.highest.value("decoding_share"), case.highest.level
    return seen if seen is not None else None if share is None or not level else share * level


def _slots(case: Case) -> Param:
    seen = slots_at(case)
    return None if seen is None else max(round(seen), 1)


def _high(name: str) -> Value:
    return lambda case: case.highest.value(name)


def _low(name: str) -> Value:
    return lambda case: case.lowest.value(name)


def _step(name: str) -> Value:
    return lambda case: case.group.value(name)


def _most(*names: str) -> Value:
    """The greatest of some figures over all levels."""
    return lambda case: greatest(*(level.value(name) for name in names for level in case.group.levels))


def _time_load(case: Case) -> Param:
    """What prompts take of the server's time, by the line of the lowest level or by its TTFT; all of it at most."""
    by_line = case.group.value("prefill_load")
    found = time_load(case) if by_line is None else by_line
    return None if found is None else min(found, 1.0)


def _context_use(case: Case) -> Param:
    context = case.highest.value("context_tokens") or case.facts.context_tokens
    prompt, output = case.highest.value("prompt_tokens"), case.highest.value("output_tokens")
    return None if not context or prompt is None or output is None else (prompt + output) / context


def _cold(case: Case) -> Param:
    return greatest(case.lowest.value("head_ratio"), *(level.value("after_idle_ratio") for level in case.group.levels))


def _cached(case: Case) -> Param:
    return greatest(case.highest.value("prefix_hit_ratio"), case.highest.value("unprocessed_prompt_share"))


def _linked(case: Case) -> Param:
    """What reading the weights leaves of a token's gap."""
    used = bandwidth_use(case).value
    return None if used is None else 1 - used


PARAMS: Mapping[str, Mapping[str, Value]] = {
    "too_short": {"answers": lambda case: case.facts.ok},
    "rate_limit": {"refused": _most("refused_share", "unavailable_share")},
    "client_pool": {"missing": _high("little_asked")},
    "static_batching": {"decoding": _high("decoding")},
    "prefill_stalls": {"tail": _high("gap_tail_ratio")},
    "growing_state": {"drift": _most("tpot_drift")},
    "noisy_neighbour": {"slow": _low("slow_time_share"), "ratio": _low("slow_ratio")},
    "careful_admission": {"room": _high("waiting_with_room"), "used": _high("output_over_asked")},
    "kv_reserved": {"used": _context_use, "wait": _step("wait_share")},
    "front_end": {"spacing_ms": _high("first_token_spacing"), "wait": _step("wait_share")},
    "prefill": {"prefill": _time_load},
    "queue": {"concurrency": lambda case: load_of(case.highest), "slots": _slots, "wait": _step("wait_share")},
    "poor_drafts": {"accepted": _high("acceptance_ratio")},
    "interconnect": {"link": _linked},
    "decode_compute": {"gain": _step("throughput_gain_last")},
    "decode_bandwidth": {"used": lambda case: bandwidth_use(case).value},
    "cold_start": {"ratio": _cold},
    "prefix_flattered": {"cached": _cached},
    "short_answers": {"got": _high("output_over_asked")},
    "grouped_tokens": {"tokens": _high("tokens_per_frame")},
}
