"""How llama.cpp divides its context over slots: one fixed cache made at start, split evenly or shared.

Source of the rules: llama.cpp, `src/llama-context.cpp`, `src/llama-kv-cache-iswa.cpp` and `tools/server/server.cpp`.
"""

from __future__ import annotations

import msgspec

from nilometer.core.errors import SpecError

from ..versions import Version
from .kv import Cache, CacheLayers, CachePrecision, layer_bytes, layer_state_bytes

AUTO_SLOTS = 4
AUTO_SINCE: Version = (7000,)
"""Builds from about here (November 2025) start 4 slots that share one cache unless -np is given; older ones start 1."""
MOST_SLOTS = 256
"""LLAMA_MAX_SEQ as it is built: with more the engine does not start."""
_PAD = 256
UBATCH = 512


class Slots(msgspec.Struct, frozen=True, kw_only=True):
    """What -c, -np and --kv-unified come to."""

    slots: int
    unified: bool
    cells: int
    """Tokens that the cache has room for, all slots together."""
    slot_context: int
    """The longest one request may become."""
    asked: int
    """-c as given, or the model's context where it is 0."""

    @property
    def guaranteed(self) -> int:
        """What each slot surely has while all are busy."""
        return self.slot_context if not self.unified else min(self.slot_context, self.cells // self.slots)


def llamacpp_slots(
    context: int,
    slots: int | None = None,
    *,
    unified: bool | None = None,
    trained: int | None = None,
    version: Version | None = None,
) -> Slots:
    """Of `-c CONTEXT -np SLOTS [--kv-unified]`; context 0 = as the model was trained, slots None or -1 = automatic.

    SpecError where no context is known, a number is below zero, or there are more slots than the engine takes.
    """
    asked = context or trained or 0
    if asked <= 0:
        raise SpecError("plan_number_too_small", key="context", value=asked, least=1)
    if slots is not None and slots != -1 and slots < 1:
        raise SpecError("plan_number_too_small", key="slots", value=slots, least=1)
    if slots is not None and slots > MOST_SLOTS:
        raise SpecError("plan_number_too_large", key="slots", value=slots, most=MOST_SLOTS)
    automatic = slots is None or slots == -1
    new = version is None or version >= AUTO_SINCE
    count = (AUTO_SLOTS if new else 1) if automatic else (slots or 1)
    shared = unified if unified is not None else automatic and new
    padded = _padded(asked)
    each = padded if shared else _padded(padded // count)
    cells = padded if shared else each * count
    return Slots(slots=count, unified=shared, cells=cells, slot_context=min(each, trained or each), asked=asked)


def _padded(tokens: int) -> int:
    return -(-tokens // _PAD) * _PAD


def llamacpp_cache_bytes(
    cached: Cache, precision: CachePrecision, slots: Slots, *, ubatch: int = UBATCH, full_windows: bool = False
) -> float:
    """Bytes of the cache that is made at start; a window keeps itself and the batch under way, for each slot."""
    streams = 1 if slots.unified else slots.slots
    each = slots.cells // streams
    total = 0.0
    for part in cached:
        cells = each if part.window is None or full_windows else _window_cells(part.window, each, slots, ubatch)
        total += part.count * streams * cells * layer_bytes(_plain(part), precision)
        total += part.count * slots.slots * layer_state_bytes(part, precision)
    return total


def _plain(part: CacheLayers) -> CacheLayers:
    """It keeps no separate key of an indexer in 8 bits."""
    return msgspec.structs.replace(part, index_bytes=0)


def _window_cells(window: int, each: int, slots: Slots, ubatch: int) -> int:
    kept = window * (slots.slots if slots.unified else 1) + ubatch
    return _padded(min(each, kept))
