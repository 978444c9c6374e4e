"""What a step has to read, multiply and send on one device: bytes and operations, no times."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from ..devices import Device
from ..memory.kv import CachePrecision, cache, cache_precision, need_bytes
from ..model.parallel import Parallel
from ..model.parameters import KEPT, Part, covered, parts
from ..model.precision import Precision
from ..model.shape import Attention, Experts, Latent, Mixer, Shape
from ..model.weights import rank_bytes

PLAIN_BYTES = 2.0


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """A model on a device by an engine. Only KV bytes of `cached` and the fields of `parallel` may be left out."""

    shape: Shape
    device: Device
    precision: Precision
    cached: CachePrecision = cache_precision()
    parallel: Parallel = Parallel()
    engine: str = "vllm"
    version: str | None = None
    """Of the engine; None = a recent one."""
    slots: int | None = None
    """How many requests one copy of the model serves at once (KV capacity, `-np`); None = no limit is known."""
    weight_scale: float = 1.0
    """True bytes of the weights over those of the shape and the precision."""


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """Of one step on one rank, all layers together. Bytes and operations are floats: shares of parts count."""

    sequences: float
    weight_bytes: float
    cache_bytes: float
    operations: float
    """On weights that every token meets."""
    expert_operations: float
    """On those of chosen experts."""
    attention_operations: float
    """On cached keys and values."""
    reduces: float
    """How many times ranks wait for one another."""
    sent_bytes: float
    """Over the link, in one direction."""


def decode_work(setup: Setup, batch: float, context: float) -> Work:
    """Of one token for each of `batch` sequences whose caches hold `context` tokens.

    With a pipeline: of all stages one after the other, `batch` being the sequences of one of its micro-batches.
    """
    split = setup.parallel
    whole = cache(setup.shape)
    per_token = sum(
        count * _attended(block.mixer, _seen(block.mixer, context), decode=True)
        for block, count in setup.shape.counted()
    )
    return Work(
        sequences=batch,
        weight_bytes=weights_read(setup, batch),
        cache_bytes=batch * need_bytes(whole, setup.cached, int(context), 1, split.tensor),
        operations=2.0 * batch * multiplied(setup),
        expert_operations=2.0 * batch * multiplied(setup, experts=True),
        attention_operations=batch * per_token / split.tensor,
        reduces=_reduces(setup),
        sent_bytes=_sent(setup, batch),
    )


def prefill_work(setup: Setup, tokens: float, prior: float = 0.0) -> Work:
    """Of a prompt of `tokens` tokens behind `prior` cached ones: 2 P n + 2 V H + 4 L heads dim n (n / 2 + prior)."""
    split = setup.parallel
    shape = setup.shape
    seen = sum(
        count * _attended(block.mixer, _seen(block.mixer, prior, tokens), decode=False)
        for block, count in shape.counted()
    )
    head = 2.0 * shape.vocab * shape.hidden / split.tensor
    return Work(
        sequences=1.0,
        weight_bytes=weights_read(setup, tokens),
        cache_bytes=need_bytes(cache(shape), setup.cached, int(prior + tokens), 1, split.tensor),
        operations=tokens * (2.0 * multiplied(setup) - head) + head,
        expert_operations=2.0 * tokens * multiplied(setup, experts=True),
        attention_operations=tokens * seen / split.tensor,
        reduces=_reduces(setup),
        sent_bytes=_sent(setup, tokens),
    )


def weights_read(setup: Setup, tokens: float) -> float:
    """Bytes of weights that one rank reads for a step of so many tokens.

    Of experts those that any token chose: 1 - (1 - k/E)^tokens of them where choices are independent. Ranks whose
    experts serve the tokens of more than one copy of the attention choose among all of these tokens.
    """
    chosen = max(1.0, tokens * setup.parallel.sharing)
    always, experts = _readable(setup.shape, setup.precision, setup.parallel)
    return setup.weight_scale * (always + sum(covered(part, chosen) * size for part, size in experts))


@lru_cache(maxsize=KEPT)
def _readable(shape: Shape, precision: Precision, parallel: Parallel) -> tuple[float, tuple[tuple[Part, float], ...]]:
    """Bytes on one rank of what every step reads whole, and of the experts."""
    sizes = [
        (part, rank_bytes(part, precision, parallel, tied=shape.tied))
        for part in parts(shape)
        if part.read not in {"row", "never"}
    ]
    always = sum(size for part, size in sizes if part.read != "experts")
    return always, tuple((part, size) for part, size in sizes if part.read == "experts")


def multiplied(setup: Setup, *, experts: bool = False) -> float:
    """Weights that one rank multiplies a token with, those of chosen experts or all others."""
    return _met(setup.shape, experts) / setup.parallel.tensor


@lru_cache(maxsize=KEPT)
def _met(shape: Shape, experts: bool) -> float:
    return sum(_multiplied(part) for part in parts(shape) if (part.read == "experts") == experts)


def _multiplied(part: Part) -> float:
    if part.read in {"row", "never"} or part.what in {"norm", "bias", "extra"}:
        return 0.0
    return part.parameters * part.per_token / part.ways if part.read == "experts" else float(part.parameters)


def _seen(mixer: Mixer | None, prior: float, tokens: float = 0.0) -> float:
    """How many tokens each of `tokens` new ones looks back to on average, `prior` standing before the first of them."""
    window, last = mixer.window if isinstance(mixer, Attention) else None, prior + tokens
    if window is None or last <= window:
        return prior + tokens / 2
    if prior >= window:
        return window
    return window - (window - prior) ** 2 / (2 * tokens)


def _attended(mixer: Mixer | None, context: float, *, decode: bool) -> float:
    """Operations of one query token on `context` cached ones in one layer, all heads.

    MLA: a decode step works on the compressed vectors, a prefill on the keys and values made of them.
    """
    if isinstance(mixer, Attention):
        return 4.0 * mixer.heads * mixer.head_dim * context
    if isinstance(mixer, Latent):
        compressed = 2 * mixer.kv_rank + mixer.rope_dim
        width = compressed if decode else mixer.nope_dim + mixer.rope_dim + mixer.value_dim
        return 2.0 * mixer.heads * width * context
    return 0.0 if mixer is None else 4.0 * mixer.state_elements


def expert_layers(shape: Shape) -> int:
    """Layers with experts."""
    return sum(count for block, count in shape.counted() if isinstance(block.feed_forward, Experts))


def _reduces(setup: Setup) -> float:
    """With tensor ranks an all-reduce behind each part of a layer; two exchanges for experts that other ranks hold."""
    split = setup.parallel
    reduced = _reduced(setup.shape) if split.tensor > 1 else 0.0
    return reduced + (2.0 * expert_layers(setup.shape) if split.expert > split.tensor else 0.0)


def _reduced(shape: Shape) -> float:
    """Parts whose output tensor ranks add up: mixer and feed-forward, so two a layer, but one where it is either."""
    return float(sum(n * ((one.mixer is not None) + (one.feed_forward is not None)) for one, n in shape.counted()))


def _sent(setup: Setup, tokens: float) -> float:
    """A ring sends 2 (n - 1) / n of what it reduces; an exchange sends a token's vector to each expert it chose."""
    split, shape = setup.parallel, setup.shape
    vector = tokens * shape.hidden * PLAIN_BYTES
    sent = 0.0
    if split.tensor > 1:
        sent += _reduced(shape) * 2 * (split.tensor - 1) / split.tensor * vector
    if split.expert > split.tensor:
        away = (split.expert - 1) / split.expert
        chosen = sum(count * _per_token(block.feed_forward) for block, count in shape.counted())
        sent += 2 * chosen * away * vector
    if split.pipeline > 1:
        sent += (split.pipeline - 1) * vector
    return sent


def _per_token(part: object) -> int:
    return part.per_token if isinstance(part, Experts) else 0
