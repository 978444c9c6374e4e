"""How long a step takes: each of its parts by the roofline, and which of them is the wall.

t = max(W / (BW e_w), 2 P B / (C e_c)) + max(KV / (BW e_kv), attention / (C e_p)) + waits + launches.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from ..devices import Device
from .factors import Factors, factors
from .work import Setup, Work, decode_work, expert_layers, prefill_work

Wall = Literal["bandwidth", "compute", "interconnect", "overhead", "capacity"]

_NEXT_BEST = ("fp16", "int8", "fp8")


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds of each part of a step. `weights`, `cache`: reading; `compute`, `attention`: the operations beside it."""

    weights_s: float
    cache_s: float
    compute_s: float
    attention_s: float
    waits_s: float
    """Ranks waiting for one another, however little they send."""
    sending_s: float
    overhead_s: float
    host_s: float
    """What the host does meanwhile: it shows only where it takes longer than all the rest."""
    overlaps: bool

    @property
    def device_s(self) -> float:
        """What the device takes."""
        parts = self.waits_s + self.sending_s + self.overhead_s
        if self.overlaps:
            return max(self.weights_s, self.compute_s) + max(self.cache_s, self.attention_s) + parts
        return self.weights_s + self.compute_s + self.cache_s + self.attention_s + parts

    @property
    def seconds(self) -> float:
        """All of it."""
        return max(self.device_s, self.host_s)

    @property
    def fixed_s(self) -> float:
        """What would be there for the smallest batch too: weights, waits, launches."""
        return self.weights_s + self.waits_s + self.overhead_s

    @property
    def growing_s(self) -> float:
        """What the sequences of a batch add."""
        return self.seconds - self.fixed_s

    @property
    def riding_s(self) -> float:
        """What its tokens add to a step that reads the weights anyway: a chunk of a prompt beside decoding streams."""
        return self.compute_s + self.attention_s + self.sending_s

    def walls(self) -> dict[Wall, float]:
        """Seconds that each wall stands for."""
        found: dict[Wall, float] = {
            "bandwidth": 0.0,
            "compute": 0.0,
            "interconnect": self.waits_s + self.sending_s,
            "overhead": self.overhead_s + self.seconds - self.device_s,
        }
        for read, made in ((self.weights_s, self.compute_s), (self.cache_s, self.attention_s)):
            if not self.overlaps or read >= made:
                found["bandwidth"] += read
            if not self.overlaps or made > read:
                found["compute"] += made
        return found


def rate(device: Device, arithmetic: str) -> float | None:
    """Operations per second in a precision; where the device has none of its own, in fp16. None = not stated."""
    known = device.flops
    return next((known[key] for key in (arithmetic, *_NEXT_BEST) if key in known), None)


def decode_step(setup: Setup, batch: float, context: float) -> Step:
    """One token for each of `batch` sequences of `context` tokens on one copy of the model.

    With p pipeline stages a token passes them all, each with its share of the batch: the sum of the stages.
    """
    row = factors(setup.engine, setup.device.kind, setup.version)
    share = max(1.0, batch / setup.parallel.pipeline)
    work = decode_work(setup, share, context)
    return _step(setup, row, work, row.batch, row.weights_penalty(share))


def prefill_step(setup: Setup, tokens: float, prior: float = 0.0) -> Step:
    """A prompt of `tokens` tokens by itself."""
    row = factors(setup.engine, setup.device.kind, setup.version)
    work = prefill_work(setup, tokens, prior)
    return _step(setup, row, work, row.prefill, 1.0)


def _step(setup: Setup, row: Factors, work: Work, share: float, penalty: float) -> Step:
    device = setup.device
    bandwidth = device.bandwidth_bytes_per_s or float("inf")
    arithmetic = row.arithmetic or setup.precision.arithmetic
    link = device.link_bytes_per_s
    layers = setup.shape.layers * row.layer_s + expert_layers(setup.shape) * row.expert_layer_s
    hops = (setup.parallel.pipeline - 1) * row.hop_s
    reached = rate(device, arithmetic)
    share *= row.fp4 if arithmetic == "fp4" and "fp4" in device.flops else 1.0
    sending = work.sent_bytes / (link * row.link) if link else 0.0
    return Step(
        weights_s=penalty * work.weight_bytes / (bandwidth * row.weights),
        cache_s=work.cache_bytes / (bandwidth * row.cache),
        compute_s=_took(work.operations, reached, share) + _took(work.expert_operations, reached, share * row.experts),
        attention_s=_took(work.attention_operations, rate(device, "fp16"), row.prefill),
        waits_s=work.reduces * row.reduce_s + hops,
        sending_s=sending,
        overhead_s=layers + work.sequences * row.sequence_s,
        host_s=work.sequences * row.token_s,
        overlaps=row.overlaps,
    )


def _took(operations: float, per_second: float | None, share: float) -> float:
    return 0.0 if per_second is None else operations / (per_second * share)


def crossover_batch(setup: Setup, context: float, most: int = 1 << 16) -> int | None:
    """The smallest batch whose operations take longer than reading the weights; None = none up to `most`."""
    if not _computes(setup, most, context):
        return None
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _computes(setup, middle, context) else (middle, high)
    return high


def _computes(setup: Setup, batch: int, context: float) -> bool:
    step = decode_step(setup, batch, context)
    return step.compute_s > step.weights_s
