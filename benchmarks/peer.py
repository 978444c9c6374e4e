"""Another load tool against the same server in the same hold: evalscope, one of the five measured for the goals.

It is not installed by this project. Give its program in NILO_BENCH_EVALSCOPE, or make an environment for it:
`python -m venv ~/.cache/nilometer-bench/evalscope` and install `evalscope[perf]` there. Without it the bench says so.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import rig, tool, truth
from .result import Row, shown
from .tool import Load

LOADS = (Load(8, 40, 40), Load(64, 128, 150), Load(256, 512, 150))
WAIT_S = 300


def peer() -> list[Row]:
    """Errors as percentile minus true percentile, for both tools: a peer's file has no request that could be joined."""
    program = _program()
    if program is None:
        note = "install evalscope[perf] in an environment of its own and set NILO_BENCH_EVALSCOPE"
        return [shown("evalscope", "not run", unit="", note=note)]
    rows = []
    for load in LOADS:
        rows += _compare(program, load)
    return rows


def _program() -> str | None:
    told = os.environ.get("NILO_BENCH_EVALSCOPE")
    usual = Path.home() / ".cache" / "nilometer-bench" / "evalscope" / "bin" / "evalscope"
    return told or (str(usual) if usual.exists() else shutil.which("evalscope"))


def _compare(program: str, load: Load) -> list[Row]:
    with rig.scratch() as folder:
        with rig.truth_server(folder) as server:
            theirs, cost = _evalscope(program, server.url, load, folder)
        their_truth = truth.read_lines(server.log)
        with rig.truth_server(folder) as server:
            ours = tool.measure(server.url, load, folder)
        our_truth = truth.read_lines(server.log)
    said = _said_by_us(ours.summary)
    name = f"evalscope, {load.streams} streams"
    rows = [
        shown(
            f"{name}: {metric.upper()} p{share}",
            theirs[metric, share] - _true(their_truth, metric, share),
            note=f"nilometer {said[metric, share] - _true(our_truth, metric, share):+.3f}",
        )
        for metric in ("ttft", "tpot", "e2e")
        for share in (50, 95, 99)
    ]
    events = load.requests * load.tokens
    theirs_us = sum(cost.spent_ns(*_span(their_truth)).values()) / 1000 / events
    mine_us = ours.tree_cpu_ns / 1000 / events
    return [
        *rows,
        shown(f"{name}: refill p50", _refill(their_truth), note=f"nilometer {_refill(our_truth):.3f}"),
        shown(f"{name}: CPU per event, all processes", theirs_us, unit="us", note=f"nilometer {mine_us:.1f}"),
    ]


def _evalscope(program: str, url: str, load: Load, folder: Path) -> tuple[dict[tuple[str, int], float], rig.Cost]:
    """Its percentiles in ms, and what its processes cost."""
    prompts = folder / "prompts.txt"
    prompts.write_text("".join(f"how high is the river on day {day}\n" for day in range(load.requests)), "utf-8")
    command = [program, "perf", "--url", f"{url}/v1/chat/completions", "--model", "mock", "--api", "openai", "--stream"]
    command += ["--parallel", str(load.streams), "--number", str(load.requests), "--max-tokens", str(load.tokens)]
    command += ["--dataset", "line_by_line", "--dataset-path", str(prompts), "--no-test-connection"]
    command += ["--outputs-dir", str(folder / "out"), "--no-timestamp", "--name", "bench"]
    environment = {**rig.client_environment(folder), "HF_HUB_OFFLINE": "1"}
    quiet = subprocess.DEVNULL
    with (
        rig.start_client(command, stdout=quiet, stderr=quiet, env=environment) as process,
        rig.Cost(process.pid) as cost,
    ):
        code = process.wait(WAIT_S)
    found = list((folder / "out").rglob("benchmark_percentile.json"))
    if code or not found:
        raise rig.RigError(f"evalscope gave no result (exit {code})")
    return _percentiles(json.loads(found[0].read_text("utf-8"))), cost


def _span(lines: Sequence[dict[str, Any]]) -> tuple[int, int]:
    """First request read to a second after the last byte, as for our own cost."""
    return min(line["read_ns"] for line in lines), max(line["end_ns"] for line in lines) + 1_000_000_000


def _percentiles(rows: Sequence[dict[str, Any]]) -> dict[tuple[str, int], float]:
    columns = {"ttft": ("TTFT (ms)", 1.0), "tpot": ("TPOT (ms)", 1.0), "e2e": ("Latency (s)", 1000.0)}
    by_name = {row["Percentiles"]: row for row in rows}
    return {
        (metric, share): by_name[f"{share}%"][column] * factor
        for metric, (column, factor) in columns.items()
        for share in (50, 95, 99)
    }


def _said_by_us(summary: dict[str, Any]) -> dict[tuple[str, int], float]:
    return {
        (metric, share): summary["latency_ms"][metric][f"p{share}"]
        for metric in ("ttft", "tpot", "e2e")
        for share in (50, 95, 99)
    }


def _true(lines: Sequence[dict[str, Any]], metric: str, share: int) -> float:
    values = []
    for line in lines:
        first, last = line["writes"][0][0], line["writes"][-1][0]
        if metric == "ttft":
            values.append(first - line["read_ns"])
        elif metric == "e2e":
            values.append(line["end_ns"] - line["read_ns"])
        else:
            values.append((last - first) / (line["output_tokens"] - 1))
    return truth.quantile([value / truth.NS_PER_MS for value in values], share / 100)


def _refill(lines: Sequence[dict[str, Any]]) -> float:
    return truth.quantile(truth.errors([], lines).refill or [float("nan")], 0.5)
