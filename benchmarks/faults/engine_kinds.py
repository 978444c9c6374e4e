"""Kinds that lie in the engine: its slots, pool, batches, drafts and the machine under it."""

from __future__ import annotations

from math import ceil

from nilometer.core.environment import Environment, Machine, ModelFacts
from nilometer.plan.devices import device
from nilometer.sim.setting import Speculation

from .service import LONGEST, Draft, Draw, compute_bound

DEVICES = ("H100-SXM-80G", "A100-SXM-80G", "L40S", "L4", "RTX-4090", "A10", "H200-SXM-141G", "RTX-3090")
PARTS = ("H100-PCIe-80G", "A100-PCIe-80G", "L40S", "RTX-4090", "A10", "L4")


def _top_for(limit: float, size: float) -> int:
    """The power of two at which a limit is exceeded about 1.2 to 6 times."""
    top = 1
    while top < limit * (1.0 + 0.6 * size) or top < 2:
        top *= 2
    return min(max(top * (2 if size > 0.5 else 1), 4), 128)


def queue(d: Draft, draw: Draw, size: float) -> None:
    """Fewer slots than are asked for, and memory for more."""
    slots = draw.pick((2, 3, 4, 6, 12, 8, 12, 16))
    d.slots = slots if size > 0 else 2 * d.top
    d.top = _top_for(slots, size) if size > 0 else d.top
    d.growth = 1 + (d.growth - 1) * 0.6
    d.usage = draw.random.uniform(0.15, 0.4) * slots / d.top


def decode_bandwidth(d: Draft, draw: Draw, size: float) -> None:
    """A step takes as long as its bytes do: no fault but a limit, to be seen where device and model are told."""
    name = draw.pick(DEVICES)
    one = device(name)
    used = 0.3 + 0.6 * size
    weights = min(d.tpot * (one.bandwidth_bytes_per_s or 1e12) * used, one.memory_bytes * 0.75)
    d.tpot = weights / (one.bandwidth_bytes_per_s or 1e12) / used
    d.growth = min(d.growth, 1.35)
    d.environment = facts((name,), weights)
    d.also_client = d.also_server = ("healthy",)


def facts(devices: tuple[str, ...], weights: float) -> Environment:
    """What a run knows of a machine and its model: weights at 2 bytes each."""
    return Environment(
        machine=Machine(os="Linux", devices=list(devices)),
        model=ModelFacts(id="model", precision="bf16", parameters=int(weights / 2), file_bytes=int(weights)),
    )


def decode_compute(d: Draft, draw: Draw, size: float) -> None:
    """A step takes longer for each sequence in it."""
    each = draw.between(0.06, 0.9) * size + 0.005
    kinked = draw.chance(0.5)
    d.top = draw.random.choice((32, 64))
    d.output = max(d.output, 40)
    d.prefill_token_s = min(0.1 * d.output * d.tpot * each / d.prompt, d.prefill_s * 3)
    d.cost = compute_bound(d, each, kinked=kinked)
    d.usage = min(d.usage, 0.4)


def prefill(d: Draft, draw: Draw, size: float) -> None:
    """Prompts ask for more of the engine's time than there is at the top."""
    d.prompt, d.output = draw.between(1000, 4000), draw.between(8, 48)
    d.top = draw.random.choice((8, 16, 32))
    d.growth = min(d.growth, 1.3)
    wanted = (0.2 + 6 * size) * d.output * d.tpot * draw.random.uniform(0.8, 1.2)
    d.prefill_token_s = wanted / (d.top * d.prompt)
    d.chunk = int(draw.random.uniform(0.8, 3.0) * d.tpot / d.prefill_token_s) + 2 * d.top


def prefill_stalls(d: Draft, draw: Draw, size: float) -> None:
    """Prompts are computed whole, and all that decode stand still meanwhile."""
    d.top = draw.random.choice((4, 8))
    d.output = draw.between(120, 400)
    most = 0.4 * d.output / d.top
    steps = min(1 + 30 * size * draw.random.uniform(0.5, 1.0), most)
    d.tpot = max(d.tpot, 0.07 / max(steps, 1))
    d.prefill_token_s = steps * d.tpot / d.prompt
    d.policy = "blocking"
    d.chunk = int(d.prompt * LONGEST)


