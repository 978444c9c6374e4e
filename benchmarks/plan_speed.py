"""How long plans take: a sweep over devices, models and precisions within one process, and the command itself.

A sweep runs in a process of its own, so that nothing it keeps for later is there before. It plans memory and latency,
at one load or as the command does at all of them; the models are read from the table of known ones within the time.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

from nilometer.core.errors import SpecError
from nilometer.plan.answer import answer
from nilometer.plan.devices import DEVICES, Device
from nilometer.plan.latency.roofline import Latency, Lengths, latency
from nilometer.plan.memory.budget import memory
from nilometer.plan.model.precision import precision_of
from nilometer.plan.model.shape import Shape
from nilometer.plan.question import Question, ask, setup
from nilometer.sources.models.known import Known, shape_of_row, table

from .result import Row, exact, judged, shown

SIDE = 40
"""Devices, and models."""
PRECISIONS = ("bf16", "fp8", "int8", "int4", "mxfp4", "q4_k_m")
LENGTHS = Lengths(512, 128)
REQUESTS = 16
SWEEP_S = 10.0
COMMAND_MS = 300.0
TRIES = 5
COMMAND = ("plan", "llama-3.1-8b", "--device", "h100")


def plan_speed() -> list[Row]:
    """All rows."""
    return [*(row for name in PLANS for row in _sweep_rows(name)), *_command_rows()]


def sweep(plan: Callable[[Question], object]) -> dict[str, Any]:
    """Every one of them, once: how many, in how many seconds, what was refused, and whether numpy was loaded."""
    started = time.perf_counter()
    shapes = [shape_of_row(row) for row in models()]
    refused: list[str] = []
    for shape, device, name in product(shapes, devices(), PRECISIONS):
        try:
            plan(_question(shape, device, name))
        except SpecError as refusal:
            refused.append(f"{shape.name} {device.name} {name}: {refusal}")
    took = time.perf_counter() - started
    plans = len(shapes) * len(devices()) * len(PRECISIONS)
    return {"plans": plans, "seconds": took, "refused": refused, "numpy": "numpy" in sys.modules}


def one_load(question: Question) -> Latency:
    """Memory, and latency at one load."""
    device = question.device
    assert device is not None
    memory(ask(question, device))
    return latency(setup(question, device), question.lengths, question.concurrency)


PLANS: dict[str, Callable[[Question], object]] = {"one load": one_load, "all loads": answer}


def _question(shape: Shape, device: Device, precision: str) -> Question:
    return Question(
        shape=shape,
        precision=precision_of(precision),
        device=device,
        lengths=LENGTHS,
        context=4096,
        concurrency=REQUESTS,
    )


def models() -> Sequence[Known]:
    """Forty of the table, of all families in it."""
    rows = table()
    return rows[:: len(rows) // SIDE][:SIDE]


def devices() -> Sequence[Device]:
    """Forty whose memory and bandwidth are stated."""
    stated = [one for one in DEVICES.values() if one.memory_bytes and one.bandwidth_bytes_per_s]
    return stated[:SIDE]


def _sweep_rows(name: str) -> Sequence[Row]:
    command = [sys.executable, "-m", "benchmarks.plan_speed", name]
    told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    what = f"{SIDE} devices x {SIDE} models x {len(PRECISIONS)} precisions, {name}"
    each = f"{1e3 * told['seconds'] / told['plans']:.2f} ms each, models read"
    return [
        exact(f"{what}: plans made", told["plans"] - len(told["refused"]), SIDE * SIDE * len(PRECISIONS)),
        judged(what, told["seconds"], absolute=SWEEP_S, unit="s", note=each),
        exact("numpy loaded by it", told["numpy"], expected=False),
    ]


def _command_rows() -> Sequence[Row]:
    floor = _best_ms([sys.executable, "-c", "pass"])
    ours = [sys.executable, "-m", "nilometer"]
    version = _best_ms([*ours, "--version"])
    said = "nilo " + " ".join(COMMAND)
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *ours[1:], *COMMAND], capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 1):
        why = [line for line in done.stderr.splitlines() if not line.startswith("import time:")]
        return [Row(said, f"<= {COMMAND_MS:g}", "no answer", floor, met=False, note=" ".join(why)[-200:])]
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    return [
        judged(f"{said}: wall, best of {TRIES}", _best_ms([*ours, *COMMAND]), floor, absolute=COMMAND_MS),
        shown("nilo --version", version, floor),
        exact("numpy loaded by it", "numpy" in loaded, expected=False),
    ]


def _best_ms(command: Sequence[str]) -> float:
    """The shortest of some; the first of all, which may write bytecode, does not count."""
    times = []
    for _ in range(TRIES + 1):
        started = time.perf_counter()
        subprocess.run(command, capture_output=True, check=False)
        times.append(1e3 * (time.perf_counter() - started))
    return min(times[1:])


if __name__ == "__main__":
    print(json.dumps(sweep(PLANS[sys.argv[1]])))
