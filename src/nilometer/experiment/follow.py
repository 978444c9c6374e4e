"""The load from its start to the end of the last worker, as the parent sees it: look on, pass on every wish to stop.

The user's wish, the budget's end, a target that is lost; and a worker that is not heard of any more is ended.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import msgspec

from nilometer.core.clock import NS_PER_S
from nilometer.core.errors import TargetError
from nilometer.core.finding import Finding
from nilometer.core.mask import Mask
from nilometer.core.record import Phase
from nilometer.core.spec import Spec
from nilometer.load.counters import Field
from nilometer.load.crew import Crew
from nilometer.load.order import Go, StopReason
from nilometer.net.fetch import fetch

from .approach import Approach
from .growth import Growth
from .live import Live, Observer
from .orders import Foretold, Share, counted, orders

LOST_AFTER_NS = 10 * NS_PER_S
"""Nothing was heard of the target for so long, in `_LOST_TRIES` requests or more: it counts as lost."""
_LOST_TRIES = 3
_LOOK_S = 0.25
_GONE_S = 2.0
_CANCEL_LIMIT_NS = 5 * NS_PER_S
"""A worker that has not ended so long after it was told to cancel is killed."""


class Watch(Protocol):
    """Who looks on while a run goes on."""

    def probing(self, step: str) -> None: ...

    def before(
        self,
        spec: Spec,
        *,
        api: str,
        now_wall_s: float,
        amount: Foretold | None = None,
        in_all: Foretold | None = None,
        ahead: Sequence[Finding] = (),
    ) -> None: ...

    def update(self, live: Live) -> None: ...


class Stop:
    """How often the user asked to stop: once = drain, twice = cancel."""

    def __init__(self) -> None:
        self.asked = 0
        self.under_load = False
        """Until then an interrupt ends everything at once: there is nothing yet to be saved."""


class End(NamedTuple):
    """What the journals of a run do not tell: how the workers ended, and whether the target was gone by then."""

    how: str
    gone: bool


def put_on(
    way: Approach, files: list[Share], watch: Watch, stop: Stop, keep_text: bool, oversaturation_ends: bool
) -> End:
    """Put the load on, to its end."""
    told = orders(way.spec, way, files, keep_text=keep_text)
    observer = Observer([share.journal for share in files])
    try:
        with Crew(told, counted(way.spec.load, way.calls)) as crew:
            crew.wait_ready()
            stop.under_load = True
            growth = Growth() if oversaturation_ends and way.spec.load.is_open else None
            _follow(crew, crew.go(), way.spec, observer, watch, stop, growth)
            unheard = crew.total(Field.UNHEARD_IN_A_ROW) > 0
        how = ending([(worker.process.returncode, worker.last_word) for worker in crew.workers])
        return End(Mask(way.secrets).word(how), unheard and way.spec.probe and _gone(way))
    finally:
        observer.close()
        for share in files:
            share.counters.unlink(missing_ok=True)


def _gone(way: Approach) -> bool:
    """Whether nobody answers any more where the last requests were not heard. Too few or too late for a load to be
    stopped, they would be told as failures of a service that is there."""
    try:
        fetch(way.address, timeout_s=_GONE_S, insecure=way.spec.http.insecure, proxy=way.proxy)
    except TargetError as fault:
        return fault.slug in ("connect_refused", "connection_cut", "proxy_unreachable", "name_unknown")
    return False


def ending(workers: list[tuple[int, str]]) -> str:
    """How the first worker that did not end well did end: its last word, else the signal or exit status.

    `journal: No space left on device`, `silent`, `SIGKILL`, `exit 1`.
    """
    status, last_word = next(((status, word) for status, word in workers if status), (0, ""))
    return last_word or (signal.Signals(-status).name if status < 0 else f"exit {status}")


def _follow(
    crew: Crew, go: Go, spec: Spec, observer: Observer, watch: Watch, stop: Stop, growth: Growth | None
) -> None:
    """Look on until every worker has ended."""
    told = 0
    drained = False
    cancelled_ns: int | None = None
    while crew.running:
        crew.check()
        now = time.monotonic_ns()
        phase, elapsed_s, total_s = _phase(spec, go, now, crew)
        live = observer.look(phase, elapsed_s, now, crew.total(Field.FRAMES), crew.total(Field.IN_FLIGHT))
        watch.update(msgspec.structs.replace(live, total_s=total_s))
        crew.end_the_silent()
        if growth is not None and phase == "measured":
            growth.look(elapsed_s, live.in_flight, live.ttft_ms_p50)
        if stop.asked > told:
            told = stop.asked
            crew.drain("interrupted") if told == 1 else crew.cancel()
            cancelled_ns = now if told > 1 else None
        if cancelled_ns is not None and now - cancelled_ns > _CANCEL_LIMIT_NS:
            crew.kill()
        if not drained and (why := _reason_to_stop(spec, crew, observer, growth, now)):
            crew.drain(why)
            drained = True
        time.sleep(_LOOK_S)


def _reason_to_stop(
    spec: Spec, crew: Crew, observer: Observer, growth: Growth | None, now_ns: int
) -> StopReason | None:
    budget = spec.load.max_total_tokens
    if budget is not None and observer.tokens >= budget:
        return "budget"
    if growth is not None and growth.is_real():
        return "oversaturated"
    lost = crew.unheard_ns(now_ns) >= LOST_AFTER_NS and crew.total(Field.UNHEARD_IN_A_ROW) >= _LOST_TRIES
    return "target_lost" if lost else None


def _phase(spec: Spec, go: Go, now_ns: int, crew: Crew) -> tuple[Phase, float, float | None]:
    """(phase, seconds in it, its length or None where a count or the drain ends it)."""
    load = spec.load
    at_s = (now_ns - go.start_ns) / NS_PER_S
    if at_s < load.warmup_s:
        return "warmup", max(at_s, 0.0), load.warmup_s
    if load.requests is not None:
        measured = crew.total(Field.MEASURED_STARTED) < load.requests
        return ("measured" if measured else "drain"), at_s - load.warmup_s, None
    if at_s < load.warmup_s + load.duration_s:
        return "measured", at_s - load.warmup_s, load.duration_s
    return "drain", at_s - load.warmup_s - load.duration_s, load.drain_s
