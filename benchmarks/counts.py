"""Whether the counts are exact: tokens in awkward streams, and an outcome with its kind for every failure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from nilometer.engines.mock import launched
from nilometer.engines.mock_script import FAULTS, Fault, Script

from . import rig, tool, truth
from .result import Row, exact, shown
from .tool import Load

SMALL = Load(8, 24, 40)
MANY = Load(16, 240, 20)
QUICK = Script(ttft_ms=30, gap_ms=4)


def counts() -> list[Row]:
    """Each scenario against `nilo mock`, whose log says what was meant."""
    return [
        *_tokens("4 tokens a frame, running usage", replace(QUICK, tokens_per_frame=4, usage="running")),
        *_tokens("usage in the finish frame", replace(QUICK, usage="finish")),
        *_tokens("role frame first, comments, CRLF", replace(QUICK, role_lead_ms=20, comments=True, crlf=True)),
        *_tokens("15 reasoning tokens first", replace(QUICK, reasoning_tokens=15)),
        *_without_usage(),
        *_failures(),
    ]


def _against_mock(
    script: Script, load: Load, more: Sequence[str] = ()
) -> tuple[list[truth.Seen], list[dict[str, Any]]]:
    with rig.scratch() as folder, launched(script) as mock:
        rig.on_server_core(mock.pid)
        run = tool.measure(mock.url, load, folder, more)
        lines: list[dict[str, Any]] = [msgspec.to_builtins(line) for line in mock.truth()]
    return run.seen, lines


def _tokens(name: str, script: Script) -> list[Row]:
    seen, lines = _against_mock(script, SMALL)
    true = {line["id"]: line for line in lines}
    reasoning = {key: line["reasoning_tokens"] for key, line in true.items() if line["reasoning_tokens"]}
    rows = [
        exact(
            f"{name}: output tokens", {r.id: r.tokens for r in seen}, {k: v["output_tokens"] for k, v in true.items()}
        ),
        exact(f"{name}: frames", {r.id: len(r.frames) for r in seen}, {k: len(v["writes"]) for k, v in true.items()}),
    ]
    if reasoning:
        rows.append(exact(f"{name}: reasoning tokens", {r.id: r.reasoning_tokens for r in seen}, reasoning))
    return rows


def _without_usage() -> list[Row]:
    seen, lines = _against_mock(replace(QUICK, usage="none", tokens_per_frame=2), SMALL)
    return [
        exact("no usage: frames", sum(len(r.frames) for r in seen), sum(len(line["writes"]) for line in lines)),
        exact("no usage: requests said to be counted", sum(r.tokens is not None for r in seen), 0),
    ]


def _failures() -> list[Row]:
    """Every kind of failure at 5 %, those that only end by a limit included."""
    kinds = [kind for kind, fault in FAULTS.items() if fault.outcome is not None]
    script = replace(QUICK, faults=[Fault(kind, 0.05, FAULTS[kind].after) for kind in kinds], seed=3)
    seen, lines = _against_mock(script, MANY, ["--timeout", "first=1s,idle=1s"])
    said = Counter((request.outcome, request.error) for request in seen)
    meant = truth.meant(lines)
    rows = [
        exact(f"failures: {outcome} {error or ''}".strip(), said[outcome, error], count)
        for (outcome, error), count in sorted(meant.items(), key=str)
    ]
    unmeant = [f"{outcome} {error}" for outcome, error in said if (outcome, error) not in meant]
    drawn = Counter(line["meant"] for line in lines)
    listed = ", ".join(f"{kind} {count}" for kind, count in sorted(drawn.items()))
    return [*rows, exact("failures: kinds nobody meant", unmeant, []), shown("failures drawn", listed, unit="")]
