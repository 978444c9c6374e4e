"""What lies between the load's clock and the service: a pool of connections, and a loop that is late.

`Met` is a machine that also keeps when requests reached it and what it answered, for its metrics page.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterable, Iterator
from random import Random

import msgspec
import numpy as np
import numpy.typing as npt

from nilometer.core.clock import NS_PER_S
from nilometer.core.record import LATE, SHARED, Frames, Record
from nilometer.core.run import Health
from nilometer.sim.drive import ORIGIN_NS
from nilometer.sim.event import Answer, Event
from nilometer.sim.machine import Machine, Plan
from nilometer.sim.setting import Ask

ROW_NS = 100_000_000
Stamps = npt.NDArray[np.int64]


class Reader:
    """When a loop reads what comes: at once, but for stretches in which it is away."""

    def __init__(self, random: Random, until_s: float, share: float, away_s: float) -> None:
        begins, ends, at_s = [], [], 0.0
        while share > 0 and at_s < until_s:
            at_s += random.expovariate(1 / (away_s * (1 - share) / share))
            begins.append(at_s)
            at_s += away_s * random.uniform(0.4, 1.6)
            ends.append(at_s)
        self.begins, self.ends = np.array(begins), np.array(ends)

    def at(self, moments_s: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """When what comes at these moments is read."""
        moments = np.asarray(moments_s, np.float64)
        if not len(self.begins):
            return moments
        place = np.searchsorted(self.begins, moments, side="right") - 1
        within = (place >= 0) & (moments < self.ends[np.maximum(place, 0)])
        return np.where(within, self.ends[np.maximum(place, 0)], moments)


class Met(Machine):
    """The service as a client meets it. `pool`: at most so many requests are inside, the others wait for one to end."""

    def __init__(self, plan: Plan, random: Random, reader: Reader | None = None, pool: int | None = None) -> None:
        super().__init__(plan, random)
        self._reader, self._pool = reader, pool
        self._inside = 0
        self._line: deque[Ask] = deque()
        self.arrived_s: dict[int, float] = {}
        self.answers: list[tuple[int, Answer]] = []

    def submit(self, ask: Ask, now_s: float) -> None:
        if self._pool is not None and self._inside >= self._pool:
            self._line.append(ask)
            return
        self._inside += 1
        self.arrived_s[ask.key] = now_s
        super().submit(ask, now_s)

    def step(self, now_s: float) -> list[Event]:
        events = super().step(now_s)
        for event in events:
            if event.answer is not None:
                self.answers.append((event.key, event.answer))
            if event.kind in ("finish", "rejected"):
                self._inside -= 1
                if self._line:
                    self.submit(self._line.popleft(), event.at_s)
        if self._reader is None:
            return events
        return [event._replace(at_s=float(self._reader.at(event.at_s))) for event in events]


def read_by(records: Iterable[Record], reader: Reader | None, random: Random, *, kernel: bool) -> Iterator[Record]:
    """The records as the loop wrote them: with its own stamps, its kernel's where it has those, and flags."""
    ended: dict[int | None, int] = {}
    noise = np.random.default_rng(random.getrandbits(32))
    for record in sorted(records, key=lambda one: one.sent_ns or 0):
        last = ended.get(record.connection)
        refill = None if last is None or record.sent_ns is None else max(record.sent_ns - last, 0)
        made = _read(record, reader, noise, kernel=kernel)
        if made.end_ns is not None:
            ended[record.connection] = made.end_ns
        yield msgspec.structs.replace(made, refill_ns=refill, new_connection=last is None)


def _read(record: Record, reader: Reader | None, noise: np.random.Generator, *, kernel: bool) -> Record:
    came = np.frombuffer(record.frames.user, np.int64)
    if not len(came):
        return msgspec.structs.replace(record, stamp_source="kernel" if kernel else "user")
    read, flags = came, np.frombuffer(record.frames.flags, np.uint8) if record.frames.flags else None
    if reader is not None:
        read = _ns(reader.at((came - ORIGIN_NS) / NS_PER_S))
        flags = _flags(came, read, flags)
        came = _last_of_each(came, read)
    if kernel:
        # A loop takes a moment to come to what its kernel has; it never reads what comes later before.
        user = read + int(noise.integers(20_000, 150_000))
        best, source = came, "kernel"
    else:
        user, best, source = read, read, "user"
    frames = Frames(
        user=user.astype("<i8").tobytes(),
        kernel=came.astype("<i8").tobytes() if kernel else b"",
        tokens=record.frames.tokens,
        flags=b"" if flags is None or not flags.any() else flags.tobytes(),
    )
    first, last = int(best[0]), int(best[-1])
    return msgspec.structs.replace(
        record,
        frames=frames,
        stamp_source=source,
        first_byte_ns=first,
        first_token_ns=first,
        first_answer_ns=first,
        last_token_ns=last,
        end_ns=max(last, int(read[-1])) if reader is not None else last,
    )


def _flags(came: Stamps, read: Stamps, held: npt.NDArray[np.uint8] | None) -> npt.NDArray[np.uint8]:
    flags = np.zeros(len(read), np.uint8) if held is None else held.copy()
    late = read > came
    same = np.diff(read) == 0
    flags[late] |= LATE
    flags[1:][same & late[1:]] |= SHARED
    flags[:-1][same & late[:-1]] |= SHARED
    return flags


def _last_of_each(came: Stamps, read: Stamps) -> Stamps:
    """A read has one stamp of the kernel: of the last that it holds."""
    last = np.searchsorted(read, read, side="right") - 1
    found: Stamps = came[last]
    return found


def _ns(at_s: npt.NDArray[np.float64]) -> Stamps:
    return np.rint(at_s * NS_PER_S).astype(np.int64) + ORIGIN_NS


def health_of(
    end_ns: int, reader: Reader | None, random: Random, *, asked: int, in_flight: int, own_work: bool, each_s: float
) -> Health:
    """What the worker saw of itself; `each_s` is what it needs for a second of this load."""
    at = np.arange(ORIGIN_NS, end_ns + ROW_NS, ROW_NS, dtype=np.int64)
    noise = np.random.default_rng(random.getrandbits(32))
    lag = (0.05e6 + noise.exponential(0.15e6, len(at))).astype(np.int64)
    busy = np.full(len(at), min(each_s, 0.9) * ROW_NS)
    if reader is not None and len(reader.begins):
        begins, ends = _ns(reader.begins), _ns(reader.ends)
        place = np.clip((ends - ORIGIN_NS) // ROW_NS + 1, 0, len(at) - 1)
        np.maximum.at(lag, place, ends - begins)
        if own_work:
            np.add.at(busy, place, (ends - begins).astype(np.float64))
    cpu = np.minimum(busy, ROW_NS).cumsum().astype(np.int64)
    return Health(
        at=at.tobytes(),
        wall_offset=array("q", [0] * len(at)).tobytes(),
        lag_max=lag.tobytes(),
        in_flight=np.full(len(at), in_flight, np.int64).tobytes(),
        cpu=cpu.tobytes(),
        asked_in_flight=asked,
        event_loop="bench",
        connections_opened=in_flight,
    )
