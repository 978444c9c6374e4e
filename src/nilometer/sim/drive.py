"""A load test in virtual time: users or arrivals on a machine, and the Records that a load generator would have made.

A closed loop asks again when an answer has come, an open one when a request is due. Nothing after it can tell these
Records from measured ones, but for their stamp source. Stamps are ns; the run's clock starts at `ORIGIN_NS`.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush
from math import inf
from typing import NamedTuple

import msgspec
import numpy as np

from nilometer.core.clock import NS_PER_S
from nilometer.core.record import SHARED, ErrorKind, Frames, Phase, Record
from nilometer.core.run import Phases

from .event import Answer, Event, Why
from .machine import Machine
from .setting import Ask

ORIGIN_NS = 1_000 * NS_PER_S
"""No stamp is 0, or looks like an offset."""
_ONE = (1).to_bytes(4, "little")
_ENDED: dict[Why, tuple[ErrorKind, int]] = {
    "rate_limit": ("http_429", 429),
    "too_long": ("http_4xx", 400),
    "timeout": ("http_5xx", 504),
}


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """What is offered to the machine: exactly one of `users` and `due_s`. ValueError otherwise. Seconds of the run."""

    users: int | None = None
    due_s: Iterable[float] | None = None
    """Non-decreasing moments of an open loop."""
    ramp_s: float = 0.0
    """The users start evenly over this time."""
    think_s: float = 0.0
    """A user's pause between an answer and the next request."""
    warmup_s: float = 0.0
    stop_s: float = inf
    """From here on nothing is asked any more."""
    requests: int | None = None
    """Nor after so many."""
    drain_s: float = inf
    """What has not ended so long after the stop is cut."""
    timeout_s: float | None = None
    """A client gives up on a request that has not ended after so long."""

    def __post_init__(self) -> None:
        """The check; see the class."""
        if (self.users is None) == (self.due_s is None):
            raise ValueError("users or due_s")


class Played(NamedTuple):
    """The records in order of ending, and the borders of the run."""

    records: list[Record]
    phases: Phases


class _Open(NamedTuple):
    """A request in flight."""

    seq: int
    ask: Ask
    at_s: float
    user: int
    due: bool


def simulate(
    offer: Offer,
    asks: Iterable[Ask],
    machine: Machine,
    *,
    sample_s: float = inf,
    sample: Callable[[float, Machine], None] = lambda _at_s, _machine: None,
) -> Played:
    """Plays the offer on a fresh machine (without `tokens`) until all has ended; `asks` are taken in order, keys anew.

    `sample` is called with the moment and the machine every `sample_s`: a scraper's view. Equal machines, offers and
    asks give equal records.
    """
    return _Play(offer, iter(asks), machine, sample_s, sample).run()


