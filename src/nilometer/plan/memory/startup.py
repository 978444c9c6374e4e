"""What an engine takes before it has a KV pool: the terms, each with its formula, interval, release and source.

Here are the terms' form and vLLM's; the other engines' are in `startup_others`. Constants were fitted to start-up
logs of the releases they name (benchmarks/plan_memory.py shows each row); outside of them the answer says so.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ..interval import Interval
from ..model.shape import Dense, Experts, Shape
from ..versions import Span, Version

GIB = 2**30
LOGS_019 = "llm-d-planner, accuracy/results/v0.19.0 (commit a95e9f6, Apache-2.0)"
LOGS_011 = "llm-d-planner, docs/empirical-vllm-memory-results.md (Apache-2.0)"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """An engine's flags in its neighbours' words; None = as the engine would choose."""

    utilisation: float | None = None
    """vLLM's gpu_memory_utilization, SGLang's mem_fraction_static, TensorRT-LLM's free_gpu_memory_fraction, ..."""
    context: int | None = None
    """max_model_len, --context-length, -c, ..."""
    max_seqs: int | None = None
    batched_tokens: int | None = None
    """max_num_batched_tokens, chunked_prefill_size, max_num_tokens, max_batch_prefill_tokens."""
    block: int | None = None
    chunked: bool | None = None
    prefix_caching: bool = True
    eager: bool = False
    """No CUDA graphs."""
    served: bool = True
    """Behind its server, not inside a Python program: the defaults differ."""
    kv_bytes: float | None = None
    """The pool, where it is given outright."""
    slots: int | None = None
    unified: bool | None = None
    full_windows: bool = False
    ubatch: int | None = None
    flash: bool = True
    """Attention in one kernel, its scores never in memory as a whole."""


class Rank(msgspec.Struct, frozen=True, kw_only=True):
    """What stands on one device: a stage of the layers, cut by `tensor`."""

    shape: Shape
    weights_bytes: float
    start: int = 0
    stop: int | None = None
    tensor: int = 1
    expert: int = 1
    pipeline: int = 1
    precision: str = "bf16"
    """Of the weights."""
    on_cpu: bool = False

    @property
    def first(self) -> bool:
        """Whether it takes the tokens in."""
        return self.start == 0

    @property
    def last(self) -> bool:
        """Whether it makes the logits."""
        return self.stop is None or self.stop >= self.shape.layers

    @property
    def layers(self) -> int:
        """How many of the model's layers."""
        return len(self.shape.order[self.start : self.stop])


class Term(msgspec.Struct, frozen=True, kw_only=True):
    """One part of the memory. `formula` is a slug, `values` what stands in it."""

    name: str
    bytes: Interval
    formula: str
    values: Mapping[str, float] = {}
    span: str = ""
    source: str = ""


class Epoch(msgspec.Struct, frozen=True, kw_only=True):
    """vLLM's constants over a span of releases; `measured` is what logs were seen of."""

    span: Span
    measured: Span
    sampler_bytes: float
    """Per sequence and word of the vocabulary, beside the logits in the model's own precision."""
    hidden: int
    """Vectors of the hidden width per batched token that live with a feed-forward layer."""
    non_torch_gib: Mapping[int, tuple[float, float, float]]
    """Tensor ranks -> low, mid, high; the greatest key that is not above."""
    stage_non_torch_gib: tuple[float, float, float] = (0.0, 0.07, 0.4)
    workspace: bool = True
    """Whether what experts work in is kept between the layers' calls, and so stands beside the sampler's run."""
    graphs: bool = False
    """Whether CUDA graphs are counted before the pool is made."""
    activation_spread: float = 0.04
    utilisation: float = 0.9
    """gpu_memory_utilization where it is not given."""
    source: str


_SORTED, _UNSORTED = 36.08, 12.53
EPOCHS = (
    Epoch(
        span=Span(until=(0, 8)),
        measured=Span(since=(0, 6), until=(0, 8)),
        sampler_bytes=_SORTED,
        hidden=3,
        workspace=False,
        non_torch_gib={1: (0.08, 0.3, 0.5), 2: (0.2, 0.3, 0.6)},
        activation_spread=0.1,
        source="vllm#10517, #11251, #12330, #13061, #16570",
    ),
    Epoch(
        span=Span(since=(0, 8), until=(0, 17)),
        measured=Span(since=(0, 10), until=(0, 12)),
        sampler_bytes=_SORTED,
        hidden=4,
        workspace=False,
        non_torch_gib={1: (0.1, 0.13, 0.3), 2: (0.4, 0.55, 1.2)},
        source=f"{LOGS_011}; PR 21489",
    ),
    Epoch(
        span=Span(since=(0, 17), until=(0, 21)),
        measured=Span(since=(0, 17), until=(0, 20)),
        sampler_bytes=_UNSORTED,
        hidden=4,
        non_torch_gib={1: (0.22, 0.25, 0.48), 2: (2.0, 2.07, 2.25), 4: (2.05, 2.15, 2.35), 8: (2.0, 2.2, 3.0)},
        source=LOGS_019,
    ),
    Epoch(
        span=Span(since=(0, 21)),
        measured=Span(since=(0, 21), until=(0, 21)),
        sampler_bytes=_UNSORTED,
        hidden=4,
        non_torch_gib={1: (0.2, 0.25, 0.8), 2: (1.0, 2.07, 2.6), 8: (1.5, 2.2, 3.5)},
        graphs=True,
        activation_spread=0.15,
        utilisation=0.92,
        source=f"{LOGS_019}; graphs counted, and 0.92 of the device taken, since 0.21 (PR 38284)",
    ),
)
SANITY_065 = {1: (1.6, 1.79, 1.9), 2: (3.4, 3.58, 3.7)}
"""non-torch as 0.6.5 counted it (PR 10511), neither before nor after."""

