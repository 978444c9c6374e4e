"""What SGLang, TensorRT-LLM, TGI and llama.cpp take before and beside their KV memory, and what pool that leaves.

Their rules are read from their sources and documentation; few start-up logs were at hand, so the intervals are wide.
"""

from __future__ import annotations

from ..interval import Interval
from ..model.shape import Attention, Latent
from ..versions import Span, Version
from .startup import GIB, Rank, Settings, Term, around, element_of, expert_bytes, forward_bytes, sure, widest

MIB = 2**20

SGLANG = "sglang, server_args.py `_handle_gpu_memory_settings`, model_runner.py `profile_max_num_token`"
TENSORRT = "TensorRT-LLM, docs reference/memory and KvCacheConfig"
TGI = "text-generation-inference, server/text_generation_server/models/flash_causal_lm.py `warmup`"
LLAMACPP = "llama.cpp start-up logs: ten of build 10434 on a CPU, three of builds below 5000 on CUDA"

_SGLANG_TABLE = (
    (20, 2048, 8, 8),
    (35, 2048, 24, 80),
    (60, 4096, 32, 160),
    (160, 8192, 256, 512),
    (float("inf"), 16384, 512, 512),
)
"""Below so many GiB: chunk, greatest graph batch with fewer than four tensor ranks, and with four or more."""
_SGLANG_OLD = ((16, 0.79), (8, 0.81), (4, 0.85), (2, 0.87), (1, 0.88))
"""mem_fraction_static by tensor ranks before 0.5."""
_CONTEXT_GIB = {1: (0.3, 0.5, 0.9), 2: (1.2, 2.0, 2.6)}
"""What a CUDA process and its communication take before the weights."""


def context_term(rank: Rank) -> Term:
    """The CUDA context, and NCCL's buffers where there are several ranks."""
    low, mid, high = _CONTEXT_GIB[2 if rank.tensor * rank.pipeline > 1 else 1]
    return Term(
        name="context",
        bytes=Interval(low * GIB, mid * GIB, high * GIB),
        formula="constant",
        values={"ranks": rank.tensor * rank.pipeline},
        source="vllm#21348 (SGLang and vLLM on the same four cards)",
    )


def weights_term(rank: Rank) -> Term:
    """As they lie in memory."""
    return Term(name="weights", bytes=sure(rank.weights_bytes), formula="given", values={"bytes": rank.weights_bytes})


def sglang_fraction(visible_bytes: float, rank: Rank, settings: Settings, version: Version) -> float:
    """mem_fraction_static as given or as SGLang chooses it: what is left when the rest is set aside.

    0 where the rest is more than there is, and of a device without memory of its own.
    """
    if settings.utilisation is not None:
        return settings.utilisation
    if version < (0, 5):
        return next(share for ranks, share in _SGLANG_OLD if rank.tensor >= ranks)
    visible_mib = visible_bytes / MIB
    chunk, small, large = next(row[1:] for row in _SGLANG_TABLE if visible_mib < row[0] * 1024)
    reserved = 512 + max(settings.batched_tokens or chunk, 2048) * 1.5
    reserved += (large if rank.tensor >= 4 else small) * 2 + rank.tensor * rank.pipeline / 8 * 1024
    if visible_mib > 60 * 1024:
        reserved = max(reserved, 10 * 1024)
    return round(max(0.0, visible_mib - reserved) / max(visible_mib, 1.0), 3)


def sglang_terms(rank: Rank, visible_bytes: float, settings: Settings, version: Version) -> tuple[Term, ...]:
    """Pool = fraction x (device - context) - weights: activation and graphs live in what the fraction leaves."""
    share = sglang_fraction(visible_bytes, rank, settings, version)
    context = context_term(rank)
    rest = Term(
        name="set_aside",
        bytes=sure((1 - share) * max(0.0, visible_bytes - context.bytes.mid)),
        formula="sglang_aside",
        values={"fraction": share, "visible_bytes": visible_bytes},
        span=">=0.5" if version >= (0, 5) else "<0.5",
        source=SGLANG,
    )
    return (weights_term(rank), context, rest)


