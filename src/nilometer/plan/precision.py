"""THE table of precisions: the bits a weight really takes, what a cached key or value takes, what computes with it."""

from __future__ import annotations

import msgspec


class Precision(msgspec.Struct, frozen=True, kw_only=True):
    """One row. Bits count the scales and zero points of a group of weights, spread over its weights."""

    name: str
    linear_bits: float
    """Of the matrices inside the layers."""
    table_bits: float
    """Of the embedding and the output head."""
    arithmetic: str
    """The key of `Device.flops` that multiplies with it."""
    source: str