class _Play:
    def __init__(
        self,
        offer: Offer,
        asks: Iterator[Ask],
        machine: Machine,
        sample_s: float,
        sample: Callable[[float, Machine], None],
    ) -> None:
        self._offer, self._asks, self._machine = offer, asks, machine
        self._sample_s, self._sample = sample_s, sample
        self._due = iter(offer.due_s or ())
        self._clients: list[tuple[float, int, int]] = []
        """Moments at which a user asks, in the open loop at which a request is due."""
        self._limits: list[tuple[float, int]] = []
        self._in_flight: dict[int, _Open] = {}
        self._records: list[Record] = []
        self._seq = self._turns = 0
        self._last_s = 0.0

    def run(self) -> Played:
        self._open()
        next_sample_s = 0.0 if self._sample_s < inf else inf
        cut_s = self._offer.stop_s + self._offer.drain_s
        machine = self._machine
        while self._clients or self._in_flight:
            asks_s = self._clients[0][0] if self._clients else inf
            limit_s = self._limits[0][0] if self._limits else inf
            until_s = min(asks_s, limit_s, next_sample_s, cut_s)
            if machine.next_s < until_s:
                for event in machine.step(until_s):
                    self._take(event)
            elif until_s in (inf, cut_s):
                break
            elif until_s == next_sample_s:
                self._sample(until_s, machine)
                next_sample_s += self._sample_s
            elif until_s == limit_s:
                self._give_up(heappop(self._limits)[1], limit_s)
            else:
                self._ask(*heappop(self._clients))
        return self._close(cut_s)

    def _open(self) -> None:
        users = self._offer.users
        if users is None:
            self._next_due()
        for user in range(users or 0):
            heappush(self._clients, (self._offer.ramp_s * user / (users or 1), user, user))

    def _next_due(self) -> None:
        at_s = next(self._due, None)
        if at_s is not None:
            heappush(self._clients, (at_s, 0, 0))

    def _ask(self, at_s: float, _: int, user: int) -> None:
        offer = self._offer
        is_open = offer.users is None
        if is_open:
            self._next_due()
        if at_s >= offer.stop_s or self._seq == offer.requests or (ask := next(self._asks, None)) is None:
            self._clients.clear()
            return
        seq = self._seq
        self._seq += 1
        ask = msgspec.structs.replace(ask, key=seq)
        self._in_flight[seq] = _Open(seq, ask, at_s, user, is_open)
        if offer.timeout_s is not None:
            heappush(self._limits, (at_s + offer.timeout_s, seq))
        self._machine.submit(ask, at_s)

    def _take(self, event: Event) -> None:
        if event.kind not in ("finish", "rejected"):
            return
        one = self._in_flight.pop(event.key)
        phase = self._phase(one.at_s)
        if event.answer is not None:
            self._records.append(_answered(one, event.answer, phase, len(self._machine.engines)))
        elif event.why is not None:
            kind, status = _ENDED[event.why]
            self._records.append(_failed(one, phase, event.at_s, kind, status))
        self._again(one, event.at_s)

    def _again(self, one: _Open, at_s: float) -> None:
        self._last_s = max(self._last_s, at_s)
        if not one.due and at_s < self._offer.stop_s:
            self._turns += 1
            heappush(self._clients, (at_s + self._offer.think_s, self._turns, one.user))

    def _give_up(self, seq: int, at_s: float) -> None:
        one = self._in_flight.pop(seq, None)
        if one is not None:
            self._machine.cancel(seq)
            self._records.append(_failed(one, self._phase(one.at_s), at_s, "timeout_total", None))
            self._again(one, at_s)

    def _phase(self, at_s: float) -> Phase:
        return "warmup" if at_s < self._offer.warmup_s else "measured"

    def _close(self, cut_s: float) -> Played:
        """What is still in flight is cut: at the end of the drain, or where nothing can happen any more."""
        end_s = cut_s if cut_s < inf else self._last_s
        for one in self._in_flight.values():
            cut = _failed(one, self._phase(one.at_s), max(end_s, one.at_s), None, None)
            self._records.append(cut)
        stop_s = self._offer.stop_s if self._offer.stop_s < inf else self._last_s
        left = bool(self._in_flight)
        return Played(
            self._records,
            Phases(
                started_wall_ns=0,
                start_ns=ORIGIN_NS,
                measured_ns=_ns(self._offer.warmup_s),
                stop_ns=_ns(stop_s),
                end_ns=_ns(max(stop_s, end_s if left else self._last_s)),
                cut_at_drain_limit=left,
            ),
        )


def _ns(at_s: float) -> int:
    return ORIGIN_NS + round(at_s * NS_PER_S)


def _answered(one: _Open, answer: Answer, phase: Phase, replicas: int) -> Record:
    stamps = np.rint(np.frombuffer(answer.stamps, np.float64) * NS_PER_S).astype(np.int64) + ORIGIN_NS
    first_ns, last_ns, sent_ns = int(stamps[0]), int(stamps[-1]), _ns(one.at_s)
    return Record(
        id=f"0-{one.seq}",
        seq=one.seq,
        phase=phase,
        outcome="ok",
        due_ns=sent_ns if one.due else None,
        sent_ns=sent_ns,
        sent_end_ns=sent_ns,
        first_byte_ns=first_ns,
        first_token_ns=first_ns,
        first_answer_ns=first_ns,
        last_token_ns=last_ns,
        end_ns=last_ns,
        status=200,
        finish_reason="length" if answer.at_limit else "stop",
        prompt_tokens=one.ask.prompt_tokens,
        cached_tokens=answer.cached if one.ask.hashes else None,
        output_tokens=answer.tokens,
        token_source="usage",  # noqa: S106 - no secret
        asked_input=one.ask.prompt_tokens,
        asked_output=one.ask.limit,
        connection=one.user,
        stamp_source="simulated",
        server={"replica": answer.replica} if replicas > 1 else None,
        frames=_frames(stamps.tobytes(), answer),
    )


def _frames(user: bytes, answer: Answer) -> Frames:
    """Frames that came at one moment were in one read."""
    stamps, counts = answer.stamps, answer.counts
    if counts is None:
        return Frames(user=user, tokens=_ONE * len(stamps))
    n = len(stamps)
    flags = bytearray(n)
    for i in range(1, n):
        if stamps[i] == stamps[i - 1]:
            flags[i - 1] = flags[i] = SHARED
    return Frames(user=user, tokens=array("i", counts).tobytes(), flags=bytes(flags) if any(flags) else b"")


def _failed(one: _Open, phase: Phase, end_s: float, kind: ErrorKind | None, status: int | None) -> Record:
    sent_ns, end_ns = _ns(one.at_s), _ns(end_s)
    return Record(
        id=f"0-{one.seq}",
        seq=one.seq,
        phase=phase,
        outcome="cancelled" if kind is None else "error",
        due_ns=sent_ns if one.due else None,
        sent_ns=sent_ns,
        sent_end_ns=sent_ns,
        first_byte_ns=None if status is None else end_ns,
        end_ns=end_ns,
        error=kind,
        status=status,
        asked_input=one.ask.prompt_tokens,
        asked_output=one.ask.limit,
        connection=one.user,
        stamp_source="simulated",
    )
