"""Traps of memory and load: its share, sequences at once, the cache's precision, ranks that do not divide the heads."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from nilometer.core.finding import Finding, Remedy

from ..memory.budget import Memory
from ..memory.startup import Rank, Term, epoch_of, vllm_terms
from ..memory.startup_others import sglang_fraction
from ..model.parallel import undealt_heads
from ..model.shape import Attention, Latent
from ..question import ask
from ..versions import parse_version
from .case import (
    COMMAND,
    WORKLOAD,
    Case,
    difference,
    figure,
    figure_of,
    finding,
    flags,
    gain,
    middle,
    settings_of,
)

NEAR = 0.03
"""Shares of memory closer than this are alike."""
WORTH = 0.01
"""A gain below this share of the pool is none."""
_SPARE = 1.25
"""What stands beside an engine's share has room for so many times its middle estimate."""
_OUTSIDE_OF_021 = 0.97
"""From 0.21 vLLM counts its graphs: above this share what it cannot count has no room."""
_GRAPHS_COUNTED = (0, 21)
_LEAST_SEQS = 16


def heads(case: Case) -> Iterator[Finding]:
    """Tensor ranks must divide the heads, or the engine refuses the model."""
    tensor, shape = case.launch.parallel.tensor, case.asked.shape
    bad = undealt_heads(shape, tensor)
    if bad is None:
        return
    most = max(block.mixer.heads for block in shape.kinds if isinstance(block.mixer, Attention | Latent))
    below = next(ranks for ranks in range(tensor - 1, 0, -1) if undealt_heads(shape, ranks) is None)
    above = next((ranks for ranks in range(tensor + 1, most + 1) if undealt_heads(shape, ranks) is None), None)
    ways = [ranks for ranks in (below, above) if ranks is not None]
    yield finding(
        "audit_tensor_heads",
        "high",
        {"tensor": tensor, "heads": bad, "fits": ", ".join(map(str, ways))},
        evidence=[figure("audit_tensor", tensor, None, COMMAND), figure("audit_heads", bad, None, "model")],
        remedies=[
            Remedy(
                slug="audit_tensor_heads", flags=flags(case.engine, tensor=ranks), gain=gain("ranks", ranks - tensor)
            )
            for ranks in ways
        ],
    )


def share_low(case: Case) -> Iterator[Finding]:
    """Less of the device than the engine would take, and what is left out is missing."""
    plan, told, usual = case.before, settings_of(case).utilisation, _usual_share(case)
    if plan is None or told is None or usual is None or told > usual - NEAR or not case.short:
        return
    after = case.plan(utilisation=usual)
    if after is None:
        return
    more = difference(plan.kv_bytes, after.kv_bytes)
    words = flags(case.engine, utilisation=usual)
    yield finding(
        "audit_share_low",
        "medium",
        {"share": told, "usual": usual, "bytes": middle(more), "flags": " ".join(words)},
        evidence=[
            figure("audit_share", told, "share", COMMAND),
            figure_of("audit_kv", plan.kv_bytes, "bytes"),
            figure_of("audit_kv_after", after.kv_bytes, "bytes"),
            figure("audit_held", case.held(plan)),
            figure("audit_held_after", case.held(after)),
        ],
        remedies=[Remedy(slug="audit_share_low", flags=words, gain=more)],
    )


def _usual_share(case: Case) -> float | None:
    """The share of memory that the engine takes where nothing is said; None where it takes none of a device."""
    device = case.asked.device
    if not case.visible_bytes or device is None or device.kind == "cpu" or settings_of(case).kv_bytes is not None:
        return None
    release = _release(case)
    if case.engine == "vllm":
        return epoch_of(release).utilisation
    if case.engine == "sglang":
        bare = msgspec.structs.replace(settings_of(case), utilisation=None)
        return sglang_fraction(case.visible_bytes, _rank(case), bare, release)
    return 1.0 if case.engine == "tgi" else None


def _release(case: Case) -> tuple[int, ...]:
    named = parse_version(case.before.version) if case.before else None
    return named or (0, 19)


def _rank(case: Case) -> Rank:
    split, asked = case.launch.parallel, case.asked
    device = asked.device
    weights = ask(case.question, device).weights_bytes if device is not None else (0.0,)
    return Rank(
        shape=asked.shape,
        weights_bytes=weights[0],
        tensor=split.tensor,
        expert=split.expert,
        pipeline=split.pipeline,
        precision=case.question.precision.name,
    )


