"""Runs with records for the tests of reports: made by hand or by a seed, judged by the real metrics."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import msgspec
from tests.unit.archive.samples import make_run
from tests.unit.metrics.made import answered, failed, phases, spec, summary

from nilometer.core.environment import Client, EngineFacts, Environment, Machine, ModelFacts
from nilometer.core.finding import Evidence, Finding
from nilometer.core.record import Record
from nilometer.core.run import Phases, Run
from nilometer.core.spec import Labels, Prompts, Sampling, Scenario, Spec
from nilometer.report import charts
from nilometer.report.gather import gather
from nilometer.report.whole import Shown

HOSTILE = (
    "</script></title><img src=x onerror=\"window.hit=1\"><svg onload='window.hit=1'>"
    "`|*_[a](javascript:window.hit=1)&amp;\u2028\u202ex"
)


def run_of(records: Sequence[Record], borders: Phases, asked: Spec | None = None, **fields: Any) -> Run:
    """A run with the figures of these records."""
    made = asked or spec(window="auto")
    whole: dict[str, Any] = {"spec": made, "phases": borders, "findings": []}
    return make_run(**(whole | {"summary": summary(records, borders, made)} | fields))


def steady(
    n: int = 200, seed: int = 1, failures: int = 4, length_s: float = 40.0, slower: float = 1.0
) -> tuple[list[Record], Phases]:
    """`n` answered requests over warm-up (10 s), window and drain, some that failed, prompts of many lengths."""
    draw = Random(seed)
    records = []
    for i in range(n):
        sent = 0.1 + i * (length_s - 1) / n
        first = sent + draw.lognormvariate(-1.6, 0.5) * slower
        tokens = [first + 0.02 * k * draw.uniform(0.8, 1.2) for k in range(2 + i % 10)]
        tokens.sort()
        prompt = 40 + 37 * i % 860
        records.append(answered(sent, tokens, prompt_tokens=prompt, connect_ns=400_000 if i % 3 == 0 else None, seq=i))
    for i in range(failures):
        at_s = 12.0 + i
        records.append(failed(at_s, at_s + 0.5, "http_5xx", status=503, error_detail="no slot free", seq=n + i))
    return records, phases(10, length_s - 5, length_s)


def shown(*pairs: tuple[Run, Sequence[Record]], slowest: int = 50) -> Shown:
    """What a report of these runs is of."""
    runs = [run for run, _ in pairs]
    seen = [gather(run, records, slowest) for run, records in pairs]
    return Shown(runs, seen, charts.draw(runs, seen))


def hostile(run: Run) -> Run:
    """The same run with HOSTILE in every text that is not one of a closed list, dictionary keys included."""
    known = msgspec.structs.replace(
        run,
        environment=Environment(
            machine=Machine(os="x", kernel="x", cpu_model="x", cpu_count=2, devices=["x"]),
            engine=EngineFacts(name="x", version="x", build="x", flags=["x"], server_header="x"),
            model=ModelFacts(id="x", file="x", file_sha256="x", precision="x", requantised_from="x"),
            client=Client(nilometer="x", python="x", event_loop="x", workers=1),
        ),
        spec=msgspec.structs.replace(
            run.spec,
            model="x",
            prompts=Prompts(workload="x", workload_sha256="x", scenarios=(Scenario(name="x"),)),
            sampling=Sampling(extra_body={HOSTILE: "x"}),
            labels=Labels(service="x", service_version="x", model_version="x", quantisation="x", extra={HOSTILE: "x"}),
        ),
        findings=[
            Finding(
                slug="prefix_cache_hit",
                kind="validity",
                severity="high",
                params={"share": HOSTILE},
                evidence=[Evidence(name=HOSTILE, value=HOSTILE, unit=HOSTILE, level=HOSTILE, n=3)],
            )
        ],
    )
    tree = msgspec.to_builtins(known)
    tree |= {part: _spoilt(tree[part], closed) for part, closed in _CLOSED.items()}
    return msgspec.convert(tree, Run)


def hostile_records(records: Sequence[Record]) -> list[Record]:
    """The same records with HOSTILE in every text that a server can send."""
    names = ("error_detail", "finish_reason", "native_finish_reason", "server_request_id", "scenario", "conversation")
    texts = ("text", "reasoning")
    return [msgspec.structs.replace(record, **dict.fromkeys((*names, *texts), HOSTILE)) for record in records]


_CLOSED: dict[str, set[str]] = {
    "environment": set(),
    "spec": {"arrivals", "window", "slo", "think_s", "turns", "text", "temperature"}
    | {"connect_s", "first_s", "idle_s", "total_s"},
    "findings": {"slug", "class", "severity", "confidence"},
    "tool": set(),
}
"""Where a text may be from outside, and which fields there hold words of ours."""


def _spoilt(tree: Any, closed: set[str]) -> Any:
    if isinstance(tree, dict):
        return {name: value if name in closed else _spoilt(value, closed) for name, value in tree.items()}
    if isinstance(tree, list):
        return [_spoilt(value, closed) for value in tree]
    return HOSTILE if isinstance(tree, str) else tree
