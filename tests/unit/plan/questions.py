"""Questions that the tests of advice ask, of shapes by hand."""

from __future__ import annotations

from tests.unit.plan.shapes import LLAMA_8B, dense

from nilometer.plan.devices import device
from nilometer.plan.latency.roofline import Lengths
from nilometer.plan.memory.startup import Settings
from nilometer.plan.model.precision import precision_of
from nilometer.plan.question import Question

LLAMA_70B = dense(80, 8192, 28_672, 128_256, heads=64, kv_heads=8)
LLAMA_1B = dense(16, 2048, 8192, 128_256, heads=32, kv_heads=8, head_dim=64)

CHAT = Question(
    shape=LLAMA_8B,
    precision=precision_of("bf16"),
    device=device("h100"),
    version="0.19.0",
    lengths=Lengths(1024, 256),
    context=8192,
    concurrency=32,
    settings=Settings(context=8192),
)
"""32 users of Llama-3.1-8B in BF16 on one H100."""