def kv_capacity(d: Draft, draw: Draw, size: float) -> None:
    """The pool holds fewer sequences than are asked for; slots are ample."""
    held = draw.pick((3, 4, 5, 6, 8, 10))
    d.output = max(d.output, draw.random.uniform(0.2, 1.0) * d.prompt)
    while d.output * d.tpot > 8:
        d.prompt, d.output = d.prompt / 2, d.output / 2
    d.prompt_cv, d.output_cv = min(d.prompt_cv, 0.5), min(d.output_cv, 0.5)
    d.top = _top_for(held, size)
    d.slots = 256
    each = d.prompt + 0.6 * d.output
    d.pool_tokens = int(held * each) if size > 0 else int(3 * d.top * each)


def static_batching(d: Draft, draw: Draw, size: float) -> None:
    """A batch takes nobody in until all of it have ended."""
    d.slots = draw.pick((4, 6, 8, 12, 16, 24))
    d.top = max(_top_for(d.slots, 0.3), 8)
    d.policy = "static" if size > 0 else "chunked"
    d.output_cv = 0.2 + 0.6 * size
    d.output = max(d.output, 40)
    d.usage = 0.3 * d.slots / d.top


def kv_reserved(d: Draft, draw: Draw, size: float) -> None:
    """Each sequence is given a whole context, of which it needs little."""
    needs = LONGEST * (d.prompt + d.output)
    d.context_tokens = ceil(needs * (1 + 3 * size * draw.random.uniform(0.5, 1.0)))
    fits = draw.pick((2, 3, 4, 5, 8, 6))
    d.reserve = "context"
    d.pool_tokens = (fits * d.context_tokens + d.context_tokens // 3) if size > 0 else 2 * d.top * d.context_tokens
    d.slots = draw.random.choice((32, 64, 128))
    d.top = _top_for(fits, size)
    d.slots = max(d.slots, d.top)
    d.also_client = ("queue",)


def careful_admission(d: Draft, draw: Draw, size: float) -> None:
    """Memory is set aside for all that a request may write; answers end long before."""
    d.output = max(d.output, 40)
    d.asked_over = 1 + 14 * size * draw.random.uniform(0.5, 1.0)
    fits = draw.pick((2, 3, 4, 5, 8, 6))
    d.reserve = "max_tokens"
    each = d.prompt + d.output * d.asked_over
    d.pool_tokens = int(max(fits, LONGEST) * each) if size > 0 else int(3 * d.top * each)
    d.slots = draw.random.choice((64, 128, 256))
    d.top = _top_for(max(fits, LONGEST), size)
    d.also_client = ("queue", "short_answers")
    d.also_server = ("short_answers",) if d.asked_over > 2 else ()


def interconnect(d: Draft, draw: Draw, size: float) -> None:
    """Of several devices each step waits for what goes between them."""
    name, n = draw.pick(PARTS), draw.random.choice((2, 4, 8))
    one = device(name)
    waits = 0.05 + 0.85 * size
    weights = min(d.tpot * (1 - waits) * (one.bandwidth_bytes_per_s or 1e12) * n * 0.8, n * one.memory_bytes * 0.75)
    d.growth = min(d.growth, 1.3)
    d.environment = facts((name,) * n, weights)
    d.also_client = d.also_server = ("healthy",) if waits < 0.3 else ()


def poor_drafts(d: Draft, draw: Draw, size: float) -> None:
    """Guesses cost more than they give."""
    d.top = min(d.top, 16)
    d.sparse = True
    d.output = min(d.output, 200)
    acceptance = 0.75 - 0.65 * size * draw.random.uniform(0.75, 1.0)
    d.speculation = Speculation(
        drafts=draw.random.choice((3, 4, 5, 6)), acceptance=acceptance, draft_share=draw.random.uniform(0.08, 0.25)
    )
    d.also_client = ("healthy", "grouped_tokens")


def adapters(d: Draft, draw: Draw, size: float) -> None:
    """More adapters are asked for than are held at once: the others wait, and loading one takes its time."""
    d.adapter_slots = draw.random.choice((1, 2, 3))
    d.adapters = draw.pick((4, 6, 8, 10, 12, 16)) if size > 0 else 1
    d.adapters = max(d.adapter_slots + 1, round(d.adapters * size)) if size > 0 else 1
    d.top = max(min(d.top, 32), 8)
    d.adapter_swap_s = 30 * size * draw.random.uniform(0.3, 1.0) * d.tpot
    d.also_client = ("queue",)
