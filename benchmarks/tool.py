"""Runs nilometer itself as a user would: `nilo measure ... --records FILE --json`, on the client's core."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import rig, truth

STATEMENT_BYTES = 300


@dataclass
class ToolRun:
    """What one `nilo measure` said and cost."""

    code: int
    summary: dict[str, Any]
    seen: list[truth.Seen]
    worker_cpu_ns: int
    """CPU of the load processes from just before the first request to a second after the last end: late parsing too."""
    tree_cpu_ns: int
    """The same for everything nilometer started."""
    rss_peak_bytes: dict[str, int]
    """Of the parent, and of the largest of its children."""
    ended_ns: int

    @property
    def generator(self) -> str:
        """The verdict on itself."""
        return str(self.summary["generator"]["verdict"])


@dataclass(frozen=True)
class Load:
    """A closed loop of `streams`, `requests` in all, of `tokens` each; the opening wave spread over `spread_ms`."""

    streams: int
    requests: int
    tokens: int
    spread_ms: float = 0

    def arguments(self) -> list[str]:
        """As `nilo measure` takes them: no warm-up, every request counts."""
        return [
            *("-c", str(self.streams)),
            *("--requests", str(self.requests)),
            *("--input-tokens", "16"),
            *("--output-tokens", str(self.tokens)),
            *("--warmup", "0s"),
            *("--ramp", f"{self.spread_ms:g}ms"),
        ]


def measure(
    url: str,
    load: Load,
    folder: Path,
    more: Sequence[str] = (),
    keep: bool = False,
    cores: Set[int] = frozenset({rig.CLIENT_CORE}),
) -> ToolRun:
    """One run, on the client's core unless said.

    With `keep` it goes into the archive of the scratch folder and no records file is written.
    """
    records, result = folder / "records.jsonl", folder / "summary.json"
    output = [] if keep else ["--no-archive", "--records", str(records)]
    command = [sys.executable, "-m", "nilometer", "measure", url, "--model", "mock", "--api", "chat", "--no-probe"]
    command += [*load.arguments(), *output, "--json", "-q", "--max-error-rate", "100%", *more]
    with (
        result.open("wb") as file,
        rig.start_client(
            command, cores, env=rig.client_environment(folder), stdout=file, stderr=subprocess.PIPE
        ) as process,
    ):
        with rig.Cost(process.pid) as cost:
            said = process.communicate()[1]
        ended_ns = time.monotonic_ns()
    if not result.stat().st_size:
        raise rig.RigError(
            f"nilo measure gave no result (exit {process.returncode}): {said.decode()[-STATEMENT_BYTES:]}"
        )
    seen = [] if keep else truth.seen_by_nilometer(truth.read_lines(records))
    return _run(process.returncode, json.loads(result.read_text("utf-8")), seen, cost, process.pid, ended_ns)


def _run(
    code: int, summary: dict[str, Any], seen: list[truth.Seen], cost: rig.Cost, parent: int, ended_ns: int
) -> ToolRun:
    children = {pid: peak for pid, peak in cost.rss_peak_bytes.items() if pid != parent}
    worker = tree = 0
    if seen:
        last_ns = max(request.end_ns or request.sent_ns for request in seen)
        spent = cost.spent_ns(min(request.sent_ns for request in seen) - 1_000_000, last_ns + 1_000_000_000)
        worker = sum(ns for pid, ns in spent.items() if pid != parent) or spent.get(parent, 0)
        tree = sum(spent.values())
    peaks = {"parent": cost.rss_peak_bytes.get(parent, 0), "worker": max(children.values(), default=0)}
    return ToolRun(code, summary, seen, worker, tree, peaks, ended_ns)
