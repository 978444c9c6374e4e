"""Joins what a client saw with what the server logged, request by request, and gives the errors: client minus truth.

Truth of a latency: the server's write of the frame minus the moment it had fully read the request, so that everything
in between on the client's side is the client's error. Pure: reads files of numbers, knows no tool's options.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NS_PER_MS = 1e6


@dataclass
class Seen:
    """One request as a client saw it. `frames`: (best stamp, user stamp, read held several events)."""

    id: str
    sent_ns: int
    end_ns: int | None
    frames: list[tuple[int, int, bool]]
    outcome: str = "ok"
    error: str | None = None
    tokens: int | None = None
    tpot_ms: float | None = None
    reasoning_tokens: int | None = None
    first_token_ns: int | None = None


@dataclass
class Errors:
    """Client minus truth in ms, one value a request (gaps: one a gap, absolute)."""

    ttft: list[float] = field(default_factory=list)
    ttft_from_arrival: list[float] = field(default_factory=list)
    e2e: list[float] = field(default_factory=list)
    tpot: list[float] = field(default_factory=list)
    gap: list[float] = field(default_factory=list)
    gap_user: list[float] = field(default_factory=list)
    refill: list[float] = field(default_factory=list)
    """Server's log alone: next request on the same connection arrived minus last byte of the one before."""
    write_to_stamp: list[float] = field(default_factory=list)
    server_late: list[float] = field(default_factory=list)
    """How far the server's own gaps were from the shortest common one: its lateness, not the client's."""
    shared_reads: int = 0
    events: int = 0
    tokens_per_s: float = 0.0
    """By the server's log: tokens over first request read to last byte written."""
    unmatched: int = 0


def read_lines(file: Path) -> list[dict[str, Any]]:
    """JSON lines."""
    return [json.loads(line) for line in file.read_text("utf-8").splitlines() if line]


def seen_by_floor(lines: Iterable[dict[str, Any]]) -> list[Seen]:
    """The output of the C drain or the bare client."""
    return [
        Seen(
            line["id"],
            line["sent_ns"],
            line["end_ns"],
            [(user if kernel is None else kernel, user, count > 1) for kernel, user, count in line["frames"]],
            "ok" if line["complete"] else "failed",
        )
        for line in lines
    ]


def seen_by_nilometer(lines: Iterable[dict[str, Any]]) -> list[Seen]:
    """Raw records of the contract. Requests that were never sent are left out."""
    found = []
    for line in lines:
        if line.get("sent_ns") is None:
            continue
        frames = [(user if kernel is None else kernel, user, shared) for kernel, user, _, shared in line["frames"]]
        counted = line["output_tokens"] if line["token_source"] == "usage" else None
        found.append(
            Seen(
                line["server_request_id"] or "",
                line["sent_ns"],
                line["end_ns"],
                frames,
                line["outcome"],
                line["error"],
                counted,
                line["tpot_ms"],
                line["reasoning_tokens"],
                line["first_token_ns"],
            )
        )
    return found


def errors(seen: Sequence[Seen], truth: Sequence[dict[str, Any]]) -> Errors:
    """All errors of one run; requests the server meant to fail count in none but `events`."""
    by_id = {line["id"]: line for line in truth}
    found = Errors()
    for request in seen:
        line = by_id.get(request.id)
        if line is None:
            found.unmatched += 1
        elif request.outcome == "ok" and line["meant"] == "ok" and request.frames:
            _add(found, request, line)
    found.refill = _refills(truth)
    found.tokens_per_s = tokens_per_s(truth)
    return found


def _add(found: Errors, request: Seen, line: dict[str, Any]) -> None:
    writes: list[list[int]] = line["writes"]
    first_ns = request.frames[0][0] if request.first_token_ns is None else request.first_token_ns
    seen_ns = first_ns - request.sent_ns
    found.ttft.append((seen_ns - (writes[0][0] - line["read_ns"])) / NS_PER_MS)
    arrived_ns = line.get("arrived_ns") or line["read_ns"]
    found.ttft_from_arrival.append((seen_ns - (writes[0][0] - arrived_ns)) / NS_PER_MS)
    if request.end_ns is not None:
        e2e_ns = request.end_ns - request.sent_ns
        found.e2e.append((e2e_ns - (line["end_ns"] - line["read_ns"])) / NS_PER_MS)
    if request.tpot_ms is not None and line["output_tokens"] > 1:
        true_ms = (writes[-1][0] - writes[0][0]) / (line["output_tokens"] - 1) / NS_PER_MS
        found.tpot.append(request.tpot_ms - true_ms)
    found.events += len(request.frames)
    found.shared_reads += sum(shared for _, _, shared in request.frames)
    if len(request.frames) == len(writes):
        _add_gaps(found, request, [write[0] for write in writes])


def _add_gaps(found: Errors, request: Seen, write_ns: Sequence[int]) -> None:
    frames = request.frames
    true_gaps = [after - before for before, after in itertools.pairwise(write_ns)]
    shortest = sorted(true_gaps)[len(true_gaps) // 2] if true_gaps else 0
    for number, true_ns in enumerate(true_gaps):
        best = frames[number + 1][0] - frames[number][0]
        user = frames[number + 1][1] - frames[number][1]
        found.gap.append(abs(best - true_ns) / NS_PER_MS)
        found.gap_user.append(abs(user - true_ns) / NS_PER_MS)
        found.server_late.append(abs(true_ns - shortest) / NS_PER_MS)
    found.write_to_stamp.extend((frame[0] - ns) / NS_PER_MS for frame, ns in zip(frames, write_ns, strict=True))


def _refills(truth: Sequence[dict[str, Any]]) -> list[float]:
    last_end: dict[int, int] = {}
    found = []
    for line in sorted(truth, key=lambda line: int(line["read_ns"])):
        before = last_end.get(line["connection"])
        if before is not None:
            found.append(((line.get("arrived_ns") or line["read_ns"]) - before) / NS_PER_MS)
        if line["end_ns"] is not None:
            last_end[line["connection"]] = line["end_ns"]
    return found


def tokens_per_s(truth: Sequence[dict[str, Any]]) -> float:
    """Output tokens of sound answers over first request read to last byte written."""
    sound = [line for line in truth if line["meant"] == "ok" and line["end_ns"]]
    if not sound:
        return 0.0
    span_ns = max(line["end_ns"] for line in sound) - min(line["read_ns"] for line in sound)
    return float(sum(line["output_tokens"] for line in sound) / (span_ns / 1e9))


def meant(truth: Iterable[dict[str, Any]]) -> Counter[tuple[str, str | None]]:
    """(outcome, error kind) the server meant, counted."""
    return Counter((line["outcome"], line["error"]) for line in truth)


def quantile(values: Sequence[float], share: float) -> float:
    """Type 7; raises ValueError on nothing, because 0 would be a lie."""
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    at = (len(ordered) - 1) * share
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)
