"""A few shapes by hand, as their configs state them; layers of a kind stand together."""

from __future__ import annotations

from nilometer.plan.memory.kv import Cache, CacheLayers
from nilometer.plan.model.shape import Attention, Block, Dense, Experts, Latent, Recurrent, Shape


def dense(
    layers: int,
    hidden: int,
    intermediate: int,
    vocab: int,
    *,
    heads: int,
    kv_heads: int,
    head_dim: int = 128,
    max_context: int = 131_072,
    dtype: str = "bf16",
) -> Shape:
    mixer = Attention(heads=heads, kv_heads=kv_heads, head_dim=head_dim)
    return Shape(
        name="dense",
        hidden=hidden,
        vocab=vocab,
        kinds=(Block(mixer=mixer, feed_forward=Dense(intermediate=intermediate)),),
        order=(0,) * layers,
        tied=False,
        max_context=max_context,
        dtype=dtype,
    )


LLAMA_8B = dense(32, 4096, 14336, 128_256, heads=32, kv_heads=8)
CODELLAMA_7B = dense(32, 4096, 11008, 32_016, heads=32, kv_heads=32, max_context=16_384)
QWEN3_235B_ATTENTION = dense(94, 4096, 12288, 151_936, heads=64, kv_heads=4)
SMOL = dense(30, 576, 1536, 49_152, heads=9, kv_heads=3, head_dim=64, max_context=8_192)

_MLA = Latent(heads=16, kv_rank=512, rope_dim=64, nope_dim=128, value_dim=128)
DEEPSEEK_V2_LITE = Shape(
    name="DeepSeek-V2-Lite",
    hidden=2048,
    vocab=102_400,
    kinds=(
        Block(mixer=_MLA, feed_forward=Dense(intermediate=10_944)),
        Block(
            mixer=_MLA,
            feed_forward=Experts(experts=64, per_token=6, intermediate=1408, shared_intermediate=2816),
        ),
    ),
    order=(0,) + (1,) * 26,
    tied=False,
    max_context=163_840,
)

_WIDE = Dense(intermediate=15_360)
GEMMA3_12B = Shape(
    name="Gemma-3-12B",
    hidden=3840,
    vocab=262_208,
    kinds=(
        Block(mixer=Attention(heads=16, kv_heads=8, head_dim=256), feed_forward=_WIDE),
        Block(mixer=Attention(heads=16, kv_heads=8, head_dim=256, window=1024), feed_forward=_WIDE),
    ),
    order=(1, 1, 1, 1, 1, 0) * 8,
    tied=True,
    max_context=131_072,
)

_EXPERTS = Experts(experts=256, per_token=8, intermediate=512, shared_intermediate=512)
QWEN35_35B = Shape(
    name="Qwen3.5-35B-A3B",
    hidden=2048,
    vocab=248_320,
    kinds=(
        Block(mixer=Attention(heads=16, kv_heads=2, head_dim=256), feed_forward=_EXPERTS),
        Block(
            mixer=Recurrent(
                kind="gated_delta_net",
                parameters=0,
                state_elements=32 * 128 * 128 + 3 * 8192,
                convolution_elements=3 * 8192,
                state_bytes=4.0,
            ),
            feed_forward=_EXPERTS,
        ),
    ),
    order=(1, 1, 1, 0) * 10,
    tied=False,
    max_context=262_144,
)


def raw_cache(layers: int, kv_heads: int, head_dim: int, window: int | None = None) -> Cache:
    """What so many alike layers cache."""
    return (CacheLayers(count=layers, heads=kv_heads, key_dim=head_dim, value_dim=head_dim, window=window),)
