"""THE table of devices: what memory each has, how fast it reads it and computes, by the sheets of their vendors."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """One device; rates are of dense matrices, never the sparse ones. None = not stated or not supported."""

    name: str
    kind: str
    """gpu, apple, cpu, ..."""
    memory_bytes: float
    """What its label says."""
    visible_bytes: float | None = None
    """What its driver shows to a program."""
    bandwidth_bytes_per_s: float | None
    flops: Mapping[str, float]
    """Precision of the arithmetic (fp16, fp8, int8, fp4) -> operations per second."""
    link_bytes_per_s: float | None = None
    """To a neighbour of the same machine, in one direction."""
    link: str | None = None
    power_w: float | None = None
    confidence: str = "high"
    source: str
    note: str = ""
