"""Can this machine measure, does the target answer: one check after the other, each with state and exact fix."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from typing import Literal

import msgspec
import psutil

from nilometer.core.clock import NS_PER_MS
from nilometer.core.environment import Machine
from nilometer.core.errors import NiloError, Param
from nilometer.core.spec import Spec
from nilometer.load.pulse import wall_offset_ns
from nilometer.telemetry.machine import read_machine

from .approach import Headers, approach
from .calibrate import ceiling
from .places import OWN_FILES

State = Literal["ok", "warn", "fail", "skipped"]

ENOUGH_FILES = 2048
"""Sockets for a concurrency of a thousand and what the worker needs besides."""
BUSY_LOAD_PER_CPU = 0.5
POWER_SAVING = ("powersave", "conservative")
ENOUGH_EVENTS_PER_S = 12_000.0
"""256 streams of 50 tokens/s: below this one worker will soon be the limit."""
DRIFT_MS = 1.0


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One finding of the doctor. `slug` names the check, `params` fill its sentence; the fix has one only if needed."""

    slug: str
    state: State
    value: str | float | int | None = None
    params: dict[str, Param] = {}


def examine(target: str | None, spec: Spec | None, headers: Headers) -> Iterator[Check]:
    """The checks one by one, as they are made: this machine first, then the target where there is one."""
    machine = read_machine()
    yield _cores(machine)
    yield _load(machine)
    yield _governor(machine)
    yield _open_files()
    yield _clock()
    yield from _generator()
    if target is None or spec is None:
        yield Check(slug="target", state="skipped")
    else:
        yield from _target(spec, headers)


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


def _clock() -> Check:
    """Whether wall and monotonic clock run together over a short while."""
    before = wall_offset_ns()
    psutil.cpu_percent(interval=0.5)
    moved_ms = abs(wall_offset_ns() - before) / NS_PER_MS
    return Check(
        slug="clock",
        state="ok" if moved_ms < DRIFT_MS else "warn",
        value=round(moved_ms, 3),
        params={"moved_ms": round(moved_ms, 3)},
    )


def _generator() -> Iterator[Check]:
    try:
        reached = ceiling()
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


def _target(spec: Spec, headers: Headers) -> Iterator[Check]:
    """The target through the very probe that a measurement begins with."""
    try:
        way = approach(spec, headers, address=spec.target, salt="doctor")
    except NiloError as fault:
        yield Check(slug="target", state="fail", value=fault.slug, params={"error": fault.slug, **fault.params})
        return
    yield Check(slug="target", state="ok", value=way.endpoint.shown, params={"url": way.endpoint.shown})
    yield Check(slug="model", state="ok", value=way.model.id, params={"model": way.model.id, "api": way.api})
    for finding in way.findings:
        yield Check(slug=finding.slug, state="warn", params=finding.params)
