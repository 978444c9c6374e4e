"""The embedded engine here: calibrated by runs of 1 and 4 requests, planned for 2, 8 and 16, and held to what it does.

Each level is measured as a user would, by `nilo measure embedded` into an archive, and read back from there. Four
requests are measured three times, at the start, in the middle and at the end: how far these differ is the machine's
noise, and twice that is granted where it is more than 15 %. The plan knows the model's file, the engine's slots and
this machine's measured rates, besides the two runs. The runs stay in benchmarks/out, to plan them anew.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from nilometer.archive.store import open_archive
from nilometer.core.run import Run
from nilometer.plan.devices import Device
from nilometer.plan.latency.calibrate import calibrate
from nilometer.plan.latency.from_run import evidence_of
from nilometer.plan.latency.roofline import Latency, Lengths, Tuning, latency
from nilometer.plan.latency.work import Setup
from nilometer.plan.model.precision import precision_of
from nilometer.sources.models.gguf import read_gguf
from nilometer.telemetry.bandwidth import this_device

from . import rig
from .result import Row, shown

CALIBRATED = (1, 4)
AGAIN = 4
HELD = (2, 8, 16)
ORDER = (4, 1, 2, 4, 8, 16, 4)
GOAL_PERCENT = 15.0
LENGTHS = ("--input-tokens", "256", "--output-tokens", "96")
MANY = 8
"""From so many requests on they take longer, so the test does too."""
FEW_TIMES, MANY_TIMES = ("--warmup", "8s", "--duration", "30s"), ("--warmup", "15s", "--duration", "50s")


class Level(NamedTuple):
    """What one run says of the figures that are planned."""

    tpot_ms: float
    output_tokens_per_s: float


def plan_embedded() -> list[Row]:
    """All of it: about seven minutes."""
    device = this_device(processor=True)
    with rig.scratch() as folder:
        runs = [_measured(folder, requests) for requests in ORDER]
        shutil.copy(rig.archive_file(folder), rig.OUT / "plan-embedded.sqlite")
    return rows_of(runs, device)


def rows_of(runs: Sequence[Run], device: Device) -> list[Row]:
    """The table, by runs in the order in which they were measured."""
    levels = _by_level(runs)
    setup = setup_of(runs[0], device)
    evidence = evidence_of([levels[requests][0] for requests in CALIBRATED])
    tuning = calibrate(setup, evidence.measured)
    noise = {name: noise_percent([_value(run, name) for run in levels[AGAIN]]) for name in Level._fields}
    held = [row for requests in HELD for row in _rows(levels[requests][0], setup, tuning, noise)]
    return [
        shown("this machine reads", (device.bandwidth_bytes_per_s or 0.0) / 1e9, unit="GB/s", note=device.name),
        shown("and multiplies", device.flops["fp16"] / 1e9, unit="GFLOP/s", note=device.source),
        shown("load average at the end", os.getloadavg()[0], unit=""),
        *(
            shown(f"noise: {_SAID[name]} of {AGAIN} requests, three runs", value, unit="%")
            for name, value in noise.items()
        ),
        *held,
        shown("within 15 %, whatever the noise", f"{_within(held)} of {len(held)}"),
    ]


def setup_of(run: Run, device: Device) -> Setup:
    """The engine as it was: model by its file, slots as it told."""
    file = run.environment.model.file
    if file is None:
        raise rig.RigError("the run does not tell its model's file")
    header = read_gguf(Path(file))
    return Setup(
        shape=header.shape,
        device=device,
        precision=precision_of(header.precision or run.environment.model.precision or "q4_0"),
        engine="llama.cpp",
        slots=run.environment.engine.slots,
    )


def noise_percent(values: Sequence[float]) -> float:
    """How far two runs of the same differ at most, by the smaller."""
    return max((100 * abs(a - b) / min(a, b) for a, b in combinations(values, 2)), default=0.0)


def allowed_percent(noise: float) -> float:
    """What a plan may be off."""
    return max(GOAL_PERCENT, 2 * noise)


_SAID = {"tpot_ms": "TPOT", "output_tokens_per_s": "tokens/s"}


def _by_level(runs: Sequence[Run]) -> Mapping[int, Sequence[Run]]:
    found: dict[int, list[Run]] = {}
    for run in runs:
        found.setdefault(run.spec.load.concurrency or 0, []).append(run)
    return found


def _level(run: Run) -> Level:
    """RigError where a run lacks one of them: nothing can be held against it."""
    tpot, rate = run.summary.latency_ms["tpot"].mean, run.summary.throughput.output_tokens_per_s
    if tpot is None or rate is None:
        raise rig.RigError(f"run {run.id} has no TPOT or no throughput")
    return Level(tpot, rate)


def _value(run: Run, name: str) -> float:
    value: float = getattr(_level(run), name)
    return value


def _rows(run: Run, setup: Setup, tuning: Tuning, noise: Mapping[str, float]) -> Sequence[Row]:
    """TPOT and throughput of one load."""
    seen = evidence_of([run]).seen[0].measured
    made = latency(setup, Lengths(seen.input_tokens, seen.output_tokens), seen.concurrency, tuning)
    return [_row(made, name, _value(run, name), noise[name]) for name in Level._fields]


def _row(made: Latency, name: str, measured: float, noise: float) -> Row:
    planned = made.tpot_s.times(1e3) if name == "tpot_ms" else made.output_tokens_per_s
    error = 100 * (planned.mid / measured - 1)
    inside = "inside" if planned.low <= measured <= planned.high else "outside"
    allowed = allowed_percent(noise)
    return Row(
        f"{made.concurrency:g} requests: {_SAID[name]}",
        f"within {allowed:.0f}",
        error,
        noise,
        "%",
        abs(error) <= allowed,
        f"planned {planned.mid:.4g} [{planned.low:.4g}, {planned.high:.4g}], measured {measured:.4g}: {inside}; "
        f"{made.bound}",
    )


def _within(rows: Sequence[Row]) -> int:
    return sum(isinstance(row.measured, float) and abs(row.measured) <= GOAL_PERCENT for row in rows)


def _measured(folder: Path, requests: int) -> Run:
    times = MANY_TIMES if requests >= MANY else FEW_TIMES
    command = [sys.executable, "-m", "nilometer", "measure", "embedded", "-c", str(requests), *LENGTHS, *times]
    done = subprocess.run(
        [*command, "--quiet", "--json"], capture_output=True, env=rig.client_environment(folder), check=False
    )
    if done.returncode:
        raise rig.RigError(done.stderr.decode()[-500:])
    told = json.loads(done.stdout)
    print(f"  {requests} requests: TPOT {told['latency_ms']['tpot']['mean']:.2f} ms, {told['verdict']}", flush=True)
    with open_archive(rig.archive_url(folder)) as archive:
        return archive.get(told["run"])
