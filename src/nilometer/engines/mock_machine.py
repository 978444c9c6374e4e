"""Answers paced by the step machine of `sim` in real time: a batching engine whose queue, cache and faults are real.

The machine keeps its own times, however late it is called; one alarm is set to the next moment at which it has
something to do. What was due when, and when it was written, both go to the truth log.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

from nilometer.core.clock import NS_PER_S
from nilometer.core.record import ErrorKind
from nilometer.sim import setting
from nilometer.sim.event import Answer, Event, Why
from nilometer.sim.machine import Machine
from nilometer.sim.page import Ledger, shown

from . import mock_answer
from .mock_alarm import Alarm
from .mock_answer import COMMENT_EVERY, Writer
from .mock_ask import Ask
from .mock_connection import Connection
from .mock_script import Length, Script
from .mock_service import Service
from .mock_truth import Entry

REPLICA_HEADER = "x-replica"
"""Of an answer, where there are several replicas: the number of the one that gave it."""


class Refused(NamedTuple):
    """How a client is told that the machine let a request go."""

    status: int
    error: ErrorKind
    kind: str
    message: str


REFUSED: dict[Why, Refused] = {
    "rate_limit": Refused(429, "http_429", "rate_limit_exceeded", "too many requests"),
    "too_long": Refused(400, "http_4xx", "BadRequestError", "the prompt and max_tokens are more than can be served"),
    "timeout": Refused(504, "http_5xx", "gateway_timeout", "no answer from upstream in time"),
}


class _Out:
    """One answer on its way out."""

    __slots__ = ("connection", "entry", "frames", "sent", "writer")

    def __init__(self, connection: Connection, entry: Entry, writer: Writer) -> None:
        self.connection = connection
        self.entry = entry
        self.writer = writer
        self.frames = 0
        self.sent = 0
        """Tokens that are out."""


class Played:
    """The pacing of one Service. Its seconds count from the moment it was made, by CLOCK_MONOTONIC."""

    def __init__(
        self, service: Service, script: Script, loop: asyncio.AbstractEventLoop, on_end: Callable[[], None]
    ) -> None:
        self.machine = Machine(service.plan(), Random(script.seed), tokens=True)  # noqa: S311 - times, no secrets
        self._service, self._script, self._on_end = service, script, on_end
        self._ledger = Ledger(self.machine.plan, script.models[0])
        self._zero_ns = time.monotonic_ns()
        self._played_s = 0.0
        self._outs: dict[int, _Out] = {}
        self._keys: dict[Connection, int] = {}
        self._asked: deque[_Out] = deque()
        """Read, and not yet handed to the machine."""
        self._ringing = False
        self._alarm = Alarm(loop, self._ring)

    def begin(self, connection: Connection, entry: Entry, ask: Ask) -> None:
        """A request was read: it reaches the service."""
        writer = Writer(self._script, ask, entry.n, entry.id)
        entry.prompt_tokens = writer.prompt_tokens
        entry.reasoning_tokens = writer.reasoning_tokens
        out = _Out(connection, entry, writer)
        self._outs[entry.n] = out
        self._keys[connection] = entry.n
        self._asked.append(out)
        if not self._ringing:
            self._ring()

    def left(self, connection: Connection) -> None:
        """The client is gone: its request leaves the engine."""
        key = self._keys.pop(connection, None)
        if key is None:
            return
        out = self._outs.pop(key)
        out.entry.left_ns = time.monotonic_ns()
        if out in self._asked:
            self._asked.remove(out)
        else:
            self.machine.cancel(key)
            self._ledger.take([Event(self._played_s, "rejected", key)])
        self._on_end()
        if not self._ringing:
            self._ring()

    @property
    def context_tokens(self) -> int | None:
        """The longest request, where the engine sets so much aside for each."""
        table = self._service.setting
        return table.context_tokens if table.reserve == "context" else None

    def page(self) -> bytes:
        """The service's page of metrics, in the names of vLLM, as of now."""
        if not self._ringing:
            self._ring()
        return self._ledger.text(shown(self.machine)).encode()

    def close(self) -> None:
        """Write nothing more."""
        self._alarm.close()

    # -- time

    def _seconds(self, at_ns: int) -> float:
        return (at_ns - self._zero_ns) / NS_PER_S

    def _ring(self) -> None:
        """Hand over what was read, each at its moment, and play up to now; writing may bring the next requests."""
        self._ringing = True
        while True:
            while self._asked:
                self._submit(self._asked.popleft())
            self._play(self._seconds(time.monotonic_ns()))
            if not self._asked:
                break
        self._ringing = False
        next_s = self.machine.next_s
        if next_s < math.inf:
            self._alarm.set(self._zero_ns + math.ceil(next_s * NS_PER_S))

    def _submit(self, out: _Out) -> None:
        """What the machine did up to a moment is done: a request that was read a little earlier comes then."""
        at_s = max(self._seconds(out.entry.read_ns), self._played_s)
        self._play(at_s)
        self._ledger.arrived(out.entry.n, at_s)
        self.machine.submit(self._wanted(out), at_s)

    def _play(self, until_s: float) -> None:
        while events := self.machine.step(until_s):
            self._ledger.take(events)
            for event in events:
                out = self._outs.get(event.key)
                if out is not None:
                    self._tell(out, event)
        self._played_s = max(self._played_s, until_s)

    def _wanted(self, out: _Out) -> setting.Ask:
        writer, adapters = out.writer, self._service.adapters
        ask, table = writer.ask, self._service.setting
        adapter = adapters.index(ask.model) if ask.model in adapters else None
        template = self._script.template_tokens if ask.chat else 0
        return setting.Ask(
            key=out.entry.n,
            prompt_tokens=max(1, writer.prompt_tokens),
            output_tokens=writer.length.tokens,
            max_tokens=ask.limit,
            hashes=hashes(ask.texts, template, table.block_tokens, adapter) if table.prefix_cache else (),
            adapter=adapter,
        )

    # -- what a client gets

    def _tell(self, out: _Out, event: Event) -> None:
        if event.why is not None:
            self._refuse(out, event.why)
        elif event.answer is not None:
            self._finish(out, event.at_s, event.answer)
        elif event.kind != "preempted" and out.writer.ask.stream:
            self._frame(out, event)

    def _frame(self, out: _Out, event: Event) -> None:
        payload = out.writer.matter(out.sent, event.tokens)
        if self._script.comments and out.frames % COMMENT_EVERY == 0:
            payload = out.writer.comment() + payload
        if not out.frames:
            out.entry.status = 200
            out.entry.replica = event.replica
            payload = out.writer.head(self._headers(event.replica)) + payload
        out.frames += 1
        out.sent += event.tokens
        self._write(out, payload, event.at_s, event.tokens)

    def _headers(self, replica: int) -> Sequence[str]:
        return (f"{REPLICA_HEADER}: {replica}",) if self._service.replicas > 1 else ()

    def _finish(self, out: _Out, at_s: float, answer: Answer) -> None:
        writer, entry = out.writer, out.entry
        limited = answer.at_limit and writer.ask.limit is not None
        writer.length = Length(answer.tokens, "length" if limited else "stop")
        if self._service.setting.prefix_cache:
            writer.cached_tokens = entry.cached_tokens = answer.cached
        entry.start_ns = self._zero_ns + round(answer.admitted_s * NS_PER_S)
        entry.preemptions, entry.replica = answer.preemptions, answer.replica
        if writer.ask.stream:
            self._end(out, writer.tail())
            return
        entry.status = 200
        more = self._headers(answer.replica)
        whole = mock_answer.whole(200, "application/json", writer.whole(), entry.id, more)
        self._write(out, whole, at_s, answer.tokens)
        self._end(out, b"")

    def _refuse(self, out: _Out, why: Why) -> None:
        told, entry = REFUSED[why], out.entry
        entry.meant, entry.status = why, told.status
        entry.outcome, entry.error = "error", told.error
        rate_per_s = self._service.faults.rate_per_s
        again = [f"retry-after: {math.ceil(1 / rate_per_s)}"] if why == "rate_limit" and rate_per_s else []
        self._end(out, mock_answer.error(told.status, told.message, told.kind, entry.id, again))

    def _write(self, out: _Out, payload: bytes, at_s: float, tokens: int) -> None:
        entry = out.entry
        write_ns = time.monotonic_ns()
        if not out.connection.send(payload):
            entry.blocked += 1
        entry.head_ns = entry.head_ns or write_ns
        entry.write_ns.append(write_ns)
        entry.write_tokens.append(tokens)
        entry.due_ns.append(self._zero_ns + round(at_s * NS_PER_S))

    def _end(self, out: _Out, payload: bytes) -> None:
        entry = out.entry
        entry.end_ns = time.monotonic_ns()
        out.connection.send(payload)
        del self._outs[entry.n]
        del self._keys[out.connection]
        self._on_end()
        out.connection.finish()


def hashes(texts: Sequence[str], template_tokens: int, block_tokens: int, adapter: int | None) -> tuple[int, ...]:
    """Of the full blocks of a prompt of one token a word, each with all before it; an adapter has a cache of its own.

    Equal within one process, not from one to the next.
    """
    words = ["<template>"] * template_tokens + [word for text in texts for word in text.split()]
    found, last = [], hash(("adapter", adapter))
    for first in range(0, len(words) - block_tokens + 1, block_tokens):
        last = hash((last, *words[first : first + block_tokens]))
        found.append(last)
    return tuple(found)
