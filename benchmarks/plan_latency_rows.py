"""The published measurements that plans of latency are held to, and the shapes of their models."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from nilometer.plan.devices import device
from nilometer.plan.kv import cache_precision
from nilometer.plan.parallel import Parallel
from nilometer.plan.precision import precision_of
from nilometer.plan.roofline import PRIOR, Latency, Lengths, Tuning, latency
from nilometer.plan.shape import Attention, Block, Dense, Experts, Latent, Shape
from nilometer.plan.throughput import held_requests, max_throughput
from nilometer.plan.weights import weight_bytes
from nilometer.plan.work import Setup

DATA = Path(__file__).parent / "data" / "plan_latency.csv"
KV_SHARE = 0.9
"""Of what weights leave on a device: the rest is activations, graphs, the driver."""


def _attention(heads: int, kv_heads: int, dim: int, window: int | None = None) -> Attention:
    return Attention(heads=heads, kv_heads=kv_heads, head_dim=dim, window=window)


def _shape(name: str, hidden: int, vocab: int, blocks: tuple[Block, ...], order: tuple[int, ...]) -> Shape:
    return Shape(name=name, hidden=hidden, vocab=vocab, kinds=blocks, order=order, tied=False)


def _dense(name: str, layers: int, hidden: int, heads: int, wide: int, vocab: int, kv_heads: int = 8) -> Shape:
    block = Block(mixer=_attention(heads, kv_heads, 128), feed_forward=Dense(intermediate=wide))
    return _shape(name, hidden, vocab, (block,), (0,) * layers)


def _mixed(name: str, layers: int, hidden: int, mixer: Attention, experts: Experts, vocab: int) -> Shape:
    return _shape(name, hidden, vocab, (Block(mixer=mixer, feed_forward=experts),), (0,) * layers)


def _gpt_oss() -> Shape:
    experts = Experts(experts=128, per_token=4, intermediate=2880, bias=True)
    kinds = tuple(Block(mixer=_attention(64, 8, 64, window), feed_forward=experts) for window in (128, None))
    return _shape("gpt-oss-120b", 2880, 201_088, kinds, (0, 1) * 18)


def _deepseek() -> Shape:
    mixer = Latent(heads=128, kv_rank=512, rope_dim=64, nope_dim=128, value_dim=128, query_rank=1536)
    experts = Experts(experts=256, per_token=8, intermediate=2048, shared_intermediate=2048)
    wide = Block(mixer=mixer, feed_forward=Dense(intermediate=18_432))
    return _shape("DeepSeek-V3", 7168, 129_280, (wide, Block(mixer=mixer, feed_forward=experts)), (0,) * 3 + (1,) * 58)


SHAPES: Mapping[str, Shape] = {
    shape.name: shape
    for shape in (
        _dense("Llama-3.1-8B", 32, 4096, 32, 14_336, 128_256),
        _dense("Llama-3.1-70B", 80, 8192, 64, 28_672, 128_256),
        _dense("Llama-3.1-405B", 126, 16_384, 128, 53_248, 128_256),
        _dense("Mistral-7B", 32, 4096, 32, 14_336, 32_768),
        _dense("Qwen3-32B", 64, 5120, 64, 25_600, 151_936),
        _mixed(
            "Mixtral-8x22B",
            56,
            6144,
            _attention(48, 8, 128),
            Experts(experts=8, per_token=2, intermediate=16_384),
            32_768,
        ),
        _mixed(
            "Qwen3-30B-A3B",
            48,
            2048,
            _attention(32, 4, 128),
            Experts(experts=128, per_token=8, intermediate=768),
            151_936,
        ),
        _mixed(
            "Qwen3-235B-A22B",
            94,
            4096,
            _attention(64, 4, 128),
            Experts(experts=128, per_token=8, intermediate=1536),
            151_936,
        ),
        _gpt_oss(),
        _deepseek(),
    )
}
"""By their published configs; norms are of no weight here."""


class Published(NamedTuple):
    """One measurement. What a source does not state is None."""

    id: str
    kind: str
    engine: str
    version: str
    model: str
    setup: Setup
    lengths: Lengths
    concurrency: float | None
    output_tokens_per_s: float | None
    ttft_ms: float | None
    tpot_ms: float | None
    assumed: str
    doubt: str
    source: str

    @property
    def group(self) -> tuple[object, ...]:
        """What one own measurement tells of: the same model, engine, release, device and spread over devices."""
        split = self.setup.parallel
        return (
            self.model,
            self.engine,
            self.version,
            self.setup.device.name,
            split.tensor,
            split.expert,
            self.setup.precision.name,
        )


@cache
def published() -> tuple[Published, ...]:
    """All rows, the doubtful ones too."""
    with DATA.open(newline="", encoding="utf-8") as lines:
        return tuple(_read(row) for row in csv.DictReader(lines))


def _number(text: str) -> float | None:
    return float(text) if text else None


def _read(row: Mapping[str, str]) -> Published:
    split = Parallel(tensor=int(row["tp"]), pipeline=int(row["pp"]), expert=int(row["ep"]), data=int(row["dp"]))
    setup = Setup(
        shape=SHAPES[row["shape"]],
        device=device(row["hw"]),
        precision=precision_of(row["precision"]),
        cached=cache_precision(row["kv_precision"]),
        parallel=split,
        engine=row["engine"],
        version=row["engine_version"] or None,
    )
    each = _number(row["concurrency"])
    return Published(
        id=row["id"],
        kind=row["kind"],
        engine=row["engine"],
        version=row["engine_version"],
        model=row["model"],
        setup=setup,
        lengths=Lengths(float(row["input_tokens"] or 512), float(row["output_tokens"] or 128)),
        concurrency=None if each is None else each * split.data,
        output_tokens_per_s=_number(row["output_tokens_per_s"]),
        ttft_ms=_number(row["ttft_ms"]),
        tpot_ms=_number(row["tpot_ms"]),
        assumed=row["assumed"],
        doubt=row["doubt"],
        source=row["url"],
    )


def kv_room_bytes(setup: Setup) -> float:
    """KV cache of one rank by the rule of thumb of this bench; the plan of memory knows better."""
    has = setup.device.visible_bytes or setup.device.memory_bytes
    return KV_SHARE * max(0.0, has - weight_bytes(setup.shape, setup.precision, setup.parallel))


def with_slots(row: Published) -> Setup:
    """The setup with as many slots as its KV cache holds."""
    held = held_requests(row.setup, row.lengths, kv_room_bytes(row.setup))
    return msgspec.structs.replace(row.setup, slots=held)


def planned(row: Published, tuning: Tuning = PRIOR) -> Latency | None:
    """The plan of a row; None where too little is stated for one."""
    if row.kind == "throughput":
        return max_throughput(row.setup, row.lengths, kv_room_bytes(row.setup), tuning=tuning)
    if row.concurrency is None:
        return None
    return latency(with_slots(row), row.lengths, row.concurrency, tuning)
