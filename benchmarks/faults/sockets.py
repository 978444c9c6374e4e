"""`python -m benchmarks.faults.sockets [KIND...]`: faults on real sockets, what the diagnosis says of each ladder.

A mock plays the service, nilometer puts 1, 4 and 16 requests in flight and scrapes its page; client, proxy and limits
are real ones. Result: a row for each kind, and benchmarks/out/faults-sockets.json. About 20 minutes.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from nilometer.core.errors import NiloError
from nilometer.core.record import Record
from nilometer.core.run import Run
from nilometer.core.spec import Load, Prompts, Spec, Timeouts
from nilometer.engines.mock import launched
from nilometer.engines.mock_script import Script
from nilometer.engines.mock_service import Service, from_tree, ready
from nilometer.experiment.follow import Stop
from nilometer.experiment.measure import Place, measure

from .on_the_way import BUFFERS, Way, beside_burners, has_nginx, nginx, nothing, pool, tenants

OUT = Path(__file__).parents[1] / "out" / "faults-sockets.json"
COST = {"fixed_ms": 8, "prefill_ms_per_token": 0.08, "decode_ms_per_token": 0.05, "cached_ms_per_token": 0.0003}
LEVELS = {1: 12.0, 4: 8.0, 16: 8.0}
"""Measured seconds at each number of requests in flight: alone it takes longest to see enough of them."""
MIXED = {"input_tokens": "uniform:32,256", "output_tokens": "uniform:16,64"}


@dataclass(frozen=True)
class Kind:
    """One kind of fault: what is right to say of it, the service, what is on the way, and how it is asked."""

    name: str
    right: tuple[str, ...]
    """The answers that are right; none = healthy."""
    service: str | dict[str, Any] = "healthy"
    way: Way = nothing
    prompts: dict[str, Any] = field(default_factory=lambda: MIXED)
    levels: dict[int, float] = field(default_factory=lambda: LEVELS)
    spec: dict[str, Any] = field(default_factory=dict)

    def played(self) -> Service:
        """The service."""
        if isinstance(self.service, str):
            return ready()[self.service]
        return from_tree({"cost": COST, **self.service}, self.name)


def _kind(slug: str, service: str | dict[str, Any] | None = None, **more: Any) -> Kind:
    return Kind(more.pop("name", slug), (slug,), slug.replace("_", "-") if service is None else service, **more)


NO_PROBE = {"probe": False}
"""Where a probe might get lost, or take what is there for the load."""
LIMIT = {"timeouts": Timeouts(total_s=2.0)}
RETRIED = {"drop_share": 0.12, "timeout_s": 1.0, "retries": 4}
LONG_PREFIX = MIXED | {"shared_prefix_tokens": 160, "input_tokens": "uniform:180,700"}
SHORT = MIXED | {"output_tokens": "uniform:8,24"}
KINDS: tuple[Kind, ...] = (
    Kind("healthy", ()),
    Kind("healthy_replicas", (), {"replicas": 2}),
    _kind("generator_limited", "healthy", way=beside_burners(3)),
    _kind("client_pool", "healthy", way=pool(3)),
    _kind("buffered_stream", "healthy" if has_nginx() else None, way=nginx(BUFFERS) if has_nginx() else nothing),
    _kind("buffered_stream", name="buffered_in_the_service"),
    _kind("rate_limit"),
    _kind("failures", {"faults": {"drop_share": 0.08}}, name="failures_lost", spec=NO_PROBE | LIMIT),
    _kind("failures", name="failures_gateway", spec=NO_PROBE),
    _kind("failures", {"faults": RETRIED}, name="failures_retried", spec=NO_PROBE),
    _kind("too_short", "healthy", levels={1: 1.0, 4: 1.0, 16: 1.0}),
    _kind("prefix_flattered", {"setting": {"prefix_cache": True}}, prompts=LONG_PREFIX),
    _kind("unreal_lengths", "healthy", prompts={"input_tokens": "128", "output_tokens": "40"}),
    _kind("short_answers", {"faults": {"early_eos_share": 0.8}}),
    _kind("grouped_tokens"),
    _kind("queue"),
    _kind("decode_compute", prompts=SHORT),
    _kind("prefill"),
    _kind("prefill_stalls"),
    _kind("kv_capacity"),
    _kind("kv_reserved"),
    _kind(
        "careful_admission",
        {"setting": {"kv_blocks": 120, "reserve": "max_tokens"}, "faults": {"early_eos_share": 1, "early_eos_at": 0.1}},
        prompts=MIXED | {"output_tokens": "uniform:250,400"},
    ),
    _kind("static_batching"),
    _kind("cold_start", {"faults": {"cold_requests": 8, "cold_s": 1.0}}, spec=NO_PROBE),
    _kind("front_end"),
    _kind(
        "adapters",
        {"setting": {"adapter_slots": 1, "adapter_swap_s": 0.15, "slots": 6}, "adapters": ["blue", "white", "sobat"]},
        way=tenants(["white", "sobat"]),
        spec={"model": "blue"},
    ),
    _kind("poor_drafts"),
    _kind("noisy_neighbour"),
    _kind("growing_state"),
    _kind("throttling"),
    _kind("replica_imbalance"),
)


class Silent:
    """Nobody looks on."""

    def probing(self, step: str) -> None: ...

    def before(self, spec: Spec, **known: Any) -> None: ...

    def update(self, live: Any) -> None: ...


@dataclass
class Said:
    """What the diagnosis said of one kind."""

    kind: str
    right: tuple[str, ...]
    state: str
    findings: Sequence[tuple[str, str | None]]
    """Slug and confidence, the answer first."""
    scores: dict[str, float]
    """How far each cause held."""
    seconds: float
    seen: dict[str, Any]

    @property
    def answer(self) -> str:
        """One word."""
        return self.findings[0][0] if self.state in ("found", "vetoed") and self.findings else self.state

    @property
    def verdict(self) -> str:
        """`right`, `among` the findings, `abstained` or `wrong`."""
        if self.answer in (self.right or ("healthy",)):
            return "right"
        if {slug for slug, _ in self.findings} & {*self.right}:
            return "among"
        return "abstained" if self.state == "undecided" else "wrong"


def run(kind: Kind) -> Said:
    """Measure the ladder of a kind and ask the diagnosis."""
    from nilometer.diagnose.diagnosis import diagnose, scores
    from nilometer.diagnose.group import evidence_of_runs

    began = time.monotonic()
    runs: list[tuple[Run, list[Record]]] = []
    with launched(Script(), service=kind.played()) as mock, kind.way(mock.url, mock.pid) as url:
        for level, duration_s in kind.levels.items():
            runs.append(_level(kind, url, level, duration_s))
    group = evidence_of_runs(runs)
    found = diagnose(group)
    findings = [(finding.slug, finding.confidence) for finding in found.findings]
    seconds = time.monotonic() - began
    return Said(kind.name, kind.right, found.state, findings, scores(group), seconds, _seen(runs[-1][0]))


def _level(kind: Kind, url: str, level: int, duration_s: float) -> tuple[Run, list[Record]]:
    window = f"0..{duration_s:g}"  # so few seconds are none too many for a search for steadiness
    spec = Spec(
        target=url,
        load=Load(
            concurrency=level, warmup_s=2.0, duration_s=duration_s, window=window, drain_s=10.0, max_error_rate=1.0
        ),
        prompts=Prompts(**kind.prompts),
        **{"model": "mock", **kind.spec},
    )
    records: list[Record] = []
    place = Place(level=str(level))
    made = measure(spec, (), runs=None, watch=Silent(), stop=Stop(), place=place, take_records=records.extend)
    return made, records


def _seen(run: Run) -> dict[str, Any]:
    """Of the highest level, for who wonders."""
    summary = run.summary
    return {"ok": summary.requests.ok, "generator": summary.generator.verdict, "server": dict(summary.server)}


def main(names: Sequence[str]) -> int:
    """Runs the kinds of these names, or all."""
    said: list[Said] = []
    for kind in KINDS:
        if names and kind.name not in names:
            continue
        try:
            one = run(kind)
        except NiloError as fault:
            one = Said(kind.name, kind.right, "failed", [], {}, 0.0, {"error": str(fault)})
        said.append(one)
        others = ", ".join(f"{slug} ({sure})" for slug, sure in one.findings)
        print(f"{one.verdict:9}  {one.kind:24}  {one.answer:20}  {one.seconds:4.0f} s  {others}", flush=True)
    right = sum(one.verdict == "right" for one in said)
    print(f"{right} of {len(said)} right")
    OUT.parent.mkdir(exist_ok=True)
    rows = [asdict(one) | {"answer": one.answer, "verdict": one.verdict} for one in said]
    OUT.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
