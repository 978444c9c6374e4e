"""Traps of speed: the chunk of a prefill, prefix cache, CUDA graphs, threads, flash attention, batching."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from math import exp

from nilometer.core.finding import Evidence, Finding, Remedy

from ..interval import Interval
from ..latency.factors import factors
from ..latency.roofline import Z_80
from ..latency.step import decode_step, prefill_step
from ..latency.work import Setup
from ..memory.budget import Memory
from ..memory.startup_others import MIB
from .case import (
    COMMAND,
    TAIL,
    WORKLOAD,
    Case,
    Gain,
    difference,
    figure,
    figure_of,
    finding,
    flags,
    gain,
    middle,
    quantile,
    settings_of,
)

CHUNK = 2_048
"""A chunk that is neither long for those who wait nor wasteful (vLLM, docs/configuration/optimization.md)."""
STALL_S = 0.25
"""A running stream that stands still so long is felt."""
SLOWER = 1.25
"""A prompt that takes so many times as long for its chunks is worth a word."""
EAGER_LAYER_S = Interval(0.0, 0.3e-3, 0.8e-3)
"""What a host takes to launch a layer's kernels one by one. 7B on an A800: 22 ms a step of 28 layers without CUDA
graphs, 13 ms with them (vllm-omni#7960); on fast hosts with few kernels it hides behind the device altogether."""
_FLASH_WORTH = 64 * MIB


def chunk_stalls(case: Case) -> Iterator[Finding]:
    """Streams stand still while a long chunk of another's prompt is computed."""
    made, chunk = case.setup, _chunk(case)
    if made is None or chunk is None or chunk <= CHUNK or not flags(case.engine, batched_tokens=CHUNK):
        return
    now, then = _stall(case, made, chunk), _stall(case, made, CHUNK)
    if now < STALL_S:
        return
    words = flags(case.engine, batched_tokens=CHUNK)
    freed = _freed(case, CHUNK)
    yield finding(
        "audit_chunk_stall",
        "medium" if now < 4 * STALL_S else "high",
        {"chunk": chunk, "stall_ms": 1e3 * now, "then_ms": 1e3 * then, "flags": " ".join(words)},
        evidence=[
            figure("audit_chunk", chunk, "tokens", COMMAND),
            figure("audit_stall", 1e3 * now, "ms"),
            figure("audit_stall_after", 1e3 * then, "ms"),
            *([] if freed is None else [figure("audit_freed", middle(freed), "bytes")]),
        ],
        remedies=[Remedy(slug="audit_chunk_stall", flags=words, gain=_ms(made, now - then))],
        confidence="likely",
    )


def _chunk(case: Case) -> int | None:
    """Prompt tokens of one step, where they were told: so many, or a whole prompt where prompts are not cut."""
    settings = settings_of(case)
    if settings.chunked is False and {"chunked", "batched_tokens"} & case.launch.told:
        inputs = [given for given, _ in case.asked.pairs]
        whole = math.ceil(quantile(inputs, TAIL)) if inputs else case.longest
        return whole if settings.batched_tokens is None or whole is None else min(whole, settings.batched_tokens)
    return settings.batched_tokens if not case.contiguous else None


def _stall(case: Case, made: Setup, chunk: int) -> float:
    """Seconds between two tokens of a stream beside which a chunk is computed."""
    context = case.question.lengths.input + case.question.lengths.output / 2
    return prefill_step(made, chunk).riding_s + decode_step(made, max(1, case.load or 1), context).seconds


def _freed(case: Case, chunk: int) -> Gain | None:
    """What a smaller chunk leaves for the cache."""
    after = case.plan(batched_tokens=chunk, chunked=True)
    return None if case.before is None or after is None else difference(case.before.kv_bytes, after.kv_bytes)


def _ms(made: Setup, seconds: float) -> Gain:
    """Time won, as uncertain as the efficiencies that it is computed by."""
    spread = exp(Z_80 * factors(made.engine, made.device.kind, made.version).tpot_spread)
    mid = 1e3 * seconds
    return gain("ms", mid, low=mid / spread, high=mid * spread)


def chunk_small(case: Case) -> Iterator[Finding]:
    """A prompt is computed in so many small pieces that reading the weights for each of them counts."""
    made, chunk, pairs = case.setup, _chunk(case), case.asked.pairs
    prompt = case.question.lengths.input
    if made is None or chunk is None or not pairs or chunk >= CHUNK or prompt < 2 * chunk:
        return
    if settings_of(case).chunked is False or not flags(case.engine, batched_tokens=CHUNK):
        return
    now, then = _prompt_s(made, prompt, chunk), _prompt_s(made, prompt, CHUNK)
    if now < SLOWER * then:
        return
    words = flags(case.engine, batched_tokens=CHUNK)
    yield finding(
        "audit_chunk_small",
        "medium",
        {"chunk": chunk, "prompt": round(prompt), "steps": math.ceil(prompt / chunk), "flags": " ".join(words)},
        evidence=[
            figure("audit_chunk", chunk, "tokens", COMMAND),
            figure("audit_prompt", round(prompt), "tokens", WORKLOAD),
            figure("audit_prefill", 1e3 * now, "ms"),
            figure("audit_prefill_after", 1e3 * then, "ms"),
        ],
        remedies=[Remedy(slug="audit_chunk_small", flags=words, gain=_ms(made, now - then))],
        confidence="likely",
    )


def _prompt_s(made: Setup, prompt: float, chunk: int) -> float:
    """Seconds of a prompt by itself, chunk after chunk."""
    done, seconds = 0.0, 0.0
    while done < prompt:
        part = min(float(chunk), prompt - done)
        seconds += prefill_step(made, part, done).seconds
        done += part
    return seconds


def prefix_off(case: Case) -> Iterator[Finding]:
    """Prompts begin alike, and the engine computes the beginning each time."""
    tokens, share = case.asked.prefix_tokens, case.asked.prefix_share
    if settings_of(case).prefix_caching or not tokens or not share:
        return
    block = settings_of(case).block or (16 if case.engine == "vllm" else 1)
    whole = tokens // block * block
    saved = whole * share
    if not saved:
        return
    made = case.setup
    time = [] if made is None else [figure("audit_prefill", 1e3 * prefill_step(made, whole).seconds, "ms")]
    written = _as_written(case, "prefix", "radix", "cache-prompt")
    words = flags(case.engine, prefix_caching=None)
    slug, cure = ("audit_prefix_unset", " ".join(words)) if written is None else ("audit_prefix_off", written)
    yield finding(
        slug,
        "high" if saved > case.question.lengths.input / 2 else "medium",
        {"prefix": tokens, "share": share, "saved": round(saved), "flag": cure},
        evidence=[
            figure("audit_prefix", tokens, "tokens", WORKLOAD),
            figure("audit_prefix_share", share, "share", WORKLOAD),
            *time,
        ],
        remedies=[Remedy(slug=slug, flags=words, gain=gain("tokens", saved, low=0.0))],
    )


def _as_written(case: Case, *marks: str) -> str | None:
    """The setting that a person wrote, by what its name holds; None where none was, or a server said it."""
    for written in case.launch.given:
        name = written.name.lower().replace("_", "-")
        if any(mark in name for mark in marks) and not (written.place or "").startswith("GET "):
            return written.name if written.value is None else f"{written.name} {written.value}"
    return None


def eager(case: Case) -> Iterator[Finding]:
    """Without CUDA graphs each kernel is launched by the host."""
    made, device = case.setup, case.asked.device
    if not settings_of(case).eager or made is None or device is None or device.kind == "cpu":
        return
    context = case.question.lengths.input + case.question.lengths.output / 2
    step = decode_step(made, max(1, case.load or 1), context)
    layers = case.asked.shape.layers
    slower = [max(0.0, 1e3 * (layers * one - step.seconds)) for one in _ends(EAGER_LAYER_S)]
    graphs = case.plan(eager=False)
    cost = _cost(case.before, graphs)
    yield finding(
        "audit_eager",
        "high" if slower[1] > 0.5e3 * step.seconds else "medium",
        {"flag": _as_written(case, "eager", "graph") or "-", "step_ms": 1e3 * step.seconds, "slower_ms": slower[2]},
        evidence=[
            figure("audit_step", 1e3 * step.seconds, "ms"),
            figure("audit_layers", layers, None, "model"),
            *cost,
        ],
        remedies=[
            Remedy(
                slug="audit_eager",
                flags=flags(case.engine, graphs=None),
                gain=gain("ms", slower[1], low=slower[0], high=slower[2]),
            )
        ],
        confidence="possible",
    )


def _ends(one: Interval) -> tuple[float, float, float]:
    return one.low, one.mid, one.high


def _cost(before: Memory | None, after: Memory | None) -> list[Evidence]:
    """What the graphs take of the cache, where the engine counts them."""
    if before is None or after is None or before.kv_bytes.mid == after.kv_bytes.mid:
        return []
    return [figure("audit_freed", after.kv_bytes.mid - before.kv_bytes.mid, "bytes")]


def threads(case: Case) -> Iterator[Finding]:
    """More threads than cores: each step waits for the core that has two of them."""
    told, cores, device = case.launch.threads, case.asked.cores, case.asked.device
    if not case.contiguous or cores is None:
        return
    words = flags(case.engine, threads=cores)
    if told is not None and told > cores:
        ratio = math.ceil(told / cores) * cores / told
        yield finding(
            "audit_threads_over",
            "high",
            {"threads": told, "cores": cores, "flags": " ".join(words)},
            evidence=[
                figure("audit_threads", told, None, COMMAND),
                figure("audit_cores", cores, None, "machine"),
            ],
            remedies=[
                Remedy(
                    slug="audit_threads_over",
                    flags=words,
                    gain={"low": ratio, "mid": None, "high": None, "unit": "x"},
                )
            ],
            confidence="likely",
        )
    elif told is None and device is not None and device.kind == "cpu":
        yield finding(
            "audit_threads_unset",
            "low",
            {"cores": cores, "flags": " ".join(words)},
            evidence=[figure("audit_cores", cores, None, "machine")],
            remedies=[Remedy(slug="audit_threads_unset", flags=words)],
            note=True,
        )


def flash_off(case: Case) -> Iterator[Finding]:
    """Attention's scores are made whole in memory; and a cache in fewer bits needs the kernel that does not."""
    if not case.contiguous or settings_of(case).flash:
        return
    words = flags(case.engine, flash=None)
    cached = case.launch.value_precision or case.launch.key_precision
    if cached not in {"auto", "f16", "fp16", "bf16", "f32", "fp32"}:
        yield _needs_flash(case, cached, words)
    after = case.plan(flash=True)
    if case.before is None or after is None:
        return
    now, then = _buffer(case.before), _buffer(after)
    more = difference(then, now)
    if middle(more) < _FLASH_WORTH:
        return
    yield finding(
        "audit_flash_off",
        "medium",
        {"bytes": middle(more), "flags": " ".join(words)},
        evidence=[figure_of("audit_buffer", now, "bytes"), figure_of("audit_buffer_after", then, "bytes")],
        remedies=[Remedy(slug="audit_flash_off", flags=words, gain=more)],
    )


def _buffer(plan: Memory) -> Interval:
    """What llama.cpp works in."""
    found = (term.bytes for stage in plan.stages for term in stage.terms if term.name == "compute_buffer")
    return next(found, Interval(0.0, 0.0, 0.0))


def _needs_flash(case: Case, cached: str, words: Sequence[str]) -> Finding:
    """llama.cpp refuses to start; Ollama keeps 16 bits and says so in its log alone."""
    plain, small = case.plan(key="f16", value="f16"), case.plan(key=case.launch.key_precision, value=cached)
    saved = None if plain is None or small is None else gain("bytes", plain.need_bytes - small.need_bytes)
    slug = "audit_kv_needs_flash" if case.engine == "llama.cpp" else "audit_kv_not_quantised"
    return finding(
        slug,
        "high",
        {"precision": cached, "flags": " ".join(words)},
        evidence=[figure("audit_cache_type", cached, None, COMMAND)],
        remedies=[Remedy(slug=slug, flags=list(words), gain=saved)],
    )


def batching_off(case: Case) -> Iterator[Finding]:
    """Requests start together and wait for the longest of them: the slots of the others stand empty."""
    plan = case.before
    if case.launch.continuous or plan is None or plan.slots is None or plan.slots.slots < 2:
        return
    slots = plan.slots.slots
    used = slot_use([out for _, out in case.asked.pairs], slots)
    words = flags(case.engine, continuous=None)
    brought: Gain = {"low": 1.0, "mid": None, "high": None if used is None else 1 / used, "unit": "x"}
    yield finding(
        "audit_batching_off",
        "high",
        {"slots": slots, "flag": _as_written(case, "nocb", "cont-batching") or "-"},
        evidence=[
            figure("audit_slots", slots, None, COMMAND),
            *([] if used is None else [figure("audit_slot_use", used, "share", WORKLOAD)]),
        ],
        remedies=[Remedy(slug="audit_batching_off", flags=words, gain=brought)],
    )


def slot_use(outputs: Sequence[float], slots: int) -> float | None:
    """Share of the slots' time that is used where `slots` requests start together: mean over the mean of the longest.

    The mean of the longest of `slots` drawn from n known ones is sum x_i ((i/n)^slots - ((i-1)/n)^slots).
    """
    ordered = sorted(outputs)
    count = len(ordered)
    longest = (
        sum(x * (((i + 1) / count) ** slots - (i / count) ** slots) for i, x in enumerate(ordered)) if count else 0
    )
    return sum(ordered) / count / longest if longest else None
