"""One load test, start to end: probe, load, figures, findings, archive. What was measured is never lost on the way."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import NamedTuple, Protocol, TypeVar

import msgspec

from nilometer import __version__
from nilometer.core.clock import NS_PER_S
from nilometer.core.environment import EngineFacts, Environment, ModelFacts
from nilometer.core.errors import ArchiveError, SpecError, TargetError
from nilometer.core.record import Phase, Record
from nilometer.core.run import Run, Runs, new_id
from nilometer.core.spec import Spec, to_tree
from nilometer.load import journal
from nilometer.load.counters import Field
from nilometer.load.crew import Crew
from nilometer.load.journal import Header
from nilometer.load.order import Go, StopReason
from nilometer.metrics import slo, window
from nilometer.telemetry.machine import read_client, read_machine
from nilometer.telemetry.process import listening_pid
from nilometer.telemetry.sampler import MemorySampler
from nilometer.workload import arrivals

from .approach import Approach, Headers, approach
from .conclude import conclude
from .live import Live, Observer
from .orders import Share, orders, tokens_foretold
from .places import allow_sockets, journal_folder, shares

Facts = TypeVar("Facts", EngineFacts, ModelFacts)

_LOOK_S = 0.25
_CANCEL_LIMIT_NS = 5 * NS_PER_S
"""A worker that has not ended so long after it was told to cancel is killed."""
_LOST_AFTER = 50
"""Connect failures in a row, with none between them that worked, after which the target counts as lost."""


class Watch(Protocol):
    """Who looks on while a run goes on."""

    def probing(self, step: str) -> None: ...

    def before(self, spec: Spec, *, api: str, now_wall_s: float, tokens: int | None = None) -> None: ...

    def update(self, live: Live) -> None: ...


class Stop:
    """How often the user asked to stop: once = drain, twice = cancel."""

    def __init__(self) -> None:
        self.asked = 0
        self.under_load = False
        """Until then an interrupt ends everything at once: there is nothing yet to be saved."""


class Place(NamedTuple):
    """Where a run stands in its group."""

    group: str | None = None
    role: str | None = None
    level: str | None = None
    order: int | None = None
    parent: str | None = None


ALONE = Place()


class Behind(NamedTuple):
    """What is known of the engine behind the target when we launched it ourselves."""

    url: str
    engine: EngineFacts
    model: ModelFacts
    pid: int


def measure(
    spec: Spec,
    headers: Headers,
    *,
    runs: Runs | None,
    watch: Watch,
    stop: Stop,
    place: Place = ALONE,
    behind: Behind | None = None,
    keep_text: bool = False,
    random: Random | None = None,
    take_records: Callable[[Iterator[Record]], None] | None = None,
) -> Run:
    """Run one load test and file it. Raises TargetError and SpecError before anything was sent under load.

    `take_records` is handed all records once, in order of ending. The journals are removed when everything that was
    to be kept is kept; until then they hold the run, and an ArchiveError `run_not_archived` names them.
    """
    check(spec)
    allow_sockets(spec.load.concurrency)
    random = random or Random()  # noqa: S311 - names, not secrets
    way = approach(
        spec, headers, address=behind.url if behind else spec.target, salt=new_id(random), on_step=watch.probing
    )
    run_id = new_id(random)
    files = shares(run_id, spec.load.workers, journal_folder())
    environment = _environment(way, behind)
    header = _header(run_id, way.spec, environment, place)
    held = _open_journals(header, files)
    pid = behind.pid if behind else listening_pid(way.endpoint.host, way.endpoint.port)
    watch.before(way.spec, api=way.api, now_wall_s=time.time(), tokens=_foretold(way))
    with MemorySampler(pid) as memory, held:
        death = _load(way, files, watch, stop, keep_text)
        journals = [share.journal for share in files]
        run = conclude(header, journals, death=death, memory=memory.peaks(), findings=way.findings)
        if runs is not None:
            _file(run, runs, journals)
        if take_records is not None:
            take_records(journal.records(journals))
        for path in journals:
            path.unlink(missing_ok=True)
    return run


def check(spec: Spec) -> None:
    """Refuse what cannot be understood before anything is sent: SLO, window, arrivals, workers.

    Lengths are read, and refused, where `approach` begins.
    """
    if spec.slo:
        slo.parse(spec.slo)
    borders_s = window.rule_of(spec.load).borders_s
    if borders_s is not None and spec.load.requests is None and borders_s[1] > spec.load.duration_s:
        raise SpecError("window_too_late", window=spec.load.window, duration=spec.load.duration_s)
    arrivals.pacer(spec.load.arrivals, spec.load.rate_per_s or 1.0, Random(0))  # noqa: S311 - only looked at
    most = min(n for n in (spec.load.concurrency, spec.load.requests, spec.load.workers) if n is not None)
    if spec.load.workers > most:
        raise SpecError("workers_too_many", workers=spec.load.workers, most=most)


def _foretold(way: Approach) -> int | None:
    return tokens_foretold(way.spec, way.mean_e2e_s, way.mean_input_tokens, way.mean_output_tokens)


def _environment(way: Approach, behind: Behind | None) -> Environment:
    engine, model = way.engine, way.model
    if behind is not None:
        engine = _joined(behind.engine, engine)
        model = _joined(behind.model, model)
    return Environment(machine=read_machine(), engine=engine, model=model, client=read_client())


def _joined(first: Facts, second: Facts) -> Facts:
    """The first's facts; the second's where the first has none."""
    known = {k: v for k, v in msgspec.structs.asdict(first).items() if v is not None}
    return msgspec.structs.replace(second, **known)


def _header(run_id: str, spec: Spec, environment: Environment, place: Place) -> Header:
    return Header(
        run=run_id,
        worker=0,
        workers=spec.load.workers,
        spec=to_tree(spec),
        environment=environment,
        started_wall_ns=time.time_ns(),
        tool_version=__version__,
        group=place.group,
        role=place.role,
        level=place.level,
        order=place.order,
        parent=place.parent,
    )


def _open_journals(header: Header, files: list[Share]) -> ExitStack:
    """One journal a worker, held until the run is filed."""
    held = ExitStack()
    for i, share in enumerate(files):
        held.enter_context(journal.create(share.journal, msgspec.structs.replace(header, worker=i)))
    return held


def _load(way: Approach, files: list[Share], watch: Watch, stop: Stop, keep_text: bool) -> str:
    """Put the load on; returns how the workers ended, for a run whose journals do not tell."""
    told = orders(way.spec, way, files, keep_text=keep_text)
    observer = Observer([share.journal for share in files])
    try:
        with Crew(told, way.calls) as crew:
            crew.wait_ready()
            stop.under_load = True
            _follow(crew, crew.go(), way.spec, observer, watch, stop)
            return ending([worker.process.wait() for worker in crew.workers])
    finally:
        observer.close()
        for share in files:
            share.counters.unlink(missing_ok=True)


def ending(statuses: list[int]) -> str:
    """How the first worker that did not end well ended: `SIGKILL`, `exit 4`."""
    status = next((status for status in statuses if status), 0)
    return signal.Signals(-status).name if status < 0 else f"exit {status}"


def _follow(crew: Crew, go: Go, spec: Spec, observer: Observer, watch: Watch, stop: Stop) -> None:
    """Look on until every worker has ended; pass on the user's wish to stop, the budget's, a lost target's."""
    told = 0
    drained = False
    cancelled_ns: int | None = None
    while crew.running:
        crew.check()
        now = time.monotonic_ns()
        phase, elapsed_s, total_s = _phase(spec, go, now, crew)
        live = observer.look(phase, elapsed_s, now, crew.total(Field.FRAMES), crew.total(Field.IN_FLIGHT))
        watch.update(msgspec.structs.replace(live, total_s=total_s))
        if stop.asked > told:
            told = stop.asked
            crew.drain("interrupted") if told == 1 else crew.cancel()
            cancelled_ns = now if told > 1 else None
        if cancelled_ns is not None and now - cancelled_ns > _CANCEL_LIMIT_NS:
            crew.kill()
        if not drained and (why := _reason_to_stop(spec, crew, observer)):
            crew.drain(why)
            drained = True
        time.sleep(_LOOK_S)


def _reason_to_stop(spec: Spec, crew: Crew, observer: Observer) -> StopReason | None:
    budget = spec.load.max_total_tokens
    if budget is not None and observer.tokens >= budget:
        return "budget"
    lost_after = max(_LOST_AFTER, 3 * (spec.load.concurrency or 1))
    return "target_lost" if crew.total(Field.CONNECT_FAILURES_IN_A_ROW) >= lost_after else None


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


def _file(run: Run, runs: Runs, journals: list[Path]) -> None:
    """Put the run into the archive; until that has worked the journals stay."""
    try:
        runs.put(run, journal.records(journals))
    except ArchiveError as fault:
        raise ArchiveError("run_not_archived", file=str(journals[0]), why=fault.slug, detail=str(fault)) from None


def lost(run: Run) -> TargetError | None:
    """The error of a run whose target was not there, or was there no longer."""
    counts = run.summary.run_requests
    refused = counts.errors.get("connect", 0)
    if run.phases.stopped_by == "target_lost" or (counts.started and refused == counts.started):
        return TargetError("target_lost", url=run.spec.target, n=refused)
    return None