def share_high(case: Case) -> Iterator[Finding]:
    """So much of the device that what stands beside the share - CUDA graphs, activation - may find no room."""
    plan, told, usual = case.before, settings_of(case).utilisation, _usual_share(case)
    if plan is None or told is None or usual is None or told <= usual:
        return
    visible = case.visible_bytes
    needed = _beside(case, plan, visible, usual)
    left = (1 - told) * visible
    if needed is None or left >= needed:
        return
    safe = int(100 * (1 - needed / visible)) / 100
    after = case.plan(utilisation=safe)
    words = flags(case.engine, utilisation=safe)
    lost = [figure_of("audit_kv_after", after.kv_bytes, "bytes")] if after else []
    yield finding(
        "audit_share_high",
        "medium",
        {"share": told, "left": left, "needed": needed, "flags": " ".join(words)},
        evidence=[
            figure("audit_share", told, "share", COMMAND),
            figure("audit_left", left, "bytes"),
            figure("audit_needed", needed, "bytes"),
            figure_of("audit_kv", plan.kv_bytes, "bytes"),
            *lost,
        ],
        remedies=[Remedy(slug="audit_share_high", flags=words, gain=gain("bytes", (1 - safe) * visible - left))],
        confidence="likely",
    )


def _beside(case: Case, plan: Memory, visible: float, usual: float) -> float | None:
    """Bytes that must stay free outside of the engine's share; None where that is not known."""
    if case.engine == "sglang":
        return (1 - usual - NEAR) * visible
    if case.engine != "vllm" or plan.batch is None:
        return None
    if _release(case) >= _GRAPHS_COUNTED:
        return (1 - _OUTSIDE_OF_021) * visible
    graphs = None if settings_of(case).eager else _graphs(case, plan)
    return None if graphs is None else _SPARE * graphs.bytes.mid


def _graphs(case: Case, plan: Memory) -> Term | None:
    """What CUDA graphs take, counted by the engine or not."""
    if plan.batch is None:
        return None
    return next((term for term in vllm_terms(_rank(case), plan.batch, _GRAPHS_COUNTED) if term.name == "graphs"), None)


def refusing(case: Case) -> Iterator[Finding]:
    """More requests at once than the server lets in: the others are sent away with an error."""
    admitted, load = case.launch.admitted, case.load
    if admitted is None or load is None or load <= admitted:
        return
    words = flags(case.engine, admitted=load)
    yield finding(
        "audit_requests_refused",
        "high",
        {"limit": admitted, "load": load, "flags": " ".join(words)},
        evidence=[
            figure("audit_limit", admitted, None, COMMAND if "admitted" in case.launch.told else "default"),
            figure("audit_load", load, None, WORKLOAD),
        ],
        remedies=[Remedy(slug="audit_requests_refused", flags=words, gain=gain("requests", load - admitted))],
    )


def queueing(case: Case) -> Iterator[Finding]:
    """Fewer requests at once than are asked for, while memory has room for more."""
    plan, load = case.before, case.load
    limit = None if plan is None else case.limit(plan)
    if plan is None or load is None or limit is None or limit >= load or not plan.starts or not case.visible_bytes:
        return
    more, after, words = _raised(case, plan, limit, load)
    if more <= limit or after is None:
        return
    yield finding(
        "audit_seqs_queue",
        "medium",
        {"limit": limit, "load": load, "held": more, "flags": " ".join(words)},
        evidence=[
            figure("audit_limit", limit, None, COMMAND if {"max_seqs", "slots"} & case.launch.told else "default"),
            figure("audit_load", load, None, WORKLOAD),
            figure("audit_held_after", more),
            figure_of("audit_kv_after", after.kv_bytes, "bytes"),
        ],
        remedies=[Remedy(slug="audit_seqs_queue", flags=words, gain=gain("requests", more - limit))],
    )


