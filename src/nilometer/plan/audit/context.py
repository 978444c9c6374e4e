"""Traps of the greatest length: far over what is asked, too short for it, over the model's own, too long to start."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from nilometer.core.errors import Param
from nilometer.core.finding import Evidence, Finding, Remedy

from ..memory.budget import Memory
from .case import (
    COMMAND,
    WORKLOAD,
    Case,
    Gain,
    difference,
    figure,
    finding,
    flags,
    gain,
    middle,
    room_for,
    settings_of,
)

FAR = 2.0
"""A greatest length over so many times the p99.9 is called far over it."""
FAR_IN_PAGES = 4.0
"""The same where a length costs only when it is asked for."""
WORTH = 0.01
"""A gain below this share of the pool is none."""
_PAD = 256
_STEPS = 40
_SCALING = ("rope", "yarn", "--hf-overrides", "--json-model-override-args", "LLAMA_ARG_ROPE", "LLAMA_ARG_YARN")
"""Flags that stretch a model beyond what it was trained for."""


def far_over(case: Case) -> Iterator[Finding]:
    """The greatest length is far over the p99.9: reserved for every request, or, in pages, a promise only."""
    plan, longest = case.before, case.longest
    if plan is None or longest is None or plan.context < FAR * longest or not plan.starts:
        return
    if case.contiguous:
        yield from _reserved(case, plan, longest)
    elif plan.context >= FAR_IN_PAGES * longest:
        yield from _paged(case, plan, longest)


def _reserved(case: Case, plan: Memory, longest: int) -> Iterator[Finding]:
    """The cache is made for the whole of it at start."""
    slots = plan.slots.slots if plan.slots else 1
    each = room_for(longest, _PAD)
    after = case.plan(context=each * slots)
    if after is None or after.need_bytes > (1 - WORTH) * plan.need_bytes:
        return
    saved = plan.need_bytes - after.need_bytes
    words = _context_flags(case, each, slots)
    yield finding(
        "audit_context_reserved",
        "high" if saved > plan.need_bytes / 2 and not _roomy(plan) else "medium",
        {"context": plan.context, "longest": longest, "bytes": saved, "flags": " ".join(words)},
        evidence=[
            figure("audit_context", plan.context, "tokens", _place(case)),
            figure("audit_longest", longest, "tokens", WORKLOAD),
            figure("audit_slots", slots, None, _place(case)),
            figure("audit_kv_reserved", plan.need_bytes, "bytes"),
            figure("audit_kv_reserved_after", after.need_bytes, "bytes"),
        ],
        remedies=[Remedy(slug="audit_context_reserved", flags=words, gain=gain("bytes", saved))],
    )


def _roomy(plan: Memory) -> bool:
    """Whether the cache takes less than half of what the device has for it."""
    return plan.need_bytes < plan.kv_bytes.mid / 2


def _paged(case: Case, plan: Memory, longest: int) -> Iterator[Finding]:
    """Pages are taken as a request grows: what the length costs is what the engine works in, no more."""
    each = room_for(longest)
    after = case.plan(context=each)
    if after is None:
        return
    words = _context_flags(case, each, 1)
    more = difference(plan.kv_bytes, after.kv_bytes)
    evidence = [
        figure("audit_context", plan.context, "tokens", _place(case)),
        figure("audit_longest", longest, "tokens", WORKLOAD),
        figure("audit_longest_bytes", plan.longest_bytes, "bytes"),
        figure("audit_kv", plan.kv_bytes.mid, "bytes"),
        figure("audit_kv_after", after.kv_bytes.mid, "bytes"),
    ]
    told: dict[str, Param] = {"context": plan.context, "longest": longest, "flags": " ".join(words)}
    if middle(more) > WORTH * plan.kv_bytes.mid:
        remedy = Remedy(slug="audit_context_costs", flags=words, gain=more)
        told["bytes"] = middle(more)
        yield finding("audit_context_costs", "medium", told, evidence=evidence, remedies=[remedy])
    elif "context" in case.launch.told:
        told["share"] = plan.longest_bytes / plan.kv_bytes.mid
        remedy = Remedy(slug="audit_context_paged", flags=words, gain=more)
        yield finding("audit_context_paged", "low", told, evidence=evidence, remedies=[remedy], note=True)


def not_starting(case: Case) -> Iterator[Finding]:
    """One request of the greatest length has no room, so the engine does not start."""
    plan = case.before
    if plan is None or plan.starts:
        return
    greatest = _greatest(case, plan)
    evidence = [
        figure("audit_context", plan.context, "tokens", _place(case)),
        figure("audit_longest_bytes", plan.need_bytes if case.contiguous else plan.longest_bytes, "bytes"),
        figure("audit_kv", plan.kv_bytes.mid, "bytes"),
    ]
    if greatest < 1:
        yield _no_room(case, plan, evidence)
        return
    slots = plan.slots.slots if plan.slots else 1
    words = _context_flags(case, greatest, slots)
    yield finding(
        "audit_not_starting",
        "high",
        {"context": plan.context, "greatest": greatest, "flags": " ".join(words)},
        evidence=evidence,
        remedies=[Remedy(slug="audit_not_starting", flags=words, gain=gain("tokens", greatest))],
    )


def _greatest(case: Case, plan: Memory) -> int:
    """The greatest length of a request at which it starts, down to the 256; 0 = at none."""
    slots = plan.slots.slots if plan.slots else 1

    def starts(context: int) -> bool:
        made = case.plan(context=context * slots)
        return made is not None and made.starts

    return _bisect(starts, plan.context)


def _bisect(holds: Callable[[int], bool], top: int) -> int:
    low, high = 0, -(-top // _PAD)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle * _PAD) else (low, middle)
    return low * _PAD


def _no_room(case: Case, plan: Memory, evidence: list[Evidence]) -> Finding:
    """Not even a short request has room: the weights are too much."""
    missing = max(stage.missing_bytes for stage in plan.stages) or plan.short_bytes
    words, brought = _more_ranks(case)
    taken = sum(term.bytes.mid for term in plan.stages[0].terms)
    usable = plan.stages[0].usable_bytes
    return finding(
        "audit_no_room",
        "high",
        {"taken": taken, "usable": usable, "missing": missing, "flags": " ".join(words) or "-"},
        evidence=[figure("audit_taken", taken, "bytes"), figure("audit_usable", usable, "bytes"), *evidence],
        remedies=[Remedy(slug="audit_no_room", flags=words, gain=brought)] if words else [],
    )


def _more_ranks(case: Case) -> tuple[list[str], Gain | None]:
    """The fewest tensor ranks on which it starts, and the bytes of cache that one then has."""
    split = case.launch.parallel
    for tensor in (2 * split.tensor << step for step in range(4)):
        expert = split.expert * tensor // split.tensor if split.expert > 1 else 1
        made = case.plan(parallel=msgspec.structs.replace(split, tensor=tensor, expert=expert))
        words = flags(case.engine, tensor=tensor)
        if made is not None and made.starts and words:
            return words, difference(case.before.kv_bytes, made.kv_bytes) if case.before else None
    return [], None


def too_short(case: Case) -> Iterator[Finding]:
    """The greatest length is below the p99.9: such requests are refused or cut."""
    longest, context, slots = case.longest, _context(case), _slots(case)
    if longest is None or context is None or context >= longest:
        return
    each = room_for(longest, _PAD)
    over = _over(case, context)
    remedies, cost = _longer(case, each, slots)
    slug = {"llama.cpp": "audit_slot_short", "ollama": "audit_prompts_cut"}.get(case.engine, "audit_context_short")
    words = _context_flags(case, each, slots)
    yield finding(
        slug,
        "high",
        {"context": context, "longest": longest, "slots": slots, "flags": " ".join(words)},
        evidence=[
            figure("audit_context", context, "tokens", _place(case)),
            figure("audit_longest", longest, "tokens", WORKLOAD),
            figure("audit_slots", slots, None, _place(case)),
            *cost,
        ],
        remedies=[Remedy(slug=slug, flags=one, gain=over) for one in remedies],
    )


def _context(case: Case) -> int | None:
    """The longest a request may become."""
    if case.before is not None:
        return case.before.context
    told = settings_of(case).context or case.asked.shape.max_context
    return told // _slots(case) if told and case.contiguous and not settings_of(case).unified else told


def _slots(case: Case) -> int:
    if case.before is not None and case.before.slots is not None:
        return case.before.slots.slots
    return settings_of(case).slots or 1


def _over(case: Case, context: int) -> Gain:
    """The share of requests that are longer; without their lengths, at least one in a thousand."""
    totals = [sum(pair) for pair in case.asked.pairs]
    if not totals:
        return {"low": 0.001, "mid": None, "high": None, "unit": "share"}
    return gain("share", sum(total > context for total in totals) / len(totals))


def _longer(case: Case, each: int, slots: int) -> tuple[list[list[str]], list[Evidence]]:
    """The ways to more length: more of it, where it has room, and with fewer slots on what there is."""
    plan = case.before
    ways: list[list[str]] = []
    cost: list[Evidence] = []
    after = case.plan(context=each * slots)
    if after is None or after.starts or not case.visible_bytes:
        ways.append(_context_flags(case, each, slots))
    if plan is not None and after is not None:
        unit = "bytes"
        before_bytes = plan.need_bytes if case.contiguous else plan.longest_bytes
        after_bytes = after.need_bytes if case.contiguous else after.longest_bytes
        cost = [
            figure("audit_longest_bytes", before_bytes, unit),
            figure("audit_longest_bytes_after", after_bytes, unit),
        ]
    if plan is not None and plan.slots is not None and slots > 1 and (fewer := plan.slots.cells // each):
        ways.append(flags(case.engine, max_seqs=fewer, context=_total(case, each, fewer)))
    return ways, cost


def _total(case: Case, each: int, slots: int) -> int:
    """What the engine's flag counts: llama.cpp's all slots together, the others' one request."""
    return each * slots if case.engine == "llama.cpp" else each


