"""Answers paced by a Script: each piece of an answer is due at a time that counts from the start of its service.

One heap of due writes, one alarm.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections import deque
from collections.abc import Callable, Iterator

from . import mock_answer
from .mock_alarm import Alarm
from .mock_answer import Step
from .mock_ask import Ask
from .mock_connection import Connection
from .mock_script import FAULTS, Script, draw_fault
from .mock_truth import Entry


class Stream:
    """One answer on its way out."""

    __slots__ = ("connection", "ended", "entry", "start_ns", "step", "steps")

    def __init__(self, connection: Connection, entry: Entry, steps: Iterator[Step]) -> None:
        self.connection = connection
        self.entry = entry
        self.steps = steps
        self.step: Step | None = None
        self.start_ns = 0
        self.ended = False


class Scripted:
    """The pacing of one Script; `on_end` is called whenever a request has ended."""

    def __init__(self, script: Script, loop: asyncio.AbstractEventLoop, on_end: Callable[[], None]) -> None:
        self._script = script
        self._on_end = on_end
        self._streams: dict[Connection, Stream] = {}
        self._waiting: deque[Stream] = deque()
        self._in_service = 0
        self._due: list[tuple[int, int, Stream]] = []
        self._ties = 0
        self._alarm = Alarm(loop, self._ring)

    def begin(self, connection: Connection, entry: Entry, ask: Ask) -> None:
        """A request was read: serve it or let it wait."""
        stream = self._prepare(connection, entry, ask)
        if self._script.slots and self._in_service >= self._script.slots:
            self._waiting.append(stream)
        else:
            self._serve(stream, entry.read_ns)

    def left(self, connection: Connection) -> None:
        """The client is gone."""
        stream = self._streams.get(connection)
        if stream is not None:
            if stream.entry.end_ns is None:
                stream.entry.left_ns = time.monotonic_ns()
            self._end(stream)

    @property
    def context_tokens(self) -> None:
        """A script serves prompts of any length."""

    def page(self) -> None:
        """A script has no engine whose metrics could be shown."""

    def close(self) -> None:
        """Write nothing more."""
        self._alarm.close()

    def _prepare(self, connection: Connection, entry: Entry, ask: Ask) -> Stream:
        fault = draw_fault(self._script, entry.n)
        reply = mock_answer.answer(self._script, ask, entry.n, entry.id, fault)
        entry.status = reply.status or None
        entry.prompt_tokens = mock_answer.prompt_tokens(self._script, ask)
        entry.reasoning_tokens = reply.reasoning_tokens
        if fault is not None:
            entry.meant = fault.kind
            entry.outcome, entry.error = FAULTS[fault.kind][:2]
        stream = Stream(connection, entry, reply.steps)
        self._streams[connection] = stream
        return stream

    def _serve(self, stream: Stream, start_ns: int) -> None:
        self._in_service += 1
        stream.start_ns = stream.entry.start_ns = start_ns
        self._advance(stream, start_ns)
        if self._due:
            self._alarm.set(self._due[0][0])

    def _advance(self, stream: Stream, written_ns: int) -> None:
        """Fetch the stream's next step and put it on the heap; a stream without one ended with its last write."""
        step = next(stream.steps, None)
        stream.step = step
        if step is None:
            stream.entry.end_ns = written_ns
            self._end(stream)
            stream.connection.finish()
            return
        stream.start_ns += step.gaps * self._script.slowdown_ns(self._in_service)
        at_ns = stream.start_ns + step.at_ns
        if step.tokens:
            at_ns = self._script.on_grid_ns(at_ns)
        self._ties += 1
        heapq.heappush(self._due, (at_ns, self._ties, stream))

    def _ring(self) -> None:
        """Write every step that is due. What becomes due meanwhile waits a turn, so that reads get theirs."""
        due = self._due
        now_ns = time.monotonic_ns()
        batch: list[Stream] = []
        while due and due[0][0] <= now_ns:
            batch.append(heapq.heappop(due)[2])
        for stream in batch:
            if not stream.ended:
                self._write(stream)
        if due:
            self._alarm.set(due[0][0])

    def _write(self, stream: Stream) -> None:
        step, entry = stream.step, stream.entry
        if step is None:
            return
        write_ns = time.monotonic_ns()
        taken = stream.connection.send(step.payload)
        if step.tokens:
            entry.write_ns.append(write_ns)
            entry.write_tokens.append(step.tokens)
        elif entry.head_ns is None and step.payload:
            entry.head_ns = write_ns
        if step.then != "next":
            if step.then == "close":
                entry.end_ns = write_ns
                stream.connection.close()
        elif taken:
            self._advance(stream, write_ns)
        else:
            entry.blocked += 1
            stream.connection.on_drained = lambda: self._resume(stream)

    def _resume(self, stream: Stream) -> None:
        if not stream.ended:
            self._advance(stream, time.monotonic_ns())
            if self._due:
                self._alarm.set(self._due[0][0])

    def _end(self, stream: Stream) -> None:
        """Take the stream out of service and let the next one in."""
        if stream.ended:
            return
        stream.ended = True
        self._streams.pop(stream.connection, None)
        if stream.entry.start_ns is None:
            self._waiting.remove(stream)
        else:
            self._in_service -= 1
        self._on_end()
        while self._waiting and (not self._script.slots or self._in_service < self._script.slots):
            self._serve(self._waiting.popleft(), time.monotonic_ns())