def _raised(case: Case, plan: Memory, limit: int, load: int) -> tuple[int, Memory | None, list[str]]:
    """(requests at once, the plan, its flags) with the limit raised as far as memory goes."""
    if plan.slots is None:
        after = case.plan(max_seqs=load)
        more = 0 if after is None else min(load, case.held(after))
        return more, after, flags(case.engine, max_seqs=more)
    each = plan.slots.cells // plan.slots.slots
    for slots in range(load, limit, -1 if load - limit < 64 else -((load - limit) // 64)):
        after = case.plan(slots=slots, context=each * slots, unified=plan.slots.unified)
        if after is not None and after.starts:
            context = each * slots if case.engine == "llama.cpp" else each
            return slots, after, flags(case.engine, max_seqs=slots, context=context)
    return limit, None, []


def preempting(case: Case) -> Iterator[Finding]:
    """More requests are let in than memory holds: some are thrown out and computed again."""
    plan = case.before
    limit = None if plan is None else case.limit(plan)
    if plan is None or limit is None or case.contiguous or not plan.starts:
        return
    told = "max_seqs" in case.launch.told
    load = case.load if case.load is not None else limit if told else 0
    held = case.held(plan)
    inside = min(limit, load)
    if inside <= held or held < 1:
        return
    after = case.plan(max_seqs=held)
    words = flags(case.engine, max_seqs=held)
    kept = [figure_of("audit_kv_after", after.kv_bytes, "bytes")] if after else []
    yield finding(
        "audit_seqs_over_kv",
        "medium",
        {"inside": inside, "held": held, "over": inside - held, "flags": " ".join(words)},
        evidence=[
            figure("audit_limit", limit, None, COMMAND if told else "default"),
            figure("audit_held", held),
            figure_of("audit_kv", plan.kv_bytes, "bytes"),
            *kept,
        ],
        remedies=[Remedy(slug="audit_seqs_over_kv", flags=words, gain=gain("requests", inside - held))],
    )


def sampling(case: Case) -> Iterator[Finding]:
    """The sampler's memory is made for more sequences than will ever run."""
    plan, load = case.before, case.load
    if plan is None or plan.batch is None or load is None or not plan.kv_bytes.mid:
        return
    enough = max(_LEAST_SEQS, 1 << (load - 1).bit_length())
    activation = next((term for term in plan.stages[-1].terms if term.name == "activation"), None)
    if activation is None or activation.formula != "activation_sampler" or plan.batch.seqs <= enough:
        return
    after = case.plan(max_seqs=enough)
    if after is None or after.kv_bytes.mid - plan.kv_bytes.mid < WORTH * plan.kv_bytes.mid:
        return
    more = difference(plan.kv_bytes, after.kv_bytes)
    words = flags(case.engine, max_seqs=enough)
    yield finding(
        "audit_seqs_sampler",
        "medium" if case.short else "low",
        {"seqs": plan.batch.seqs, "load": load, "bytes": middle(more), "flags": " ".join(words)},
        evidence=[
            figure("audit_limit", plan.batch.seqs, None, COMMAND if "max_seqs" in case.launch.told else "default"),
            figure("audit_load", load, None, WORKLOAD),
            figure_of("audit_activation", activation.bytes, "bytes"),
            figure_of("audit_kv", plan.kv_bytes, "bytes"),
            figure_of("audit_kv_after", after.kv_bytes, "bytes"),
        ],
        remedies=[Remedy(slug="audit_seqs_sampler", flags=words, gain=more)],
    )


def cache_precision(case: Case) -> Iterator[Finding]:
    """Memory for the cache is what limits, and the cache is kept in 16 bits."""
    plan, load = case.before, case.load
    if plan is None or load is None or not case.short or not plan.starts or not _wide(case):
        return
    if case.contiguous and (not case.visible_bytes or plan.need_bytes < plan.kv_bytes.mid / 2):
        return
    after = case.plan(key="q8_0", value="q8_0") if case.contiguous else case.plan(key="fp8")
    if after is None:
        return
    words = flags(case.engine, cache8=None)
    if case.contiguous:
        brought = gain("bytes", plan.need_bytes - after.need_bytes)
    else:
        brought = gain("requests", case.held(after) - case.held(plan))
    if middle(brought) <= 0:
        return
    yield finding(
        "audit_kv_precision",
        "medium",
        {"held": case.held(plan), "load": load, "bytes": plan.bytes_per_token, "flags": " ".join(words)},
        evidence=[
            figure("audit_load", load, None, WORKLOAD),
            figure("audit_held", case.held(plan)),
            figure("audit_held_after", case.held(after)),
            figure("audit_bytes_per_token", plan.bytes_per_token, "bytes"),
            figure("audit_bytes_per_token_after", after.bytes_per_token, "bytes"),
        ],
        remedies=[Remedy(slug="audit_kv_precision", flags=words, gain=brought)],
        confidence="likely",
    )


def _wide(case: Case) -> bool:
    """Whether the cache is in 16 bits and the device can keep it in 8."""
    device = case.asked.device
    if case.question.cached.key < 2 or case.question.cached.value < 2 or device is None:
        return False
    return settings_of(case).flash if case.contiguous else "fp8" in device.flops
