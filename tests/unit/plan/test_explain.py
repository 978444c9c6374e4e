"""Every formula of a plan multiplies out to what it is said to come to, worked here by hand."""

from __future__ import annotations

import pytest
from tests.unit.plan.shapes import LLAMA_8B

from nilometer.plan.answer import answer
from nilometer.plan.devices import device
from nilometer.plan.explain import Line, explain
from nilometer.plan.latency.roofline import Lengths
from nilometer.plan.memory.startup import Settings
from nilometer.plan.model.precision import precision_of
from nilometer.plan.question import Question
from nilometer.sources.models import known

GIB = 2**30


def question(**changes: object) -> Question:
    asked = {
        "shape": LLAMA_8B,
        "precision": precision_of("bf16"),
        "device": device("h100"),
        "lengths": Lengths(1792, 256),
        "context": 2048,
        "concurrency": 16,
    }
    return Question(**(asked | changes))  # type: ignore[arg-type]


def by_slug(asked: Question) -> dict[str, Line]:
    return {f"{line.section}.{line.slug}": line for line in explain(answer(asked))}


def test_the_guides_example() -> None:
    """2 x 32 x 8 x 128 x 2 = 131,072 bytes; 16 x 2,048 x that = 4 GiB."""
    lines = by_slug(question(device=None))
    one = lines["cache.attention"]
    assert (one.values["layers"], one.values["heads"], one.values["dim"], one.values["key"]) == (32, 8, 128, 2)
    assert one.result == 2 * 32 * 8 * 128 * 2 == 131_072
    assert lines["cache.requests"].result == 16 * 2048 * 131_072 == 4 * GIB
    assert not any(name.startswith(("memory", "decode")) for name in lines)


def test_memory_adds_up() -> None:
    lines = by_slug(question())
    usable, taken = lines["memory.usable"], [line for name, line in lines.items() if name.startswith("memory.term_")]
    assert usable.result == pytest.approx(0.9 * 79.19 * GIB)
    assert lines["memory.pool"].result == pytest.approx(usable.result - sum(line.result for line in taken))
    assert lines["memory.tokens"].result == lines["memory.pool"].result // (16 * 131_072) * 16
    assert lines["memory.concurrency"].result == pytest.approx(lines["memory.tokens"].result / 2048)
    peak = lines["memory.term_activation_sampler"]
    of = peak.values
    by_hand = float(of["max_seqs"]) * float(of["vocab"]) * float(of["sampler_bytes"])
    by_hand += float(of["batched_tokens"]) * float(of["hidden"]) * 2 + float(of["other_bytes"])
    assert peak.result == pytest.approx(by_hand)
    assert peak.releases == ">=0.17,<0.21"


@pytest.mark.parametrize("name", ["llama-3.1-8b", "gemma-3-27b", "jamba-v0.1", "qwen3.5-9b", "deepseek-v2-lite"])
@pytest.mark.parametrize(
    ("engine", "version"), [("vllm", "0.19"), ("vllm", "0.24"), ("sglang", None), ("tensorrt-llm", None)]
)
def test_requests_multiply_out_however_layers_cache(name: str, engine: str, version: str | None) -> None:
    shape = known.shape_of_row(known.look_up(name).row)
    asked = question(shape=shape, engine=engine, version=version, context=8190, device=device("b200"))
    lines = by_slug(asked)
    found = next(line for where, line in lines.items() if where.startswith("memory.concurrency"))
    of = {key: float(value) for key, value in found.values.items()}
    by_hand = {
        "concurrency": lambda: of["tokens"] / of["context"],
        "concurrency_kept": lambda: of["pool"] / of["needed"],
        "concurrency_grouped": lambda: of["blocks"] / of["needed"],
    }[found.slug]()
    assert found.result == pytest.approx(by_hand, rel=1e-3)
    assert found.result == pytest.approx(answer(asked).memory.concurrency.mid)  # type: ignore[union-attr]
    if "memory.tokens_shown" in lines:
        assert lines["memory.tokens_shown"].result == int(found.result * 8190)


def test_a_forward_peak_adds_up() -> None:
    """With few sequences it is the feed-forward layer that counts: T x (3 I + 4 H) x 2 bytes."""
    peak = by_slug(question(settings=Settings(max_seqs=16)))["memory.term_activation_forward"]
    of = peak.values
    by_hand = float(of["batched_tokens"]) * (3 * 14336 + 4 * 4096) * 2 + float(of["other_bytes"])
    assert peak.result == pytest.approx(by_hand)


def test_time_multiplies_out() -> None:
    lines = by_slug(question())
    for name in ("decode.weights", "decode.cache"):
        of = lines[name].values
        by_hand = float(of["bytes"]) / (float(of["gb_per_s"]) * 1e9 * float(of["share"])) * 1e3
        assert lines[name].result == pytest.approx(by_hand), name
    for name in ("prefill.compute", "prefill.attention", "decode.compute"):
        of = lines[name].values
        by_hand = float(of["tera_operations"]) / (float(of["tera_per_s"]) * float(of["share"])) * 1e3
        assert lines[name].result == pytest.approx(by_hand), name
    assert lines["prefill.compute"].values["share"] == pytest.approx(0.48)
    load = lines["load.throughput"].values
    by_hand = 1e3 * float(load["running"]) * float(load["output"]) / float(load["cycle_ms"])
    assert lines["load.throughput"].result == pytest.approx(by_hand)


def test_a_wait_for_slots_multiplies_out() -> None:
    queue = by_slug(question(concurrency=1000))["load.queue"]
    of = queue.values
    waits = float(of["cycle_ms"]) * (float(of["asked"]) / float(of["running"]) - 1)
    assert queue.result == pytest.approx(float(of["first_ms"]) + waits)


@pytest.mark.parametrize("row", known.table(), ids=lambda row: row.name)
def test_every_known_model_is_explained(row: known.Known) -> None:
    """The parts of a token are all of it."""
    shape = known.shape_of_row(row)
    found = answer(question(shape=shape, precision=precision_of(shape.dtype), device=None))
    lines = explain(found)
    per_token = [line.result for line in lines if line.section == "cache" and line.slug.startswith(("att", "lat"))]
    assert sum(per_token) == pytest.approx(found.kv_bytes_per_token)
