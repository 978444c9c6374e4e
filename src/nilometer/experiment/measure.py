"""One load test, start to end: probe, load, figures, findings, archive. What was measured is never lost on the way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from random import Random
from typing import NamedTuple, TypeVar

import msgspec

from nilometer import __version__
from nilometer.core.environment import EngineFacts, Environment, ModelFacts
from nilometer.core.errors import SpecError, TargetError
from nilometer.core.finding import Finding
from nilometer.core.group import Group
from nilometer.core.record import Record
from nilometer.core.run import Run, Runs, new_id
from nilometer.core.spec import RECORDED, Load, Spec, to_tree
from nilometer.load import journal
from nilometer.load.journal import Header
from nilometer.metrics import slo, window
from nilometer.metrics.curve import out_of_reach, unconnected
from nilometer.telemetry.machine import read_client, read_machine
from nilometer.telemetry.process import listening_pid
from nilometer.telemetry.sampler import Sampler
from nilometer.wire.dialects import generates
from nilometer.workload import arrivals

from . import staff
from .approach import Approach, Headers, approach
from .calibrate import one_process
from .conclude import conclude
from .filing import file_run, put_away
from .follow import Stop, Watch, put_on
from .orders import Foretold, Share, foretold
from .places import allow_sockets, journal_folder, pages_file, shares, usable_count
from .server_side import TARGETS_OWN, PagesFrom, find, watching

Facts = TypeVar("Facts", EngineFacts, ModelFacts)


class Place(NamedTuple):
    """Where a run stands in its group."""

    group: Group | None = None
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
    oversaturation_ends: bool = False,
    still: Sequence[Spec] = (),
    pages: PagesFrom = TARGETS_OWN,
) -> Run:
    """Run one load test and file it. Raises TargetError and SpecError before anything was sent under load.

    `take_records` is handed all records once, in order of ending. The journals are put away when everything that was
    to be kept is kept; until then they hold the run, and an ArchiveError `run_not_archived` names them.
    `still`: the tests that will follow in its series, to foretell what all will use.
    `oversaturation_ends`: an open loop whose requests pile up is not gone on with.
    `pages`: where the server's own figures come from.
    """
    check(spec)
    stop.under_load = False
    allow_sockets(spec.load.concurrency)
    random = random or Random()  # noqa: S311 - names, not secrets
    way = approach(
        spec, headers, address=behind.url if behind else spec.target, salt=new_id(random), on_step=watch.probing
    )
    check(way.spec)  # the trace of a replay may have ended before its window
    page = find(way, headers, pages)
    run_id = new_id(random)
    environment = _environment(way, behind)
    workers, ahead = _staff(way, spec.load, usable_count(environment.machine.container_cpu_limit), watch)
    files = shares(run_id, workers, journal_folder())
    header = _header(run_id, way._replace(findings=[*way.findings, *ahead]), environment, place, workers)
    held = _open_journals(header, files)
    pid = behind.pid if behind else listening_pid(way.endpoint.host, way.endpoint.port)
    watch.before(
        way.spec,
        api=way.api,
        now_wall_s=time.time(),
        amount=_foretold(way, [way.spec]),
        in_all=_foretold(way, [way.spec, *still]) if still else None,
        ahead=ahead,
    )
    with Sampler(pid) as sampler, watching(page, way.secrets, pages_file(run_id)) as seen, held:
        death, gone = put_on(way, files, watch, stop, keep_text, oversaturation_ends)
        journals = [share.journal for share in files]
        cores = usable_count(environment.machine.container_cpu_limit)
        side = seen()._replace(host=sampler.host(), cores=cores)
        run = conclude(
            header, journals, death=death, gone=gone, memory=sampler.peaks(), draw=sampler.drawn(), side=side
        )
        if runs is not None:
            file_run(run, header.series, journals, runs, side.telemetry)
        if take_records is not None:
            take_records(journal.records(journals))
        put_away(run, journals)
    return run


def check(spec: Spec) -> None:
    """Refuse what cannot be understood or measures nothing before anything is sent: SLO, window, arrivals, workers.

    Lengths are read, and refused, where `approach` begins.
    """
    if spec.slo is not None:
        _check_bounds(spec, slo.parse(spec.slo))
    if spec.load.requests is None and spec.load.duration_s == 0:
        raise SpecError("duration_zero")
    borders_s = window.rule_of(spec.load).borders_s
    if borders_s is not None and spec.load.requests is None and borders_s[1] > spec.load.duration_s:
        raise SpecError("window_too_late", window=spec.load.window, duration=spec.load.duration_s)
    _check_arrivals(spec)
    most = staff.most(spec.load)
    if spec.load.workers is not None and spec.load.workers > most:
        raise SpecError("workers_too_many", workers=spec.load.workers, most=int(most))


def _check_bounds(spec: Spec, bounds: Sequence[slo.Bound]) -> None:
    """Refuse a bound on tokens that the API does not generate."""
    blind = [bound.text for bound in bounds if bound.metric in slo.OF_TOKENS]
    if blind and not generates(spec.api):
        raise SpecError("slo_without_tokens", bound=blind[0], api=spec.api)


def _check_arrivals(spec: Spec) -> None:
    load = spec.load
    if load.arrivals == RECORDED:
        if spec.prompts.workload is None:
            raise SpecError("replay_without_workload")
        if load.requests is not None:
            raise SpecError("replay_by_count")
    else:
        rate_per_s = load.rate_per_s if load.is_open else 1.0
        arrivals.pacer(load.arrivals, rate_per_s, Random(0))  # noqa: S311 - only looked at


def _foretold(way: Approach, tests: Sequence[Spec]) -> Foretold | None:
    each_s = None if way.mean_e2e_s is None else way.mean_e2e_s + way.mean_think_s
    return foretold(
        tests,
        each_s,
        way.mean_input_tokens,
        way.mean_output_tokens,
        way.recorded_s,
        per_arrival=way.requests_per_arrival,
    )


def _staff(way: Approach, asked_for: Load, cores: int, watch: Watch) -> tuple[int, list[Finding]]:
    """How many workers, and what is to be said before the load. Measured only where one might not do."""
    load, one_per_s = way.spec.load, None
    output_tokens = way.mean_output_tokens if way.spec.stream else 1.0
    asked = (
        staff.events_per_s(load, output_tokens, way.mean_e2e_s, way.recorded_s, per_arrival=way.requests_per_arrival)
        or 0.0
    )
    if asked > staff.SURE_EVENTS_PER_S * (load.workers or 1):
        watch.probing("calibrate")
        one_per_s = one_process()
    workers, found = staff.staff(load, asked, one_per_s, cores)
    return workers, [*staff.trace_cut(asked_for, way.recorded_s), *found]


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


def _header(run_id: str, way: Approach, environment: Environment, place: Place, workers: int) -> Header:
    return Header(
        run=run_id,
        worker=0,
        workers=workers,
        spec=to_tree(way.spec),
        environment=environment,
        started_wall_ns=time.time_ns(),
        tool_version=__version__,
        group=place.group.id if place.group else None,
        series=place.group,
        role=place.role,
        level=place.level,
        order=place.order,
        parent=place.parent,
        findings=way.findings,
    )


def _open_journals(header: Header, files: list[Share]) -> ExitStack:
    """One journal a worker, held until the run is filed."""
    held = ExitStack()
    for i, share in enumerate(files):
        held.enter_context(journal.create(share.journal, msgspec.structs.replace(header, worker=i)))
    return held


def lost(run: Run) -> TargetError | None:
    """The error of a run whose target was not there, or was there no longer; it names the proxy where one stood before.

    Which runs those are is told by `out_of_reach`.
    """
    counts, spec = run.summary.run_requests, run.spec
    if not out_of_reach(run):
        return None
    n = unconnected(run) + (counts.incomplete or 0)
    if counts.errors.get("tls", 0) > n / 2:
        return TargetError("tls_lost", url=spec.target, n=n)
    if spec.http.proxy:
        return TargetError("proxy_lost", url=spec.target, proxy=spec.http.proxy, n=n)
    return TargetError("target_lost", url=spec.target, n=n)
