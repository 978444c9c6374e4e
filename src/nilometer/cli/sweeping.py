"""What `nilo sweep` does with its options: find the target, measure level after level, show the curve."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from random import Random
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from nilometer.core.errors import SpecError
from nilometer.core.group import Group, parted, with_plan
from nilometer.core.run import Run, new_id
from nilometer.core.spec import Spec, to_toml, to_tree, without_secrets
from nilometer.experiment.ladder import Search
from nilometer.experiment.sweep import Plan, Swept, sweep
from nilometer.metrics import slo
from nilometer.metrics.curve import greatest, rungs_of

from .machine import group_object
from .measuring import Found, found_target, interrupts, open_archive_of
from .progress import Progress
from .session import Session
from .spec_options import load_said

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
    _refuse_beside_levels(given)
    with ExitStack() as stack:
        archive = None if given["no_archive"] else stack.enter_context(open_archive_of(session))
        begun, before, given = _resumed(given, archive)
        given = _with_short_levels(given, load_said(target or ""))
        found = stack.enter_context(found_target(target, session, given, archive))
        _refuse_other_conditions(found.spec, before)
        plan = plan_of(found.spec, given)
        stop = stack.enter_context(interrupts())
        group = _group(found.spec, plan, begun)
        swept = _sweep(found, plan, group, before, session, archive, stop)
    _show(swept, group, session, archived=archive is not None)
    return exit_code(swept, session)


def _refuse_beside_levels(given: dict[str, Any]) -> None:
    """Levels by list begin with none and end at none but their own: slug `levels_beside`."""
    idle = [option for option, name in (("-c", "concurrency"), ("--most", "most")) if given[name] is not None]
    if given["levels"] and idle:
        raise SpecError("levels_beside", option=idle[0])


def plan_of(spec: Spec, given: dict[str, Any]) -> Plan:
    """Where the curve begins and how it goes on. Slugs `sweep_shape`, `sweep_most`, `sweep_budget`,
    `levels_invalid`, `slo_invalid`."""
    load = spec.load
    if load.varies or load.requests is not None:
        raise SpecError("sweep_shape")
    first = float(given.get("first") or load.rate_per_s or load.concurrency or 1)
    levels = given["levels"]
    ceiling = MOST_RATE if load.is_open else MOST_IN_FLIGHT
    if levels and not load.is_open and any(level != round(level) or level > ceiling for level in levels):
        raise SpecError("levels_invalid", text=",".join(f"{level:g}" for level in levels), most=int(ceiling))
    most = given["most"] if given["most"] is not None else min(MOST * first, ceiling)
    if not levels and not first <= most <= ceiling:
        raise SpecError("sweep_most", most=most, first=first, ceiling=int(ceiling))
    if given["budget"] is not None and given["budget"] < load.warmup_s + load.duration_s:
        raise SpecError("sweep_budget", budget=given["budget"], level=load.warmup_s + load.duration_s)
    search = Search(first=first, most=most, whole=not load.is_open, by_slo=_has_border(spec))
    return Plan(search, tuple(levels) if levels else None, given["budget"])


def _has_border(spec: Spec) -> bool:
    """Whether a bound breaks when the load grows: one on failures alone leaves the throughput to be searched."""
    return any(bound.unit != "share" for bound in slo.parse(spec.slo)) if spec.slo else False


def _with_short_levels(given: dict[str, Any], said: Collection[str]) -> dict[str, Any]:
    """The options with the lengths of a level that neither they nor the keys of a file's [load], `said`, give."""
    if given["like"] or given["resume"] or given["procedure"]:
        return given
    short = {} if "warmup_s" in said else {"warmup": WARMUP_S}
    if not {"duration_s", "requests"} & {*said}:
        short["duration"] = DURATION_S
    return {**given, **{name: value for name, value in short.items() if given[name] is None}}


def _group(spec: Spec, plan: Plan, begun: Group | None) -> Group:
    """The group with its plan, a new one or the one that was begun: what is cut short goes on by the last plan."""
    group = begun or Group(id=new_id(Random()), type="sweep", started_wall_ns=time.time_ns())  # noqa: S311 - a name
    return replace(group, spec=with_plan(to_toml(without_secrets(spec)), "sweep", _options_of(plan)))


def _options_of(plan: Plan) -> dict[str, Any]:
    """The options that ask for this plan; `first` stands for -c or --rate."""
    search = {"first": plan.search.first, "most": plan.search.most}
    chosen = search if plan.levels is None else {"levels": list(plan.levels)}
    return chosen if plan.budget_s is None else {**chosen, "budget": plan.budget_s}


def _as_begun(begun: Group, given: dict[str, Any]) -> dict[str, Any]:
    """The options, and for those left out what the sweep was begun with. Who chooses levels anew chooses all of them;
    the time begins anew with every resumption."""
    _, plan = parted(begun.spec or "", "sweep")
    chosen_anew = any(given[name] is not None for name in ("concurrency", "rate", "levels", "most"))
    names = ("budget",) if chosen_anew else ("first", "levels", "most", "budget")
    return {**given, **{name: plan[name] for name in names if name in plan and given.get(name) is None}}


def _resumed(given: dict[str, Any], archive: Archive | None) -> tuple[Group | None, list[Run], dict[str, Any]]:
    """The group to go on with, its runs, and the options: its spec is repeated as --like does, by its own plan.

    Slug `resume_no_sweep`.
    """
    ref = given["resume"]
    if ref is None:
        return None, [], given
    if archive is None:
        raise SpecError("resume_no_sweep", group=ref)
    group = archive.get_group(archive.resolve_group(ref))
    if group.type != "sweep":
        raise SpecError("resume_no_sweep", group=ref)
    runs = archive.find(group.id)
    return group, runs, _as_begun(group, {**given, "like": given["like"] or runs[0].id})


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
    before: Sequence[Run],
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
            before=before,
            runs=archive,
            watch=progress,
            stop=stop,
            behind=found.behind,
            random=Random(),  # noqa: S311 - names, not secrets
            pages=found.pages,
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
