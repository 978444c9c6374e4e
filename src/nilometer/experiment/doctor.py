"""Can this machine measure: one check after the other, each with state and exact fix."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator

from nilometer.core.clock import NS_PER_MS
from nilometer.core.environment import Machine
from nilometer.core.errors import NiloError
from nilometer.load.pulse import wall_offset_ns
from nilometer.telemetry.machine import read_machine

from .calibrate import ceiling
from .check import Check, State
from .places import OWN_FILES

ENOUGH_FILES = 2048
"""Sockets for a concurrency of a thousand and what the worker needs besides."""
BUSY_LOAD_PER_CPU = 0.5
POWER_SAVING = ("powersave", "conservative")
ENOUGH_EVENTS_PER_S = 12_000.0
"""256 streams of 50 tokens/s: below this one worker will soon be the limit."""
STEP_MS = 1.0
SLEW_SHARE = 500e-6
"""So fast a kernel turns a clock towards the right time; a wall clock that is turned so is no wonder."""
CEILING_S = 3.0
CEILING_BESIDE_TARGET_S = 1.0
"""Enough to tell a machine that can from one that cannot; the target then has the rest of ten seconds."""


def examine(seconds: float = CEILING_S) -> Iterator[Check]:
    """The checks of this machine one by one, as they are made; `seconds` for the generator's ceiling."""
    machine = read_machine()
    yield _cores(machine)
    yield _load(machine)
    yield _governor(machine)
    yield _open_files()
    offset_ns, start_ns = wall_offset_ns(), time.monotonic_ns()
    generator = list(_generator(seconds))
    yield clocks(wall_offset_ns() - offset_ns, time.monotonic_ns() - start_ns)
    yield from generator


def _cores(machine: Machine) -> Check:
    cores = machine.container_cpu_limit or machine.cpu_count
    state: State = "ok" if cores is not None and cores >= 2 else "warn"
    return Check(slug="cores", state=state, value=cores, params={"cores": cores})


def _load(machine: Machine) -> Check:
    """Other work on this machine: it takes processor time that the generator, or a local server, needs."""
    load, cores = machine.load_average_1m, machine.cpu_count or 1
    busy = load is not None and load / cores > BUSY_LOAD_PER_CPU
    return Check(slug="machine_load", state="warn" if busy else "ok", value=load, params={"load": load, "cores": cores})


def _governor(machine: Machine) -> Check:
    governor = machine.cpu_governor
    if governor is None:
        return Check(slug="governor", state="skipped")
    return Check(
        slug="governor",
        state="warn" if governor in POWER_SAVING else "ok",
        value=governor,
        params={"governor": governor},
    )


def _open_files() -> Check:
    """The hard limit: the soft one is raised by the load itself."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = hard == resource.RLIM_INFINITY or hard >= ENOUGH_FILES
    value = None if hard == resource.RLIM_INFINITY else hard
    return Check(
        slug="open_files",
        state="ok" if enough else "warn",
        value=value,
        params={"limit": value, "concurrency": max((value or 0) - OWN_FILES, 0)},
    )


def clocks(moved_ns: int, while_ns: int) -> Check:
    """Whether wall and monotonic clock ran together: the one moved so far against the other in so long a time."""
    moved_ms = abs(moved_ns) / NS_PER_MS
    turned_ms = SLEW_SHARE * while_ns / NS_PER_MS
    return Check(
        slug="clock",
        state="ok" if moved_ms < STEP_MS + turned_ms else "warn",
        value=round(moved_ms, 3),
        params={"moved_ms": round(moved_ms, 3)},
    )


def _generator(seconds: float) -> Iterator[Check]:
    try:
        reached = ceiling(seconds)
    except NiloError as fault:
        yield Check(slug="ceiling", state="fail", params={"detail": fault.slug, "events_per_s": None})
        return
    stamps: State = "ok" if reached.stamp_source == "kernel" else "warn"
    yield Check(slug="kernel_stamps", state=stamps, value=reached.stamp_source, params={"source": reached.stamp_source})
    events = reached.events_per_core_s
    enough = events is not None and events >= ENOUGH_EVENTS_PER_S
    rounded = None if events is None else round(events, -2)
    yield Check(
        slug="ceiling",
        state="ok" if enough else "warn",
        value=rounded,
        params={"events_per_s": rounded, "detail": None},
    )
