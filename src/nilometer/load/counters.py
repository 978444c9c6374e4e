"""The counter block: a few int64 in a memory-mapped file that a worker writes and the parent reads, without a lock."""

from __future__ import annotations

import mmap
from enum import IntEnum
from pathlib import Path


class Field(IntEnum):
    """Position of each counter. STATE is a `State`; times are monotonic ns, 0 where there is none."""

    STATE = 0
    IN_FLIGHT = 1
    STARTED = 2
    MEASURED_STARTED = 3
    FRAMES = 4
    RECORDED = 5
    UNPARSED = 6
    UNHEARD_IN_A_ROW = 7
    UNHEARD_SINCE_NS = 8
    STARVED = 9
    ALIVE_NS = 10


class State(IntEnum):
    """Where a worker is."""

    STARTING = 0
    READY = 1
    RUNNING = 2
    DRAINING = 3
    DONE = 4


_BYTES = 8 * len(Field)


class Counters:
    """One block, writable or not."""

    def __init__(self, path: Path, *, create: bool = False) -> None:
        if create:
            path.write_bytes(bytes(_BYTES))
        with open(path, "r+b") as file:
            self._map = mmap.mmap(file.fileno(), _BYTES)
        self._cells = memoryview(self._map).cast("q")

    def __getitem__(self, field: Field) -> int:
        return self._cells[field]

    def __setitem__(self, field: Field, value: int) -> None:
        self._cells[field] = value

    def close(self) -> None:
        """May be called twice."""
        self._cells.release()
        self._map.close()