_FIXED_GIB, _FORWARD_FIXED_GIB, _VISION_GIB = 0.04, 0.015, 0.17
"""What logs hold beyond the terms of size: of the sampler's run, the forward run, a vision tower's dummy images."""
_GRAPH_GIB, _GRAPH_LAYER_GIB = 0.32, 0.0185
"""CUDA graphs of 51 batch sizes: fixed, and per layer (0.19 logs, actual use)."""
MEASURED = ", ".join(row.measured.words() for row in EPOCHS if row.measured.since != row.measured.until)
NEWEST: Version = (0, 19)
"""What is planned for where no release is named: the newest of which logs were fitted."""


CPU_POOL_BYTES = 4 * GIB
"""The pool on CPUs where VLLM_CPU_KVCACHE_SPACE is not set (0.8-0.11 logs: "using 4 by default")."""


def epoch_of(version: Version) -> Epoch:
    """The row of a release."""
    return next(row for row in EPOCHS if row.span.holds(version))


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """The two limits of a step that a start-up is sized by."""

    seqs: int
    tokens: int
    chunked: bool = True


_GREAT_BYTES = 70 * GIB
_CHUNK_BY_DEFAULT_ABOVE = 32_768


def vllm_batch(
    settings: Settings, context: int, *, visible_bytes: float, device: str, version: Version, ranks: int = 1
) -> Batch:
    """max_num_seqs and max_num_batched_tokens as given or as vLLM chooses them for a device.

    Source: vLLM, `EngineArgs.get_batch_defaults`: a device of 70 GiB or more that is no A100 gets the large pair.
    """
    name = device.lower()
    if version < (0, 8):
        return _first_engine_batch(settings, context, version)
    if "cpu" in name:
        seqs, tokens = (128 * ranks, 2048 * ranks) if settings.served else (256 * ranks, 4096 * ranks)
    elif visible_bytes >= _GREAT_BYTES and "a100" not in name:
        seqs, tokens = 1024, 8192 if settings.served else 16384
    else:
        seqs, tokens = 256, 2048 if settings.served else 8192
    if settings.batched_tokens is None:
        if settings.chunked is False:
            tokens = max(tokens, context)
        tokens = min(tokens, (settings.max_seqs or seqs) * context)
    else:
        tokens = settings.batched_tokens
    return Batch(seqs=settings.max_seqs or min(seqs, tokens), tokens=tokens)


def _first_engine_batch(settings: Settings, context: int, version: Version) -> Batch:
    """V0: prompts are cut into chunks only above 32,768 tokens of context, or where asked; else one step holds all."""
    chunked = context > _CHUNK_BY_DEFAULT_ABOVE if settings.chunked is None else settings.chunked
    chosen = (512 if version < (0, 6, 5) else 2048) if chunked else max(context, 2048)
    return Batch(seqs=settings.max_seqs or 256, tokens=settings.batched_tokens or chosen, chunked=chunked)


def vllm_terms(rank: Rank, batch: Batch, version: Version, *, eager: bool = False) -> tuple[Term, ...]:
    """What vLLM subtracts from its share of the device before the KV pool: weights, activation, the rest, graphs."""
    row = epoch_of(version)
    terms = [_weights(rank), _activation(rank, batch, version, row), _non_torch(rank, version, row)]
    if row.graphs and not eager:
        terms.append(_graphs(rank, batch, row))
    return tuple(terms)


def _weights(rank: Rank) -> Term:
    return Term(name="weights", bytes=sure(rank.weights_bytes), formula="given", values={"bytes": rank.weights_bytes})


def sure(value: float) -> Interval:
    """A figure that is known."""
    return Interval(value, value, value)


def around(value: float, spread: float) -> Interval:
    """A figure known to within this share."""
    return Interval(value * (1 - spread), value, value * (1 + spread))


