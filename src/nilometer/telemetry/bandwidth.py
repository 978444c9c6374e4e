"""How fast this machine reads its memory and multiplies matrices: two short measurements that make it a `Device`.

Reading: every core goes through a stretch of one array far beyond the last cache, as an engine's threads read weights.
Computing: a product of two matrices in single precision by numpy's BLAS, on all cores. The best of several rounds
counts: others on the machine can only slow one down.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import psutil

from nilometer.core.errors import EngineError
from nilometer.plan.devices import Device

from .machine import read_machine

READ_SECONDS, MULTIPLY_SECONDS = 0.7, 0.5
ARRAY_BYTES = 512 << 20
LEAST_BYTES = 64 << 20
SHARE_OF_FREE = 0.25
MATRIX = 1024


def this_device(seconds: float = READ_SECONDS + MULTIPLY_SECONDS) -> Device:
    """This machine, measured for about `seconds`; EngineError `memory_too_small_to_measure` where none is free."""
    machine = read_machine()
    threads = usable_cores()
    reading = seconds * READ_SECONDS / (READ_SECONDS + MULTIPLY_SECONDS)
    total = min(machine.memory_bytes or 0, machine.container_memory_limit_bytes or float("inf"))
    return Device(
        name=machine.cpu_model or "this machine",
        kind="cpu",
        memory_bytes=float(total),
        visible_bytes=float(total),
        bandwidth_bytes_per_s=read_bandwidth(reading, threads),
        flops={"fp16": multiply_rate(seconds - reading)},
        confidence="measured",
        source=f"measured now: {threads} threads, single precision",
    )


def usable_cores() -> int:
    """Those this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def read_bandwidth(seconds: float, threads: int) -> float:
    """Bytes per second read from memory by `threads` threads at once, the best round within `seconds`."""
    import numpy as np  # noqa: PLC0415 - slow to import, and only this command needs it

    room = int(psutil.virtual_memory().available * SHARE_OF_FREE)
    if room < LEAST_BYTES:
        raise EngineError("memory_too_small_to_measure", free_mb=room >> 20, least_mb=LEAST_BYTES >> 20)
    values = np.ones(min(ARRAY_BYTES, room) // 8, dtype=np.int64)
    shares = np.array_split(values, threads)
    with ThreadPoolExecutor(threads) as pool:
        best = best_seconds(lambda: list(pool.map(np.max, shares)), seconds)
    return float(values.nbytes / best)


def multiply_rate(seconds: float) -> float:
    """Operations per second of a matrix product in single precision, the best round within `seconds`."""
    import numpy as np  # noqa: PLC0415 - slow to import, and only this command needs it

    left = np.ones((MATRIX, MATRIX), dtype=np.float32)
    right = np.ones((MATRIX, MATRIX), dtype=np.float32)
    out = np.empty_like(left)
    return 2.0 * MATRIX**3 / best_seconds(lambda: np.matmul(left, right, out=out), seconds)


def best_seconds(work: Callable[[], object], seconds: float, least_rounds: int = 3) -> float:
    """The shortest of the rounds that fit into `seconds`, at least `least_rounds`."""
    ends = time.perf_counter() + seconds
    best, rounds = float("inf"), 0
    while rounds < least_rounds or time.perf_counter() < ends:
        started = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - started)
        rounds += 1
    return best
