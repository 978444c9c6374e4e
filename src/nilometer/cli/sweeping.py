"""What `nilo sweep` does with its options: find the target, measure level after level, show the curve."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from random import Random
from typing import TYPE_CHECKING, Any

from nilometer.core.errors import SpecError
from nilometer.core.group import Group
from nilometer.core.run import Run, new_id
from nilometer.core.spec import Spec, to_toml, to_tree, without_secrets
from nilometer.experiment.ladder import Search
from nilometer.experiment.sweep import Plan, Swept, sweep
from nilometer.metrics import slo
from nilometer.metrics.curve import finished, greatest, rungs_of

from .machine import group_object
from .measuring import Found, found_target, interrupts, open_archive_of
from .progress import Progress
from .session import Session

if TYPE_CHECKING:
    from nilometer.archive.protocol import Archive
    from nilometer.report.sweep import Ending

WARMUP_S, DURATION_S = 15.0, 45.0
"""Of each level, unless said: a curve of eight levels in ten minutes."""
MOST = 256.0
MOST_IN_FLIGHT, MOST_RATE = 100_000.0, 1e6
"""The greatest loads that a spec takes."""
_OF_NO_CURVE = ("labels", "http", "timeouts")
_OF_A_LEVEL = ("concurrency", "rate_per_s", "workers")


def run_sweep(target: str | None, session: Session, given: dict[str, Any]) -> int:
    """Measure the curve; returns the exit code of the contract."""
    with ExitStack() as stack:
        archive = None if given["no_archive"] else stack.enter_context(open_archive_of(session))
        group, before = _resumed(given["resume"], archive, given)
        if target is None or not target.endswith(".toml"):
            given = _with_short_levels(given)
        found = stack.enter_context(found_target(target, session, given, archive))
        _refuse_other_conditions(found.spec, before)
        plan = plan_of(found.spec, given)
        stop = stack.enter_context(interrupts())
        group = group or _new_group(found.spec)
        done = [run for run in before if finished(run)]
        swept = _sweep(found, plan, group, done, session, archive, stop)
    _show(swept, group, session, archived=archive is not None)
    return exit_code(swept, session)


def plan_of(spec: Spec, given: dict[str, Any]) -> Plan:
    """Where the curve begins and how it goes on. Slugs `sweep_shape`, `sweep_most`, `sweep_budget`,
    `levels_invalid`, `slo_invalid`."""
    load = spec.load
    if load.varies or load.requests is not None:
        raise SpecError("sweep_shape")
    first = load.rate_per_s if load.is_open else float(load.concurrency or 1)
    assert first is not None  # noqa: S101 - an open load that does not vary has a rate
    levels = given["levels"]
    ceiling = MOST_RATE if load.is_open else MOST_IN_FLIGHT
    if levels and not load.is_open and any(level != round(level) or level > ceiling for level in levels):
        raise SpecError("levels_invalid", text=",".join(f"{level:g}" for level in levels), most=int(ceiling))
    most = given["most"] if given["most"] is not None else min(MOST * first, ceiling)
    if not first <= most <= ceiling:
        raise SpecError("sweep_most", most=most, first=first, ceiling=int(ceiling))
    if given["budget"] is not None and given["budget"] < load.warmup_s + load.duration_s:
        raise SpecError("sweep_budget", budget=given["budget"], level=load.warmup_s + load.duration_s)
    search = Search(first=first, most=most, whole=not load.is_open, by_slo=_has_border(spec))
    return Plan(search, tuple(levels) if levels else None, given["budget"])


def _has_border(spec: Spec) -> bool:
    """Whether a bound breaks when the load grows: one on failures alone leaves the throughput to be searched."""
    return any(bound.unit != "share" for bound in slo.parse(spec.slo)) if spec.slo else False


def _with_short_levels(given: dict[str, Any]) -> dict[str, Any]:
    if given["like"] or given["resume"] or given["procedure"]:
        return given
    defaults = {"warmup": WARMUP_S, "duration": DURATION_S}
    return {**given, **{name: value for name, value in defaults.items() if given[name] is None}}


def _new_group(spec: Spec) -> Group:
    toml = to_toml(without_secrets(spec))
    return Group(id=new_id(Random()), type="sweep", started_wall_ns=time.time_ns(), spec=toml)  # noqa: S311 - a name


def _resumed(ref: str | None, archive: Archive | None, given: dict[str, Any]) -> tuple[Group | None, list[Run]]:
    """The group to go on with and its runs; its spec is then repeated as --like does. Slug `resume_no_sweep`."""
    if ref is None:
        return None, []
    if archive is None:
        raise SpecError("resume_no_sweep", group=ref)
    group = archive.get_group(archive.resolve_group(ref))
    if group.type != "sweep":
        raise SpecError("resume_no_sweep", group=ref)
    runs = archive.find(group.id)
    given["like"] = given["like"] or runs[0].id
    return group, runs


def _refuse_other_conditions(spec: Spec, before: Sequence[Run]) -> None:
    """A curve is of one service under one load that only grows: slug `resume_changed` names what is not as it was."""
    if not before:
        return
    now, then = _conditions(spec), _conditions(before[0].spec)
    changed = sorted(key for key in now.keys() | then.keys() if now.get(key) != then.get(key))
    if changed:
        raise SpecError("resume_changed", keys=", ".join(changed))


def _conditions(spec: Spec) -> dict[str, Any]:
    """All that every level of a curve has in common, by the paths of the keys."""
    tree = to_tree(without_secrets(spec))
    flat = {"load.rate_per_s" if spec.load.is_open else "load.concurrency": True}
    for section, value in tree.items():
        for key, inner in value.items() if isinstance(value, dict) else ():
            if section not in _OF_NO_CURVE and key not in _OF_A_LEVEL:
                flat[f"{section}.{key}"] = inner
        if not isinstance(value, dict):
            flat[section] = value
    return flat


def _sweep(
    found: Found,
    plan: Plan,
    group: Group,
    done: Sequence[Run],
    session: Session,
    archive: Archive | None,
    stop: Any,
) -> Swept:
    with Progress(session.words, quiet=session.quiet) as progress:
        return sweep(
            found.spec,
            found.headers,
            plan,
            group,
            done=done,
            runs=archive,
            watch=progress,
            stop=stop,
            behind=found.behind,
            random=Random(),  # noqa: S311 - names, not secrets
        )


def exit_code(swept: Swept, session: Session) -> int:
    """130 cut short, 3 what the series met; 0 an answer; 1 no load keeps the SLO; 4, 5 where that could not be told.

    Without an SLO the curve is the answer, if any of it is admissible.
    """
    if swept.series.cut:
        return 130
    if swept.series.fault is not None:
        session.fail(swept.series.fault)
        return swept.series.fault.exit_code
    runs = swept.series.runs
    rungs = rungs_of(runs)
    if not runs[0].spec.slo:
        return 4 if all(run.verdict == "inadmissible" for run in runs) else 0
    if greatest(rungs) is not None:
        return 0
    if any(run.summary.generator.verdict == "limited" for run in runs):
        return 4
    return 5 if any(rung.met is None for rung in rungs) else 1


def ended(swept: Swept) -> Ending | None:
    """What ended the sweep before its answer was as good as it gets."""
    return "cut" if swept.series.cut else swept.short


def _show(swept: Swept, group: Group, session: Session, *, archived: bool) -> None:
    from nilometer.report.sweep import sweep_document

    runs = swept.series.runs
    session.emit(
        group_object(group.id, "sweep", runs),
        lambda: session.render(sweep_document(runs, group.id, session.words, archived=archived, ended=ended(swept))),
        archived=[run.id for run in runs] if archived else (),
    )
