"""The machine form of a run: the contract's Summary object, its keys in the contract's order.

Used by every command that prints a run as JSON. Builds plain values, computes no figure.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from nilometer import __version__
from nilometer.core.finding import Finding
from nilometer.core.run import FORMAT, Run
from nilometer.core.summary import Distribution, Summary

if TYPE_CHECKING:
    from nilometer.metrics.slo import Held

LATENCIES = (
    "ttft",
    "ttfa",
    "tpot",
    "itl",
    "frame_gap",
    "e2e",
    "start_lag",
    "connect",
    "refill",
    "ttft_from_sent",
    "e2e_from_sent",
)
"""The contract's order; what a Summary holds beyond it follows in its own."""


def head(kind: str) -> dict[str, object]:
    """What every object begins with."""
    return {"nilometer": __version__, "format": FORMAT, "kind": kind}


def run_object(run: Run) -> dict[str, object]:
    """The Summary object of one run (kind `run`). What was not measured is None, a latency without any figure too."""
    summary = run.summary
    return {
        **head("run"),
        "definitions": run.definitions,
        "run": run.id,
        "group": run.group,
        "role": run.role,
        "origin": run.origin,
        "started": _started(run),
        "verdict": run.verdict,
        "findings": findings_of(run.findings),
        "spec": _spec(run),
        "environment": msgspec.to_builtins(run.environment),
        "window": msgspec.to_builtins(summary.window),
        "requests": msgspec.to_builtins(summary.requests),
        "run_requests": msgspec.to_builtins(summary.run_requests),
        "latency_from": summary.latency_from,
        "latency_ms": _latencies(summary),
        "throughput": msgspec.to_builtins(summary.throughput),
        "lengths": msgspec.to_builtins(summary.lengths),
        "generator": _generator(summary),
        "memory": msgspec.to_builtins(summary.memory),
        "server": dict(summary.server),
        "timeline": msgspec.to_builtins(summary.timeline),
        "scenarios": msgspec.to_builtins(summary.scenarios),
        "recovery": msgspec.to_builtins(summary.recovery),
        "level": run.level,
        "order": run.order,
        "slo": [_bound(held) for held in bounds_held(run)],
        "cost": msgspec.to_builtins(summary.cost),
        "quota": msgspec.to_builtins(summary.quota),
        "efficiency": msgspec.to_builtins(summary.efficiency),
        "host": dict(summary.host),
        "tool": run.tool,
        "tool_version": run.tool_version or None,
    }


def _started(run: Run) -> str | None:
    """None for an imported run whose file does not tell it; what is filed then is when the file was written."""
    return rfc3339(run.phases.started_wall_ns) if run.start_known else None


def _spec(run: Run) -> dict[str, Any]:
    """The spec. Of an imported run only what a file can tell; a default there would be a claim."""
    tree: dict[str, Any] = msgspec.to_builtins(run.spec)
    if run.origin != "imported":
        return tree
    load = run.spec.load
    told = {name: None if name not in _TOLD else tree["load"][name] for name in tree["load"]}
    told["arrivals"] = load.arrivals if load.is_open else None
    told |= {name: tree["load"][name] or None for name in ("warmup_s", "duration_s")}
    unknown = _unknown(tree)
    known = {name: tree[name] for name in ("model", "stream", "labels")}
    api = None if run.spec.api == "auto" else run.spec.api
    return {**unknown, **known, "target": run.spec.target or None, "api": api, "load": told}


_TOLD = frozenset(("concurrency", "rate_per_s", "requests"))
"""Keys of the load that are None where a file does not tell them."""


def _unknown(tree: dict[str, Any]) -> dict[str, Any]:
    """The same keys without a value; tables of any keys are empty."""
    return {name: _unknown(value) if isinstance(value, dict) else None for name, value in tree.items()}


def group_object(group: str, kind: str, runs: Sequence[Run], findings: Sequence[Finding] = ()) -> dict[str, object]:
    """The object of a group (kind `group`): `kind` is its type; knee and greatest load are a sweep's, else None."""
    bend, border = _curve(runs) if kind == "sweep" else (None, None)
    return {
        **head("group"),
        "group": group,
        "type": kind,
        "runs": [run_object(run) for run in runs],
        "knee": bend,
        "greatest_load": border,
        "findings": findings_of(findings),
    }


def _curve(runs: Sequence[Run]) -> tuple[float | None, dict[str, float | None] | None]:
    from nilometer.metrics.curve import greatest, knee, rungs_of

    rungs = rungs_of(runs)
    asked = [run for run in runs if run.spec.slo]
    found = greatest(rungs) if asked else None
    closed = not any(run.spec.load.is_open for run in runs)
    return knee(rungs) if closed else None, None if found is None else found._asdict()


def rfc3339(wall_ns: int) -> str:
    """A moment of the wall clock in UTC with milliseconds: `2026-08-14T09:26:53.120Z`."""
    seconds, rest_ns = divmod(wall_ns, 1_000_000_000)
    moment = datetime.fromtimestamp(seconds, tz=UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{rest_ns // 1_000_000:03}Z"


def bounds_held(run: Run) -> list[Held]:
    """Each bound of the run's SLO beside what was measured; none where none was asked for."""
    from nilometer.metrics import slo

    return slo.met(slo.parse(run.spec.slo), run.summary) if run.spec.slo else []


def _bound(held: Held) -> dict[str, object]:
    """The value in the unit beside it: ms, a share of 1, or per second. `met` is None where it was not measured."""
    return {"bound": held.bound.text, "value": held.value, "unit": held.bound.unit, "met": held.met}


def findings_of(findings: Sequence[Finding]) -> list[dict[str, object]]:
    """Each as the contract has it."""
    return [_finding(finding) for finding in findings]


def _finding(finding: Finding) -> dict[str, object]:
    """The contract's keys, then the parameters of its sentence."""
    tree: dict[str, Any] = msgspec.to_builtins(finding)
    params = tree.pop("params")
    return {**tree, "params": params}


def _latencies(summary: Summary) -> dict[str, object]:
    held = summary.latency_ms
    names = [*LATENCIES, *(name for name in held if name not in LATENCIES)]
    return {name: _distribution(held.get(name, Distribution())) for name in names}


def _distribution(distribution: Distribution) -> object:
    return None if distribution == Distribution() else msgspec.to_builtins(distribution)


def _generator(summary: Summary) -> dict[str, object]:
    tree: dict[str, object] = msgspec.to_builtins(summary.generator)
    return {**tree, "loop_lag_ms": _distribution(summary.generator.loop_lag_ms)}
