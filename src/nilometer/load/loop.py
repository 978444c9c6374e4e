"""The load loop: which lane sends what and when, until when, and what is written down. It decides; lanes act.

Closed loop: N lanes, each refilled the moment it is free, before anything of its last response is parsed. Open loop:
calls start when they are due, on whatever lane is free. The load goes on after the measured stretch until all requests
that started in it have ended, or the drain limit is reached.
"""

from __future__ import annotations

import time
from asyncio import AbstractEventLoop
from collections.abc import Callable
from functools import partial
from typing import Literal

from nilometer.core.mask import Mask
from nilometer.core.record import Call, Record
from nilometer.core.run import Health, Phases
from nilometer.net.route import Route

from .agenda import Agenda
from .backlog import NEVER_NS, Backlog
from .conversation import following, goes_on
from .counters import Counters, Field, State
from .digest import Digest, end_ns
from .exchange import Exchange
from .lane import Lane
from .order import Go, Order, StopReason
from .outage import NO_SOCKET, Outage
from .pulse import Pulse
from .supply import Supply

_OPENING_AT_A_TIME = 64


class LoadLoop:
    """One worker's load, from the first connection to the last record."""

    def __init__(
        self,
        loop: AbstractEventLoop,
        order: Order,
        route: Route,
        supply: Supply,
        write: Callable[[Record], None],
        counters: Counters,
    ) -> None:
        self.loop = loop
        self.route = route
        self.pulse = Pulse(loop, self._count_in_flight, self._row)
        self._order = order
        self._supply = supply
        self._backlog = Backlog(self, order, write, self._journal_broke)
        self._counters = counters
        self._agenda = Agenda(loop)
        self._lanes: list[Lane] = []
        self._idle: list[Lane] = []
        self._hungry: list[Lane] = []
        self._thinking = 0
        self._unopened = 0
        self._settled = 0
        self._accepting = False
        self._due_set = False
        self._in_flight = 0
        self._measured_started = 0
        self._started = 0
        self._launched_ns = 0
        self._connections = 0
        self.resent = 0
        self.keep_alive = order.keep_alive
        self._outage = Outage()
        self._socketless = 0
        self._next_scan_ns = 0
        self._start_ns = self._measured_ns = self._stop_ns = NEVER_NS
        self._limit_ns = NEVER_NS
        self._started_wall_ns = 0
        self._interrupted = False
        self._stopped_by: Literal["budget", "target_lost", "oversaturated"] | None = None
        self._cut = False
        self._done = False
        self.death: str | None = None
        self.on_done: Callable[[], None] = lambda: None
        supply.on_more = self._more

    # -- before the load ----------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Open the connections of a closed loop, a few at a time; the state turns READY when all were tried."""
        self.loop.set_exception_handler(self._unforeseen)
        self.pulse.start()
        for _ in range(self._order.lanes or 0):
            self._lanes.append(Lane(self))
        self._unopened = len(self._lanes)
        for lane in self._lanes[:_OPENING_AT_A_TIME]:
            self._unopened -= 1
            lane.open()
        self._perhaps_ready()

    def opened(self, lane: Lane) -> None:  # noqa: ARG002 - the lane's turn, whichever it was
        """A connection made ahead of the load was opened or refused."""
        if self._start_ns != NEVER_NS or self._done:
            return
        self._settled += 1
        if self._unopened:
            following = self._lanes[-self._unopened]
            self._unopened -= 1
            self.loop.call_soon(following.open)  # what fails at once must not pile up on the stack
        self._perhaps_ready()

    def _perhaps_ready(self) -> None:
        if self._settled >= len(self._lanes) and self._supply.filled and self._start_ns == NEVER_NS:
            self._counters[Field.STATE] = State.READY

    def next_connection(self) -> int:
        self._connections += 1
        return self._connections

    # -- the load -----------------------------------------------------------------------------------------------------

    def go(self, go: Go) -> None:
        """Start the load at the given moment."""
        order = self._order
        self._start_ns = go.start_ns
        self._started_wall_ns = go.started_wall_ns
        self._measured_ns = go.start_ns + order.warmup_ns
        if order.duration_ns is not None:
            self._stop_ns = self._measured_ns + order.duration_ns
            self._limit_ns = self._stop_ns + order.drain_ns
        self._accepting = True
        self._counters[Field.STATE] = State.RUNNING
        if order.lanes is None:
            self._schedule_next()
        else:
            for i, lane in enumerate(self._lanes):
                self._agenda.at(go.start_ns + order.ramp_ns * i // order.lanes, partial(self._begin, lane, False))

    def _begin(self, lane: Lane, at_once: bool) -> None:
        """Give a closed-loop lane its next call."""
        if not self._accepting:
            return
        call = self._supply.take()
        if call is not None:
            self._launch(lane, call, None, at_once)
        elif not self._supply.exhausted:
            self._hungry.append(lane)

    def _schedule_next(self) -> None:
        """Put the next call of an open loop on the agenda, unless it is there already."""
        call = self._supply.peek()
        if call is not None and self._accepting and not self._due_set:
            self._due_set = True
            self._agenda.at(self._start_ns + (call.due_ns or 0), self._begin_due)

    def _begin_due(self) -> None:
        self._due_set = False
        call = self._supply.take() if self._accepting else None
        if call is None:
            return
        lane = self._idle.pop() if self._idle else self._new_lane()
        self._launch(lane, call, self._start_ns + (call.due_ns or 0), False)
        self._schedule_next()

    def _new_lane(self) -> Lane:
        lane = Lane(self)
        self._lanes.append(lane)
        return lane

    def _more(self) -> None:
        """Calls came, or it is known that no more will."""
        self._perhaps_ready()
        if self._start_ns == NEVER_NS:
            return
        if self._order.lanes is None:
            self._schedule_next()
        hungry, self._hungry = self._hungry, []
        for lane in hungry:
            self._begin(lane, False)

    def _launch(self, lane: Lane, call: Call, due_ns: int | None, at_once: bool) -> None:
        now = time.monotonic_ns()
        exchange = Exchange(call, due_ns, now)
        start = now if due_ns is None else due_ns
        if start >= self._stop_ns:
            exchange.phase = "drain"
        elif start >= self._measured_ns:
            exchange.phase = "measured"
            self._measured_started += 1
            if self._order.requests is not None and self._measured_started >= self._order.requests:
                self._stop_accepting(now)
        self._in_flight += 1
        self._started += 1
        self._launched_ns = now
        lane.start(exchange, at_once)

    def ended(self, lane: Lane, exchange: Exchange) -> None:
        """A request is over: refill its slot first, digest it later."""
        self._in_flight -= 1
        pause_s = self._outage.pause_s(exchange, self._order.lanes, exchange.ended_ns or 0)
        if self._order.lanes is None:
            self._idle.append(lane)
        if self._accepting and goes_on(exchange):
            self._think(lane, exchange)
        elif self._order.lanes is None:
            pass
        elif pause_s:
            self.loop.call_later(pause_s, self._begin, lane, False)
        elif self._accepting:
            self._begin(lane, lane.ready)
        if exchange.ending == NO_SOCKET:
            self._socketless += 1
        self._backlog.add(exchange)

    def _think(self, lane: Lane, exchange: Exchange) -> None:
        """Put the next turn on the agenda; the slot of a closed loop thinks until then."""
        self._thinking += 1
        due_ns = end_ns(exchange, self.pulse) + exchange.call.later[0].think_ns
        self._agenda.at(due_ns, partial(self._next_turn, lane, exchange, due_ns))

    def _next_turn(self, lane: Lane, exchange: Exchange, due_ns: int) -> None:
        """Send it, on any free lane of an open loop. After an answer that was not ok the conversation is over."""
        self._thinking -= 1
        if not self._accepting:
            return
        answer = self._backlog.answer(exchange)
        if answer is not None:
            if self._order.lanes is None:
                lane = self._idle.pop() if self._idle else self._new_lane()
            self._launch(lane, following(exchange.call, answer), due_ns, False)
        elif self._order.lanes is not None:
            self._begin(lane, False)

    def grown(self, exchange: Exchange) -> None:
        """A very long response: digest what came, so that its bytes can go."""
        self._backlog.digest(exchange).step(NEVER_NS)

    def _journal_broke(self, fault: OSError) -> None:
        self.death = broken_journal(fault)
        self.loop.call_soon(self.cancel)

    def _unforeseen(self, _: AbstractEventLoop, context: dict[str, object]) -> None:
        """A fault of this program: end with what was measured rather than hang; in the end itself, end at once."""
        if self._done:
            self.on_done()
            return
        fault = f"fault: {context.get('exception') or context.get('message')!r}"
        self.death = self.death or Mask(self._order.secrets).word(fault)
        self.loop.call_soon(self.cancel)

    # -- the watch ----------------------------------------------------------------------------------------------------

    def _count_in_flight(self) -> int:
        return self._in_flight

    def _row(self, now: int) -> None:
        """Every 100 ms: publish the counters, look for what is overdue, see whether it is over."""
        counters = self._counters
        counters[Field.IN_FLIGHT] = self._in_flight
        counters[Field.STARTED] = self._started
        counters[Field.MEASURED_STARTED] = self._measured_started
        counters[Field.FRAMES] = self.pulse.frames
        counters[Field.RECORDED] = self._backlog.recorded
        counters[Field.UNPARSED] = len(self._backlog)
        counters[Field.UNHEARD_IN_A_ROW] = self._outage.in_a_row
        counters[Field.UNHEARD_SINCE_NS] = self._outage.since_ns
        counters[Field.STARVED] = self._supply.starved
        counters[Field.ALIVE_NS] = now
        for lane in self._lanes:
            lane.look_after(now)
        if now >= self._next_scan_ns:
            self._scan(now)
        if self._start_ns != NEVER_NS:
            self._perhaps_over(now)

    def _sign_of_life(self) -> None:
        self._counters[Field.ALIVE_NS] = time.monotonic_ns()

    def _scan(self, now: int) -> None:
        limits = self._order.limits
        self._next_scan_ns = now + min(limits.asked_ns, default=NEVER_NS) // 50
        for lane in self._lanes:
            fault = lane.overdue(now, limits)
            if fault is not None:
                self._give_up(lane, fault)

    def _give_up(self, lane: Lane, fault: str) -> None:
        exchange = lane.exchange
        if exchange is not None and fault in ("timeout_first_token", "timeout_idle"):
            digest = self._look(lane, exchange)
            if fault == "timeout_first_token" and digest is not None and (digest.has_matter or not digest.streams):
                exchange.looked = True
                return
            if fault == "timeout_idle" and digest is not None and digest.complete:
                fault = "whole"
        lane.abort(fault)

    def _look(self, lane: Lane, exchange: Exchange) -> Digest | None:
        """Read what has come so far of a response that is still open; None before its headers."""
        if not lane.take_head(exchange):
            return None
        digest = self._backlog.digest(exchange)
        digest.step(NEVER_NS)
        return digest

    # -- the end ------------------------------------------------------------------------------------------------------

    def _stop_accepting(self, now: int) -> None:
        self._accepting = False
        self._stop_ns = min(self._stop_ns, max(now, self._measured_ns))
        self._limit_ns = min(self._limit_ns, now + self._order.drain_ns)
        self._counters[Field.STATE] = State.DRAINING

    def drain(self, why: StopReason) -> None:
        """Start nothing more; what is in flight may end until the drain limit."""
        self._interrupted = self._interrupted or why == "interrupted"
        self._stopped_by = why if why != "interrupted" else self._stopped_by
        self._agenda.clear()
        self._stop_accepting(time.monotonic_ns())
        if self._start_ns == NEVER_NS:
            self._finish(time.monotonic_ns())

    def cancel(self) -> None:
        """End everything now."""
        self._interrupted = self.death is None
        self._finish(time.monotonic_ns())

    def _perhaps_over(self, now: int) -> None:
        if now >= self._stop_ns:
            self._counters[Field.STATE] = State.DRAINING
        if self._done:  # the last row of all is no new look
            return
        if self._accepting and self._order.as_long_as_calls and self._nothing_left(now):
            self._stop_accepting(self._launched_ns)
        if now >= self._limit_ns:
            self._cut = self._in_flight > 0
            self._finish(now)
        elif self._accepting and now >= self._stop_ns:
            if not self._measured_in_flight():
                self._finish(now)
        elif self._in_flight == 0 and (not self._accepting or self._nothing_left(now)):
            self._finish(now)

    def _nothing_left(self, now: int) -> bool:
        """Whether all is sent, the later turns of conversations too."""
        asks_on = (lane.exchange is not None and lane.exchange.call.later for lane in self._lanes)
        return self._supply.exhausted and now > self._start_ns and not self._thinking and not any(asks_on)

    def _measured_in_flight(self) -> bool:
        return any(lane.exchange is not None and lane.exchange.phase == "measured" for lane in self._lanes)

    def _finish(self, now: int) -> None:
        if self._done:
            return
        self._done = True
        self._accepting = False
        self._agenda.clear()
        self._stop_ns = min(self._stop_ns, max(now, self._measured_ns))
        for lane in self._lanes:
            lane.abort("censored" if self._cut else "cancelled")
        self._backlog.clear(self._sign_of_life)
        self._row(time.monotonic_ns())
        self.pulse.row(time.monotonic_ns())
        self.on_done()

    def phases(self) -> Phases:
        """The borders of this run."""
        end = time.monotonic_ns()
        start = min(self._start_ns, end)
        return Phases(
            started_wall_ns=self._started_wall_ns,
            start_ns=start,
            measured_ns=min(self._measured_ns, max(end, start)),
            stop_ns=min(self._stop_ns, end),
            end_ns=end,
            interrupted=self._interrupted,
            stopped_by=self._stopped_by,
            cut_at_drain_limit=self._cut,
        )

    def health(self) -> Health:
        """What the worker saw of itself."""
        pulse = self.pulse
        return Health(
            at=pulse.at.tobytes(),
            wall_offset=pulse.offset.tobytes(),
            lag_max=pulse.lag_max.tobytes(),
            in_flight=pulse.in_flight.tobytes(),
            cpu=pulse.cpu.tobytes(),
            asked_in_flight=self._order.lanes,
            event_loop=type(self.loop).__module__.partition(".")[0],
            connections_opened=self._connections,
            resent=self.resent,
            socketless=self._socketless,
            wall_steps=len(pulse.steps),
            death=self.death,
        )


def broken_journal(fault: OSError) -> str:
    """The death of a worker whose journal cannot be written any more."""
    return f"journal: {fault.strerror or fault}"
