"""What `nilo diagnose TARGET` measures: the smallest ladder of loads that shows what limits a service."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from nilometer.core.errors import SpecError
from nilometer.core.group import Group, with_plan
from nilometer.core.run import new_id
from nilometer.core.spec import Spec, to_toml, without_secrets
from nilometer.experiment.ladder import Search
from nilometer.experiment.sweep import Plan, sweep

from .levels import Levels
from .measuring import found_target, interrupts, open_archive_of
from .progress import Progress
from .session import Session
from .spec_options import load_said
from .trialing import tried

if TYPE_CHECKING:
    from nilometer.archive.protocol import Archive
    from nilometer.diagnose.diagnosis import Diagnosis

RUNGS = 8
"""1, 2, 4, ..., 128: so many fit the time, however soon the ladder ends."""
WARMUP_SHARE, LEAST_WARMUP_S, LEAST_DURATION_S = 0.2, 3.0, 10.0
FLATS = 3
"""The knee and two loads beyond it: there it shows whether requests wait or streams slow down."""
INPUT_TOKENS, OUTPUT_TOKENS = "uniform:32,256", "uniform:16,64"
"""Mixed and short: lengths that differ tell prefill from queue, and short ones fit a slow engine."""

Show = Callable[["Diagnosis", Levels, Session], int]


class Times(NamedTuple):
    """Seconds of one level."""

    warmup_s: float
    duration_s: float


def times_of(budget_s: float) -> Times:
    """What a level may take of the whole time. Slug `diagnose_budget` where that is too little to tell anything."""
    each_s = budget_s / RUNGS
    warmup_s = max(each_s * WARMUP_SHARE, LEAST_WARMUP_S)
    if each_s < LEAST_WARMUP_S + LEAST_DURATION_S:
        raise SpecError("diagnose_budget", budget=budget_s, least=RUNGS * (LEAST_WARMUP_S + LEAST_DURATION_S))
    return Times(round(warmup_s, 1), round(each_s - warmup_s - 2, 1))


def measured(subject: str, session: Session, given: dict[str, Any], show: Show) -> int:
    """Measure the ladder, diagnose it, show it; the exit code."""
    from nilometer.diagnose.diagnosis import diagnose_runs

    given = {**_as_ladder(given, load_said(subject)), "like": None}
    with ExitStack() as stack:
        archive = stack.enter_context(_archive(session, given))
        found = stack.enter_context(found_target(subject, session, given, archive))
        stop = stack.enter_context(interrupts())
        search = Search(first=1.0, most=float(given["most"]), whole=True, by_slo=False, flats=FLATS)
        plan = Plan(search, None, given["budget"])
        group = _group(found.spec)
        with Progress(session.words, quiet=session.quiet) as progress:
            swept = sweep(
                found.spec,
                found.headers,
                plan,
                group,
                before=[],
                runs=archive,
                watch=progress,
                stop=stop,
                behind=found.behind,
                random=Random(),  # noqa: S311 - names, not secrets
            )
        runs = swept.series.runs
        told = diagnose_runs(runs, archive.records)
        if given["experiment"] and not swept.series.cut and swept.series.fault is None:
            told = tried(told, runs[-1], found, archive, stop, session)
    ref = None if given["no_archive"] else group.id[:6]
    code = show(told, Levels(runs, None if given["no_archive"] else group.id, ref), session)
    if swept.series.cut:
        return 130
    if swept.series.fault is not None:
        session.fail(swept.series.fault)
        return swept.series.fault.exit_code
    return code


@contextmanager
def _archive(session: Session, given: dict[str, Any]) -> Iterator[Archive]:
    """The user's, or with --no-archive one that is gone afterwards: the records are looked at when all is measured."""
    if not given["no_archive"]:
        with open_archive_of(session) as archive:
            yield archive
        return
    from nilometer.archive.store import open_archive

    with tempfile.TemporaryDirectory() as folder, open_archive(str(Path(folder) / "archive.sqlite")) as archive:
        yield archive


def _as_ladder(given: dict[str, Any], said: Collection[str]) -> dict[str, Any]:
    """The options, with the times of a level and lengths that differ where nothing else was asked for."""
    times = times_of(given["budget"])
    chosen: dict[str, Any] = {} if "warmup_s" in said else {"warmup": times.warmup_s}
    if not {"duration_s", "requests"} & {*said}:
        chosen["duration"] = times.duration_s
    if not (given["workload"] or given["prompt_text"] or said):
        chosen |= {"input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS}
    return {**given, **{name: value for name, value in chosen.items() if given[name] is None}}


def _group(spec: Spec) -> Group:
    return Group(
        id=new_id(Random()),  # noqa: S311 - a name
        type="sweep",
        started_wall_ns=time.time_ns(),
        spec=with_plan(to_toml(without_secrets(spec)), "sweep", {"first": 1.0}),
    )
