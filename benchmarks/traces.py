"""Reading other people's files: a trace of 27 million rows inspected, 200 requests sampled from a million log lines.

The files are generated: Azure's layout of 2024 over a week, and LiteLLM's log with and without the prompts in it.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from . import rig
from .result import Row, judged, shown

DAYS = 7
DAY_US = 86_400_000_000
ROWS = 27_000_000
LINES = 1_000_000
SYSTEM_PROMPTS = 20


class Done(NamedTuple):
    """A command that has ended."""

    told: dict[str, Any]
    seconds: float
    rss_bytes: int
    progress: int


def traces(rows: int = ROWS, lines: int = LINES) -> list[Row]:
    """Both, each command in a process of its own."""
    with rig.scratch() as folder:
        return [
            *_inspected(folder, rows),
            *_sampled(folder, lines, prompts=False),
            *_sampled(folder, lines, prompts=True),
        ]


def quick_traces() -> list[Row]:
    """A tenth of each."""
    return traces(ROWS // 10, LINES // 10)


def _inspected(folder: Path, rows: int) -> list[Row]:
    file = folder / "azure.csv"
    written = _azure(file, rows)
    floor_s = _floor_s(file)
    done = _nilo(folder, "inspect", str(file))
    file.unlink()
    name = f"{written:,} rows inspected"
    scale = written / ROWS
    assert done.told["usable"] == written
    return [
        judged(
            f"{name}, core alone",
            done.seconds,
            floor_s,
            absolute=240 * scale,
            unit="s",
            note=f"floor: a C program reads and counts lines (wc -l); {done.progress} words of progress",
        ),
        judged(f"{name}, the goal of a columnar reader, core alone", done.seconds, absolute=60 * scale, unit="s"),
        judged(f"{name}: RSS", done.rss_bytes / 1e6, absolute=400, unit="MB"),
    ]


def _sampled(folder: Path, lines: int, *, prompts: bool) -> list[Row]:
    file = folder / "log.jsonl"
    _litellm(file, lines, prompts)
    size = file.stat().st_size
    done = _nilo(folder, "sample", str(file), "-n", "200", "-o", str(folder / "mix.toml"))
    file.unlink()
    name = f"200 of {lines:,} log lines, {'with' if prompts else 'without'} prompts"
    told = shown if prompts else judged
    goal = {} if prompts else {"absolute": 10 * lines / LINES}
    ks = done.told["ks"]
    return [
        told(name, done.seconds, unit="s", note=f"{size / 1e6:.0f} MB", **goal),  # type: ignore[operator]
        *(judged(f"{name}: KS of {margin}", distance, absolute=0.05, unit="") for margin, distance in ks.items()),
        judged(f"{name}: RSS", done.rss_bytes / 1e6, absolute=400, unit="MB"),
    ]


def _nilo(folder: Path, *arguments: str) -> Done:
    command = [sys.executable, "-m", "nilometer", "workload", *arguments, "--json"]
    out, err = folder / "out.json", folder / "err.txt"
    started = time.monotonic()
    with out.open("wb") as told, err.open("wb") as progress:
        process = subprocess.Popen(command, stdout=told, stderr=progress, env=rig.client_environment(folder))
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.monotonic() - started
    if process.returncode not in (0, 4):
        raise rig.RigError(err.read_text("utf-8")[-500:])
    return Done(json.loads(out.read_bytes()), seconds, used.ru_maxrss * 1024, err.read_bytes().count(b"\n"))


def _floor_s(file: Path) -> float:
    started = time.monotonic()
    subprocess.run(["wc", "-l", str(file)], check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - started


def _azure(file: Path, rows: int) -> int:
    """One day is made and written once for each day of the week; returns how many rows there are."""
    random_ = np.random.default_rng(0)
    a_day = rows // DAYS
    at_us = np.sort(random_.integers(0, DAY_US, a_day))
    asked = np.clip(random_.lognormal(7, 1.1, a_day), 1, 126_000).astype(np.int64)
    answered = np.clip(random_.lognormal(4.7, 1, a_day), 1, 4_000).astype(np.int64)
    with file.open("wb") as out:
        out.write(b"TIMESTAMP,ContextTokens,GeneratedTokens\n")
        for day in range(DAYS):
            moment = np.datetime64("2024-05-10", "us") + np.timedelta64(day, "D")
            for start in range(0, a_day, 1 << 17):
                piece = slice(start, start + (1 << 17))
                stamps = np.datetime_as_string(moment + at_us[piece], "us").tolist()
                columns = zip(stamps, asked[piece].tolist(), answered[piece].tolist(), strict=True)
                text = "".join(f"{stamp[:10]} {stamp[11:]}+00:00,{into},{made}\n" for stamp, into, made in columns)
                out.write(text.encode())
    return a_day * DAYS


def _litellm(file: Path, lines: int, prompts: bool) -> None:
    draw = random.Random(1)
    systems = [
        f"You are helper {n}. " + "Answer in short sentences and stay polite. " * 20 for n in range(SYSTEM_PROMPTS)
    ]
    at_s = 1.7e9
    with file.open("w", encoding="utf-8") as out:
        for n in range(lines):
            at_s += draw.expovariate(20)
            system = draw.choice(systems)
            asked = max(1, int(draw.lognormvariate(6, 1)))
            user = f"Question {n}: " + "why " * min(asked, 100)
            messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
            row = {
                "id": f"chatcmpl-{n}",
                "trace_id": f"t{n // 3}",
                "call_type": "acompletion",
                "status": "success",
                "prompt_tokens": asked + len(system) // 4,
                "completion_tokens": max(1, int(draw.lognormvariate(4.5, 1))),
                "startTime": round(at_s, 6),
                "endTime": round(at_s + 2, 6),
                "completionStartTime": round(at_s + 0.2, 6),
                "model": "m",
                "api_base": "http://10.0.0.1:8000/v1",
                "metadata": {"user_api_key_team_alias": "search", "requester_ip_address": "10.0.0.7"},
                "messages": messages if prompts else None,
            }
            out.write(json.dumps(row) + "\n")
