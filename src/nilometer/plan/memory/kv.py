"""What a model caches: bytes per token and rank, a fixed state per sequence, and what N requests of a length need.

Pure arithmetic on a `Shape`. How an engine lays it out in blocks is `pool`'s part, how much
memory there is for it `startup`'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import msgspec

from nilometer.core.errors import SpecError

from ..model.shape import Attention, Latent, Recurrent, Shape

ELEMENT_BYTES: Mapping[str, float] = {
    "fp32": 4.0,
    "fp16": 2.0,
    "bf16": 2.0,
    "fp8": 1.0,
    "fp8_e4m3": 1.0,
    "fp8_e5m2": 1.0,
    "int8": 1.0,
    "int4": 0.5,
    "nvfp4": 0.5625,
    "f32": 4.0,
    "f16": 2.0,
    "q8_0": 34 / 32,
    "q5_1": 24 / 32,
    "q5_0": 22 / 32,
    "q4_1": 20 / 32,
    "q4_0": 18 / 32,
    "iq4_nl": 18 / 32,
}
"""THE table of what one cached element takes, its share of the scales of its block included (ggml: 32 elements)."""

_WORDS = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "half": "fp16"}
_INDEX_SCALE_ELEMENTS = 128
_FULL = 4.0
_FULL_STATES = frozenset({"sglang", "llama.cpp"})


class CacheLayers(msgspec.Struct, frozen=True, kw_only=True):
    """`count` layers that cache alike. Heads are dealt to the tensor ranks, the rest is whole on each of them."""

    count: int
    heads: int = 0
    key_dim: int = 0
    value_dim: int = 0
    """Elements a token and head caches as key and as value."""
    shared: int = 0
    """Elements a token caches once for all heads, whole on every rank: the compressed vector of MLA."""
    index_bytes: int = 0
    """Bytes of the cached key of a sparse indexer, whatever the precision of the rest."""
    window: int | None = None
    """The tokens it keeps; None = all."""
    state: int = 0
    """Elements a sequence keeps, however long it is."""
    state_bytes: float | None = None
    """Of one of them, where the model says so; None = as the engine chooses."""
    convolution: int = 0
    """The same in the model's own precision: the last inputs of a short convolution."""

    @property
    def grows(self) -> bool:
        """Whether a token adds to it."""
        return bool(self.heads or self.shared)


class CachePrecision(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes of one element of a key, a value, a recurrent state, and the convolution beside it."""

    key: float
    value: float
    state: float = 4.0
    convolution: float = 2.0


Cache = tuple[CacheLayers, ...]


def element_bytes(name: str) -> float:
    """Bytes of one cached element; SpecError for a name that is not in the table."""
    known = ELEMENT_BYTES.get(_WORDS.get(name.lower(), name.lower()))
    if known is None:
        raise SpecError("kv_precision_unknown", name=name, known=", ".join(sorted(ELEMENT_BYTES)))
    return known


def cache_precision(
    key: str = "auto", value: str | None = None, *, dtype: str = "bf16", engine: str = "vllm"
) -> CachePrecision:
    """Of `--kv-cache-dtype` (or llama.cpp's -ctk, -ctv). "auto" = what the model computes in: 4 bytes or 2.

    So is a recurrent state of which the model says nothing, but for engines that keep any in full precision.
    Sources: vLLM, `MambaStateDtypeCalculator` ("Setting attention block size to 544 tokens" for Qwen3-Next);
    TensorRT-LLM, `KvCacheConfig.mamba_ssm_cache_dtype`; SGLang, `mamba2_state_dtype`; llama.cpp, `llama-memory`.
    """
    plain = _FULL if dtype.lower() in {"fp32", "f32", "float32"} else 2.0
    of_key = plain if key == "auto" else element_bytes(key)
    of_value = of_key if value is None else plain if value == "auto" else element_bytes(value)
    state = _FULL if engine in _FULL_STATES else plain
    return CachePrecision(key=of_key, value=of_value, state=state, convolution=plain)


@lru_cache(maxsize=512)
def cache(shape: Shape, start: int = 0, stop: int | None = None) -> Cache:
    """What the layers `start` to `stop` cache, layers that cache alike together; those that cache nothing left out."""
    counts: dict[CacheLayers, int] = {}
    for block, count in shape.counted(start, stop):
        if (one := _one(block.mixer)) is not None:
            counts[one] = counts.get(one, 0) + count
    return tuple(msgspec.structs.replace(one, count=count) for one, count in counts.items())


def _one(mixer: Attention | Latent | Recurrent | None) -> CacheLayers | None:
    if isinstance(mixer, Attention):
        dim = mixer.head_dim
        return CacheLayers(count=1, heads=mixer.kv_heads, key_dim=dim, value_dim=dim, window=mixer.window)
    if isinstance(mixer, Latent):
        return CacheLayers(count=1, shared=mixer.kv_rank + mixer.rope_dim, index_bytes=_index_bytes(mixer.index_dim))
    if isinstance(mixer, Recurrent):
        convolution = mixer.convolution_elements
        rest = mixer.state_elements - convolution
        return CacheLayers(count=1, state=rest, state_bytes=mixer.state_bytes, convolution=convolution)
    return None


def _index_bytes(dim: int) -> int:
    """An indexer's key is kept in 8 bits with one 4-byte scale for each 128 (vLLM, `DeepseekV32IndexerCache`)."""
    return dim + 4 * -(-dim // _INDEX_SCALE_ELEMENTS)


def rank_heads(heads: int, tensor: int) -> int:
    """KV heads on one of `tensor` ranks; with more ranks than heads each rank has a whole copy of one."""
    return -(-heads // tensor)


def layer_bytes(layers: CacheLayers, precision: CachePrecision, tensor: int = 1) -> float:
    """Bytes a token adds on one rank in ONE of these layers."""
    split = rank_heads(layers.heads, tensor) * (layers.key_dim * precision.key + layers.value_dim * precision.value)
    return split + layers.shared * precision.key + layers.index_bytes


def layer_state_bytes(layers: CacheLayers, precision: CachePrecision, tensor: int = 1) -> float:
    """Bytes a sequence keeps on one rank in ONE of these layers, however long it is."""
    return (layers.state * state_element(layers, precision) + layers.convolution * precision.convolution) / tensor


def state_element(layers: CacheLayers, precision: CachePrecision) -> float:
    """Bytes of one element of such a state."""
    return precision.state if layers.state_bytes is None else layers.state_bytes


def bytes_per_token(cached: Cache, precision: CachePrecision, tensor: int = 1) -> float:
    """Bytes a token adds on one rank while no window is full."""
    return sum(part.count * layer_bytes(part, precision, tensor) for part in cached)


def state_bytes(cached: Cache, precision: CachePrecision, tensor: int = 1) -> float:
    """Bytes a sequence keeps on one rank, however long it is."""
    return sum(part.count * layer_state_bytes(part, precision, tensor) for part in cached)


def need_bytes(cached: Cache, precision: CachePrecision, context: int, concurrency: int = 1, tensor: int = 1) -> float:
    """Bytes that `concurrency` requests of `context` tokens hold on one rank, not rounded to blocks."""
    if context < 0 or concurrency < 0:
        key, value = ("context", context) if context < 0 else ("concurrency", concurrency)
        raise SpecError("plan_number_too_small", key=key, value=value, least=0)
    grown = sum(
        part.count * layer_bytes(part, precision, tensor) * min(context, part.window or context) for part in cached
    )
    return concurrency * (grown + state_bytes(cached, precision, tensor))