def _context_flags(case: Case, each: int, slots: int) -> list[str]:
    return flags(case.engine, context=_total(case, each, slots))


def over_trained(case: Case) -> Iterator[Finding]:
    """More context than the model was trained for, and nothing that stretches it."""
    trained, told = case.asked.shape.max_context, _told_each(case)
    if trained is None or told is None or told <= trained or _stretched(case):
        return
    slots = _slots(case)
    words = _context_flags(case, trained, slots)
    after = case.plan(context=trained * slots)
    plan = case.before
    saved: Gain | None = None
    if plan is not None and after is not None:
        kept = plan.need_bytes - after.need_bytes if case.contiguous else plan.longest_bytes - after.longest_bytes
        saved = gain("bytes", kept)
    yield finding(
        "audit_context_over_trained",
        "high" if not case.contiguous else "medium",
        {"context": told, "trained": trained, "flags": " ".join(words)},
        evidence=[
            figure("audit_context", told, "tokens", COMMAND),
            figure("audit_trained", trained, "tokens", case.asked.shape.source or "model"),
        ],
        remedies=[Remedy(slug="audit_context_over_trained", flags=words, gain=saved)],
    )


def _told_each(case: Case) -> int | None:
    """The length of a request as it was asked for, whatever comes of it."""
    told = case.launch.settings.context
    if not told or case.engine != "llama.cpp":
        return told or None
    shared = case.before.slots.unified if case.before and case.before.slots else settings_of(case).unified
    return told if shared else told // _slots(case)


def _stretched(case: Case) -> bool:
    return any(mark in name for name in case.launch.uncounted for mark in _SCALING)


def _place(case: Case) -> str:
    """Where the engine's length is from."""
    return COMMAND if {"context", "slots"} & case.launch.told else "default"
