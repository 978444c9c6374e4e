"""What `nilo measure` does with its options: find the target, run, show, keep, and choose the exit code."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from random import Random
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

from nilometer.core.errors import NiloError, SpecError
from nilometer.core.group import Group
from nilometer.core.mask import Mask
from nilometer.core.record import Record
from nilometer.core.run import Run, new_id
from nilometer.core.spec import Spec, secrets_of, to_toml, without_secrets
from nilometer.experiment.follow import Stop
from nilometer.experiment.measure import ALONE, Behind, Place, lost, measure
from nilometer.experiment.series import Series, one_by_one, tokens_left, within
from nilometer.experiment.server_side import TARGETS_OWN, PagesFrom
from nilometer.metrics.validity import DEATHS

from .machine import bounds_held, group_object, run_object
from .pages_options import pages_given, secrets_of_pages
from .progress import Progress
from .session import Session, check_writable, writing
from .spec_options import headers_given, resolve

if TYPE_CHECKING:
    from nilometer.archive.protocol import Archive

_ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
Headers = tuple[tuple[str, str], ...]
TakeRecords = Callable[[Iterator[Record]], None]


class Found(NamedTuple):
    """The target, ready to be measured."""

    spec: Spec
    headers: Headers
    behind: Behind | None
    pages: PagesFrom = TARGETS_OWN


def run_measure(target: str | None, session: Session, given: dict[str, Any]) -> int:
    """One test, or K of the same in a group, which have one token budget; returns the exit code of the contract."""
    with ExitStack() as stack:
        archive = None if given["no_archive"] else stack.enter_context(open_archive_of(session))
        take_records = _records_to(given["records"]) if given["records"] else None
        found = stack.enter_context(found_target(target, session, given, archive))
        stop = stack.enter_context(interrupts())
        series, group = _repeat(found, session, given, archive, stop, take_records)
    show(series.runs, group, session, archived=archive is not None)
    return exit_code(series, session)


@contextmanager
def open_archive_of(session: Session) -> Iterator[Archive]:
    """The archive the session names; opened before anything is measured, so that a bad place shows at once."""
    from nilometer.archive.store import open_archive

    with open_archive(session.archive_url) as archive:
        yield archive


@contextmanager
def found_target(
    target: str | None, session: Session, given: dict[str, Any], archive: Archive | None
) -> Iterator[Found]:
    """The target as it is asked for, reached."""
    base = like(given["like"], session, archive) if given["like"] else None
    spec = resolve(target or "", given, base)
    headers = headers_given(spec, given, os.environ)
    session.mask = Mask((*secrets_of(spec, headers), *secrets_of_pages(given)))
    pages = pages_given(given)
    with reached(spec, headers, session) as found:
        yield found._replace(pages=pages)


@contextmanager
def reached(spec: Spec, headers: Headers, session: Session) -> Iterator[Found]:
    """The target by its address, or the engine that it names, started for as long as the context lasts."""
    from nilometer.engines import embedded

    refuse_what_is_no_target(spec.target)
    if embedded.names_engine(spec.target):
        with embedded.launch_spec(spec.target, tell=session.progress) as engine:
            behind = Behind(engine.url, engine.facts, engine.model, engine.pid)
            yield Found(spec, (*headers, *engine.headers.items()), behind)
    else:
        yield Found(spec, headers, None)


def refuse_what_is_no_target(target: str) -> None:
    """Say at once what a word may be that is neither an address nor an engine: slug `target_unknown`."""
    from nilometer.engines.catalogue import EMBEDDED, ENGINES
    from nilometer.engines.embedded import names_engine
    from nilometer.net.endpoint import parse

    if names_engine(target):
        return
    try:
        parse(target)
    except SpecError as fault:
        if "://" in target:
            raise
        known = ", ".join([EMBEDDED, *ENGINES])
        raise SpecError("target_unknown", target=fault.params["target"], known=known) from None


def like(ref: str, session: Session, archive: Archive | None) -> Spec:
    if archive is None:
        with open_archive_of(session) as opened:
            return like(ref, session, opened)
    run = archive.get(archive.resolve(ref))
    if run.origin == "imported":
        raise SpecError("like_imported", run=run.id, tool=run.tool)
    return run.spec


def _repeat(
    found: Found,
    session: Session,
    given: dict[str, Any],
    archive: Archive | None,
    stop: Stop,
    take_records: TakeRecords | None,
) -> tuple[Series, str | None]:
    random = Random()  # noqa: S311 - names, not secrets
    times = given["repeat"]
    group = None
    if times > 1:
        group = Group(
            id=new_id(random), type="repeat", started_wall_ns=time.time_ns(), spec=to_toml(without_secrets(found.spec))
        )

    measured: list[Run] = []

    def test(i: int) -> Run:
        with Progress(session.words, quiet=session.quiet) as progress:
            run = measure(
                within(found.spec, tokens_left(found.spec, measured)),
                found.headers,
                runs=archive,
                watch=progress,
                stop=stop,
                place=Place(group=group, order=i) if group else ALONE,
                behind=found.behind,
                keep_text=given["keep_text"],
                random=random,
                take_records=take_records,
                still=[found.spec] * (times - 1 - i),
                pages=found.pages,
            )
        measured.append(run)
        return run

    def tests() -> Iterator[Callable[[], Run]]:
        for i in range(times):
            left = tokens_left(found.spec, measured)
            if left is not None and left <= 0:
                session.progress("repeat.tokens", n=i, of=times)
                return
            yield partial(test, i)

    return one_by_one(tests(), stop), group.id if group else None


@contextmanager
def interrupts() -> Iterator[Stop]:
    """Ctrl-C (or SIGTERM, SIGHUP) once: drain what is in flight; twice: cancel it; before the load: leave.

    The handlers are put back on leaving. A hang-up that is ignored, as under nohup, stays ignored.
    """
    stop = Stop()

    def asked(_number: int, _frame: FrameType | None) -> None:
        stop.asked += 1
        if not stop.under_load:
            raise KeyboardInterrupt

    ours = [number for number in _ENDINGS if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, asked) for number in ours}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _records_to(path: str) -> TakeRecords:
    """What writes --records; a path that cannot be written shows before the load, slug `file_unwritable`.

    The file is opened when there is something to write: a run that fails before leaves what was there.
    """
    from nilometer.report.raw_record import record_line

    check_writable(path)
    mode = "wb"

    def take(records: Iterator[Record]) -> None:
        nonlocal mode
        with writing(path), Path(path).open(mode) as file:
            file.writelines(map(record_line, records))
        mode = "ab"

    return take


def show(runs: Sequence[Run], group: str | None, session: Session, *, archived: bool) -> None:
    """The result on stdout: one run's screen, or one after the other for a group."""
    from nilometer.report.build import run_document

    machine = run_object(runs[0]) if group is None else group_object(group, "repeat", runs)
    session.emit(
        machine,
        lambda: "\n\n".join(session.render(run_document(r, session.words, archived=archived)) for r in runs),
        archived=[run.id for run in runs] if archived else (),
    )


def exit_code(series: Series, session: Session) -> int:
    """The first that applies of 130, 3, 4, 5, 1, 0 over all runs; what the series met is said on stderr."""
    runs = series.runs
    if series.cut or any(run.phases.interrupted and run.health.death is None for run in runs):
        return 130
    fault = series.fault or next((fault for run in runs if (fault := _fault(run)) is not None), None)
    if fault is not None:
        session.fail(fault)
        return fault.exit_code
    if any(run.verdict == "inadmissible" for run in runs):
        return 4
    held = [one.met for run in runs for one in bounds_held(run)]
    return 5 if None in held else 1 if False in held else 0


def _fault(run: Run) -> NiloError | None:
    from nilometer.core.errors import EngineError

    death = next((finding for finding in run.findings if finding.slug in DEATHS), None)
    return lost(run) if death is None else EngineError(death.slug, **death.params, run=run.id)