def tensorrt_terms(rank: Rank, visible_bytes: float, settings: Settings, version: Version) -> tuple[Term, ...]:
    """Pool = fraction of what is free once weights, activation and context are there."""
    del version
    share = 0.9 if settings.utilisation is None else settings.utilisation
    tokens = settings.batched_tokens or 8192
    logits = 4.0 * (settings.max_seqs or 2048) * rank.shape.vocab
    forward = forward_bytes(rank, tokens) + expert_bytes(rank, tokens)
    activation = Term(
        name="activation",
        bytes=around(forward + logits, 0.4),
        formula="activation_tensorrt",
        values={"batched_tokens": tokens, "logits_bytes": logits, "forward_bytes": forward},
        source=TENSORRT,
    )
    return _with_share(rank, activation, visible_bytes, share, TENSORRT)


def tgi_terms(rank: Rank, visible_bytes: float, settings: Settings, version: Version) -> tuple[Term, ...]:
    """Pool = what is free after weights and one prefill at its limit, less a tenth of the device (its wiggle room)."""
    del version
    share = 0.9 * (1.0 if settings.utilisation is None else settings.utilisation)
    tokens = settings.batched_tokens or 4096
    activation = Term(
        name="activation",
        bytes=around(forward_bytes(rank, tokens) + expert_bytes(rank, tokens), 0.4),
        formula="activation_forward",
        values={
            "batched_tokens": tokens,
            "hidden": rank.shape.hidden,
            "vectors": 4,
            "intermediate": widest(rank.shape) / rank.tensor,
            "element_bytes": element_of(rank),
            "other_bytes": expert_bytes(rank, tokens),
        },
        source=TGI,
    )
    aside = Term(
        name="set_aside",
        bytes=sure((1 - share) * visible_bytes),
        formula="share_of_device",
        values={"fraction": share, "visible_bytes": visible_bytes},
        source=TGI,
    )
    return (weights_term(rank), context_term(rank), activation, aside)


def _with_share(rank: Rank, activation: Term, visible_bytes: float, share: float, source: str) -> tuple[Term, ...]:
    """The terms, and the part of what they leave free that the engine leaves alone."""
    taken = (weights_term(rank), context_term(rank), activation)
    free = max(0.0, visible_bytes - sum(term.bytes.mid for term in taken))
    aside = Term(
        name="set_aside",
        bytes=sure((1 - share) * free),
        formula="share_of_free",
        values={"fraction": share, "free_bytes": free},
        source=source,
    )
    return (*taken, aside)


LEAN_SINCE: Version = (10_000,)
"""From about this build (n_outputs_max) the buffer is made for the logits of one token per slot, not of all."""
_LEAN_UNSURE = Span(since=(9_526,), until=(10_434,))
"""Between the newest log that was seen without and the oldest with it."""


def llamacpp_build(version: Version | None) -> Version | None:
    """The build in what a llama.cpp calls itself: b7079, 0.10434.0 and 2026.10.11549 name theirs; None = none told."""
    build = max(version or (0,))
    return (build,) if build >= 100 else None


def llamacpp_terms(rank: Rank, visible_bytes: float, settings: Settings, version: Version) -> tuple[Term, ...]:
    """Weights, the compute buffer of one micro-batch and, on a GPU, its context; the cache is made beside them.

    `settings.context`: the cells of one stream of the cache. The buffer is the widest step of the graph in fp32: a
    feed-forward layer and the mask (fp16), or attention's scores where they are made whole, or the logits.
    """
    del visible_bytes
    shape, ubatch, cells = rank.shape, settings.ubatch or 512, settings.context or 0
    heads = max((block.mixer.heads for block in shape.kinds if isinstance(block.mixer, Attention | Latent)), default=0)
    layer = 4 * ubatch * (3 * widest(shape) + 4 * shape.hidden) + 2 * ubatch * cells
    scores = 0 if settings.flash else 4 * ubatch * (4 * shape.hidden + (heads + 1) * cells)
    lean, whole = (4 * (rows * shape.vocab + ubatch * shape.hidden) for rows in (settings.slots or 1, ubatch))
    logits = whole if version < LEAN_SINCE else lean
    peak = around(max(layer, scores, logits), 0.1)
    if _LEAN_UNSURE.holds(version):
        peak = Interval(0.9 * max(layer, scores, lean), peak.mid, 1.1 * max(layer, scores, whole))
    compute = Term(
        name="compute_buffer",
        bytes=peak,
        formula="compute_buffer",
        values={"ubatch": ubatch, "layer_bytes": layer, "scores_bytes": scores, "logits_bytes": logits},
        span=">=10000" if version >= LEAN_SINCE else "<10000",
        source=LLAMACPP,
    )
    context = () if rank.on_cpu else (context_term(rank),)
    return (weights_term(rank), compute, *context)