def _activation(rank: Rank, batch: Batch, version: Version, row: Epoch) -> Term:
    """The greater of what the sampler's and the forward run hold at their peak; a middle stage has no sampler.

    A stage that is not the first keeps two further vectors per token: what the stage before hands over.
    """
    shape, element = rank.shape, element_of(rank)
    hidden = batch.tokens * shape.hidden * element
    experts = expert_bytes(rank, batch.tokens)
    forward = forward_bytes(rank, batch.tokens, row.hidden) + _FORWARD_FIXED_GIB * GIB
    sampler = (row.sampler_bytes + element) * batch.seqs * shape.vocab + hidden + _FIXED_GIB * GIB
    samples = rank.last and (version >= (0, 8) or not batch.chunked)
    vision = _VISION_GIB * GIB if rank.first and any(extra.loaded for extra in shape.extras) else 0.0
    handed = 0.0 if rank.first else 2.0 * hidden
    kept = experts if row.workspace else 0.0
    peak = max(sampler + kept if samples else 0.0, forward + experts) + vision + handed
    by_sampler = samples and sampler + kept > forward + experts
    named = (row.sampler_bytes + element) * batch.seqs * shape.vocab + hidden
    if not by_sampler:
        named = forward_bytes(rank, batch.tokens, row.hidden)
    values = {
        "max_seqs": batch.seqs,
        "vocab": shape.vocab,
        "sampler_bytes": row.sampler_bytes + element,
        "batched_tokens": batch.tokens,
        "hidden": shape.hidden,
        "vectors": row.hidden,
        "intermediate": widest(shape, rank.start, rank.stop) / rank.tensor,
        "element_bytes": element,
        "experts_bytes": experts,
        "vision_bytes": vision,
        "handed_bytes": handed,
        "other_bytes": peak - named,
    }
    low, high = row.activation_spread, row.activation_spread + 0.25 * experts / peak
    return Term(
        name="activation",
        bytes=Interval(peak * (1 - low), peak, peak * (1 + high)),
        formula="activation_sampler" if by_sampler else "activation_forward",
        values=values,
        span=row.span.words(),
        source=row.source,
    )


def element_of(rank: Rank) -> float:
    """Bytes of what the model computes in."""
    return 4.0 if rank.precision.lower() in {"fp32", "f32", "float32"} else 2.0


def widest(shape: Shape, start: int = 0, stop: int | None = None) -> int:
    """The widest dense feed-forward of these layers, a shared expert among them."""
    return max((_dense_width(block.feed_forward) for block, _ in shape.counted(start, stop)), default=0)


def _dense_width(part: Dense | Experts | None) -> int:
    if isinstance(part, Dense):
        return part.intermediate
    return part.shared_intermediate if part is not None else 0


def forward_bytes(rank: Rank, tokens: int, hidden: int = 4) -> float:
    """Peak of a forward run over `tokens`: gate, up and their product, and some vectors of the hidden width."""
    wide = 3 * widest(rank.shape, rank.start, rank.stop) / rank.tensor
    return element_of(rank) * tokens * (wide + hidden * rank.shape.hidden)


def expert_bytes(rank: Rank, tokens: int) -> float:
    """What routed experts work in, once per token and expert asked: gate and up or the output, and their product.

    None for 4-bit MXFP weights, whose kernels keep no such copy (0.11 logs of gpt-oss). Source: vLLM,
    `fused_experts` (the first and the third intermediate share their room).
    """
    parts = [block.feed_forward for block, _ in rank.shape.counted(rank.start, rank.stop)]
    routed = [part for part in parts if isinstance(part, Experts)]
    if not routed or "mxfp4" in rank.precision.lower():
        return 0.0
    cut = 1 if rank.expert > 1 else rank.tensor
    inner = [(part.per_token, part.intermediate / cut) for part in routed]
    each = max(asked * (max(2 * width, rank.shape.hidden) + width) for asked, width in inner)
    return element_of(rank) * tokens * each


def _non_torch(rank: Rank, version: Version, row: Epoch) -> Term:
    table = SANITY_065 if version[:3] == (0, 6, 5) else row.non_torch_gib
    staged = rank.pipeline > 1 and rank.tensor == 1
    low, mid, high = row.stage_non_torch_gib if staged else table[max(key for key in table if key <= rank.tensor)]
    return Term(
        name="non_torch",
        bytes=Interval(low * GIB, mid * GIB, high * GIB),
        formula="constant",
        values={"tensor": rank.tensor, "bytes": mid * GIB},
        span=row.span.words(),
        source=row.source,
    )


def _graphs(rank: Rank, batch: Batch, row: Epoch) -> Term:
    """By the layers and by how many batch sizes are captured: 1, 2, 4, each 8 up to 256, each 16 up to 512."""
    top = min(2 * batch.seqs, 512)
    sizes = 3 + min(top, 256) // 8 + max(0, top - 256) // 16
    mid = (_GRAPH_GIB + _GRAPH_LAYER_GIB * rank.layers * min(1.0, sizes / 51)) * GIB
    return Term(
        name="graphs",
        bytes=Interval(mid * 0.5, mid, mid * 3),
        formula="graphs",
        values={"layers": rank.layers, "sizes": sizes, "fixed_bytes": _GRAPH_GIB * GIB, "bytes": mid * GIB},
        span=row.span.words(),
        source=row.source,
    )
