"""Runs with known figures for the tests of the comparison; nothing here is measured."""

from __future__ import annotations

from typing import Any

import msgspec

from nilometer.core.environment import Client, EngineFacts, Environment, Machine, ModelFacts
from nilometer.core.run import Health, Phases, Run
from nilometer.core.spec import Labels, Load, Prompts, Spec
from nilometer.core.summary import Counts, Distribution, Generator, Length, Lengths, Summary, Throughput, Window

WHEN = Phases(started_wall_ns=0, start_ns=0, measured_ns=60, stop_ns=240, end_ns=250)


def summary(ttft_p95: float | None = 400.0, tpot_p50: float | None = 20.0, tokens: float | None = 600.0) -> Summary:
    """Of the primary figures those given; the others follow from them."""
    ttft = Distribution(n=900, p50=None if ttft_p95 is None else ttft_p95 / 2, p95=ttft_p95)
    tpot = Distribution(n=900, p50=tpot_p50, p95=None if tpot_p50 is None else tpot_p50 * 1.5)
    return Summary(
        window=Window(start_s=0.0, end_s=180.0, rule="auto", steady=True),
        requests=Counts(started=900, ok=900),
        run_requests=Counts(started=1200, ok=1200),
        latency_from="sent",
        latency_ms={"ttft": ttft, "tpot": tpot, "e2e": Distribution(n=900, p50=2900.0, p95=5000.0)},
        throughput=Throughput(
            output_tokens_per_s=tokens,
            requests_per_s=None if tokens is None else tokens / 128,
            goodput_requests_per_s=0.0,
        ),
        lengths=Lengths(
            input=Length(mean=520.0, p50=512.0, p95=600.0, max=700), output=Length(mean=128.0, p50=128.0, p95=128.0)
        ),
        generator=Generator(verdict="fit"),
        server={"prefix_hit_ratio": 0.02},
    )


def environment() -> Environment:
    return Environment(
        machine=Machine(
            cpu_model="EPYC", cpu_count=2, cpu_governor="performance", container_cpu_limit=2.0, devices=["none"]
        ),
        engine=EngineFacts(name="llama.cpp", version="b7000", build="gcc", flags=["-np", "8"]),
        model=ModelFacts(id="qwen", file="/models/qwen.gguf", file_sha256="ab" * 32, precision="Q8_0"),
        client=Client(nilometer="0.1.0", python="3.11.7"),
    )


def run(run_id: str = "a", made: Summary | None = None, **fields: Any) -> Run:
    """A whole run of 16 in flight; `fields` replace those of the Run."""
    whole: dict[str, Any] = {
        "id": run_id,
        "spec": Spec(
            target="http://127.0.0.1:8000",
            model="qwen",
            api="chat",
            load=Load(concurrency=16),
            prompts=Prompts(input_tokens="512", output_tokens="128"),
            labels=Labels(service="chat", quantisation="Q8_0"),
        ),
        "environment": environment(),
        "phases": WHEN,
        "health": Health(),
        "summary": made or summary(),
        "findings": [],
        "verdict": "admissible",
    }
    return Run(**(whole | fields))


def changed(one: Run, path: str, value: object) -> Run:
    """The run with the field at a dotted path set: `spec.load.concurrency`."""
    changed: Run = _set(one, path.split("."), value)
    return changed


def _set(struct: Any, path: list[str], value: object) -> Any:
    inner = value if len(path) == 1 else _set(getattr(struct, path[0]), path[1:], value)
    return msgspec.structs.replace(struct, **{path[0]: inner})
