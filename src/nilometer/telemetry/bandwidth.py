"""How fast this machine reads its memory and multiplies matrices: two short measurements that make it a `Device`.

Reading: every core goes through a stretch of one array far beyond the last cache, as an engine's threads read weights.
Computing: a product of two matrices in single precision by numpy's BLAS, on all cores. The best of several rounds
counts: others on the machine can only slow one down. Where a container's quota cuts the processors, a short round can
take more than its share, so there the mean counts. A GPU that NVML shows is not measured: its row of the table is it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from math import ceil

import msgspec
import psutil

from nilometer.core.errors import EngineError
from nilometer.plan.devices import Device, device

from . import gpu
from .machine import container_free_bytes, read_machine

READ_SECONDS, MULTIPLY_SECONDS = 0.7, 0.5
ARRAY_BYTES = 512 << 20
LEAST_BYTES = 64 << 20
SHARE_OF_FREE = 0.25
MATRIX = 1024


def this_device(seconds: float = READ_SECONDS + MULTIPLY_SECONDS, *, processor: bool = False) -> Device:
    """The first GPU that is seen, by the table; else, or for `processor`, the processors, measured for about `seconds`.

    SpecError `device_unknown` for a GPU that is not in the table; EngineError `memory_too_small_to_measure`.
    """
    seen = None if processor else gpu.first()
    return measured_processor(seconds) if seen is None else _by_row(seen)


def _by_row(seen: gpu.Seen) -> Device:
    row = device(seen.name)
    return msgspec.structs.replace(row, visible_bytes=float(seen.total_bytes)) if seen.total_bytes else row


def measured_processor(seconds: float) -> Device:
    """This machine's processors and memory, as far as this process may use them."""
    machine = read_machine()
    cores = usable_cores()
    limit = machine.container_cpu_limit
    threads = cores if limit is None else max(1, min(cores, ceil(limit)))
    cut = limit is not None and limit < cores
    reading = seconds * READ_SECONDS / (READ_SECONDS + MULTIPLY_SECONDS)
    total = min(machine.memory_bytes or 0, machine.container_memory_limit_bytes or float("inf"))
    return Device(
        name=machine.cpu_model or "this machine",
        kind="cpu",
        memory_bytes=float(total),
        visible_bytes=float(total),
        bandwidth_bytes_per_s=read_bandwidth(reading, threads, cut=cut),
        flops={"fp16": multiply_rate(seconds - reading, cut=cut)},
        confidence="measured",
        source=f"measured now: {threads} threads, single precision",
    )


def usable_cores() -> int:
    """Those this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def free_bytes() -> int:
    """What may still be taken of this machine's memory, the container's limit heeded."""
    left = container_free_bytes()
    free = int(psutil.virtual_memory().available)
    return free if left is None else min(free, left)


def read_bandwidth(seconds: float, threads: int, *, cut: bool = False) -> float:
    """Bytes per second read from memory by `threads` threads at once; `cut`: the mean of the rounds, not the best."""
    import numpy as np  # noqa: PLC0415 - slow to import, and only this command needs it

    room = int(free_bytes() * SHARE_OF_FREE)
    if room < LEAST_BYTES:
        raise EngineError("memory_too_small_to_measure", free_mb=room >> 20, least_mb=LEAST_BYTES >> 20)
    values = np.ones(min(ARRAY_BYTES, room) // 8, dtype=np.int64)
    shares = np.array_split(values, threads)
    with ThreadPoolExecutor(threads) as pool:
        took = round_seconds(lambda: list(pool.map(np.max, shares)), seconds, cut=cut)
    return float(values.nbytes / took)


def multiply_rate(seconds: float, *, cut: bool = False) -> float:
    """Operations per second of a matrix product in single precision."""
    import numpy as np  # noqa: PLC0415 - slow to import, and only this command needs it

    left = np.ones((MATRIX, MATRIX), dtype=np.float32)
    right = np.ones((MATRIX, MATRIX), dtype=np.float32)
    out = np.empty_like(left)
    return 2.0 * MATRIX**3 / round_seconds(lambda: np.matmul(left, right, out=out), seconds, cut=cut)


def round_seconds(work: Callable[[], object], seconds: float, *, cut: bool = False, least_rounds: int = 3) -> float:
    """The shortest of the rounds that fit into `seconds`, or for `cut` their mean; at least `least_rounds`."""
    begun = time.perf_counter()
    best, rounds, now = float("inf"), 0, begun
    while rounds < least_rounds or now < begun + seconds:
        started = time.perf_counter()
        work()
        now = time.perf_counter()
        best = min(best, now - started)
        rounds += 1
    return (now - begun) / rounds if cut else best
