"""What a launch comes to on a device: choices that an engine makes by the device are made here as it would."""

from __future__ import annotations

import msgspec

from ..memory.kv import bytes_per_token, cache, cache_precision
from ..memory.startup import GIB, Settings
from ..model.shape import Shape
from ..versions import Span, parse_version
from .command import Launch

OLLAMA_SLOTS = 1
"""OLLAMA_NUM_PARALLEL where it is not set."""
OLLAMA_CONTEXTS = (
    (Span(until=(0, 6, 7)), ((0, 2_048),)),
    (Span(since=(0, 6, 7), until=(0, 15, 5)), ((0, 4_096),)),
    (Span(since=(0, 15, 5)), ((48, 262_144), (24, 32_768), (0, 4_096))),
)
"""num_ctx where nothing sets it, from so many GiB of the device's memory upwards (ollama, docs/context-length.mdx,
ollama#10451, ollama#14073)."""


def ollama_context(version: str | None, visible_bytes: float | None) -> int:
    """Tokens of one request that Ollama has room for unless told otherwise; without a device the least."""
    release = parse_version(version) or (1, 0)
    row = next(row for span, row in OLLAMA_CONTEXTS if span.holds(release))
    return next(tokens for gib, tokens in row if (visible_bytes or 0.0) >= gib * GIB)


def settled(launch: Launch, shape: Shape, visible_bytes: float | None = None, dtype: str = "bf16") -> Settings:
    """The settings as `memory` takes them: Ollama's as llama.cpp's own, a pool of tokens in bytes."""
    settings = launch.settings
    if launch.kv_tokens is not None and settings.kv_bytes is None and _uniform(shape):
        precision = cache_precision(launch.key_precision, launch.value_precision, dtype=dtype)
        per_token = bytes_per_token(cache(shape), precision, launch.parallel.tensor)
        settings = msgspec.structs.replace(settings, kv_bytes=launch.kv_tokens * per_token)
    if launch.engine != "ollama":
        return settings
    each = settings.context or ollama_context(launch.version, visible_bytes)
    each = min(each, shape.max_context or each)
    slots = settings.slots or OLLAMA_SLOTS
    return msgspec.structs.replace(settings, context=each * slots, slots=slots, unified=False)


def _uniform(shape: Shape) -> bool:
    """Whether a token takes the same in all layers: else a number of tokens, or of blocks, is not one of bytes."""
    return all(part.window is None and part.grows for part in cache(shape))
