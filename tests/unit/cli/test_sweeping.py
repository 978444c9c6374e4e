"""What the options of a sweep come to: its plan, also that of one that is gone on with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.unit.archive.samples import make_run

from nilometer.archive.sqlite import SqliteArchive
from nilometer.cli.spec_options import load_said, resolve
from nilometer.cli.sweeping import _as_begun, _group, _refuse_beside_levels, _resumed, _with_short_levels, plan_of
from nilometer.core.errors import SpecError
from nilometer.core.spec import Load, Spec
from nilometer.experiment.sweep import Plan

CLOSED = Spec(target="http://127.0.0.1:8000", load=Load(concurrency=2, warmup_s=1, duration_s=2))
OPEN = Spec(target="http://127.0.0.1:8000", load=Load(rate_per_s=2.0, warmup_s=1, duration_s=2))


def options(**given: Any) -> dict[str, Any]:
    return dict.fromkeys(("concurrency", "rate", "levels", "most", "budget", "like", "resume"), None) | given


def gone_on(spec: Spec, begun: dict[str, Any], **given: Any) -> Plan:
    """The plan of a sweep that was begun with some options and is gone on with by others."""
    group = _group(spec, plan_of(spec, options(**begun)), None)
    return plan_of(spec, _as_begun(group, options(**given)))


@pytest.mark.parametrize("spec", [CLOSED, OPEN])
@pytest.mark.parametrize(
    "begun", [{}, {"levels": (2.0, 4.0)}, {"most": 16.0}, {"budget": 60.0}, {"levels": (8.0,), "budget": 30.0}]
)
def test_a_sweep_is_gone_on_with_by_its_own_plan(spec: Spec, begun: dict[str, Any]) -> None:
    assert gone_on(spec, begun) == plan_of(spec, options(**begun))


def test_what_was_begun_is_repeated_and_the_options_stay_as_they_were(tmp_path: Path) -> None:
    group = _group(CLOSED, plan_of(CLOSED, options(levels=(2.0,))), None)
    run = replace(make_run(), group=group.id)
    given = options(resume=group.id)
    with SqliteArchive(tmp_path / "archive.sqlite") as archive:
        archive.put(run, [])
        archive.put_group(group)
        begun, before, asked = _resumed(given, archive)
    assert (begun, [one.id for one in before]) == (group, [run.id])
    assert (asked["like"], asked["levels"]) == (run.id, [2.0])
    assert given == options(resume=group.id)


def test_options_given_anew_are_heeded() -> None:
    assert gone_on(CLOSED, {"levels": (2.0, 4.0)}, levels=(3.0,)).levels == (3.0,)
    searched = gone_on(CLOSED, {"levels": (2.0, 4.0), "budget": 60.0}, most=8.0)
    assert (searched.levels, searched.search.most, searched.budget_s) == (None, 8.0, 60.0)
    assert gone_on(CLOSED, {"most": 8.0}, budget=30.0) == plan_of(CLOSED, options(most=8.0, budget=30.0))


@pytest.mark.parametrize(
    ("given", "option"),
    [({"concurrency": 7}, "-c"), ({"most": 9.0}, "--most"), ({"most": 0.5}, "--most"), ({"rate": 2.0}, None)],
)
def test_what_levels_by_list_would_pass_over_is_refused(given: dict[str, Any], option: str | None) -> None:
    asked = options(levels=(2.0, 3.0), **given)
    if option is None:
        _refuse_beside_levels(asked)
        assert plan_of(OPEN, asked).levels == (2.0, 3.0), "a rate says that the levels are rates"
        return
    with pytest.raises(SpecError) as refused:
        _refuse_beside_levels(asked)
    assert (refused.value.slug, refused.value.params) == ("levels_beside", {"option": option})
    _refuse_beside_levels(options(**given))


@pytest.mark.parametrize(
    ("lines", "given", "lengths"),
    [
        ("", {}, (15, 45)),
        ("[load]\nconcurrency = 2\n", {}, (15, 45)),
        ("[load]\nwarmup_s = 5.0\n", {}, (5, 45)),
        ("[load]\nduration_s = 180.0\n", {}, (15, 180)),
        ("[load]\nduration_s = 180.0\n", {"duration": 9.0, "warmup": 3.0}, (3, 9)),
        ("", {"procedure": "guide"}, (60, 180)),
    ],
)
def test_a_level_is_short_where_nothing_says_how_long(
    tmp_path: Path, lines: str, given: dict[str, Any], lengths: tuple[float, float]
) -> None:
    file = tmp_path / "spec.toml"
    file.write_text('target = "embedded"\n' + lines)
    for target in (str(file), *(["embedded"] if not lines else [])):
        asked = options(warmup=None, duration=None, procedure=None) | given
        load = resolve(target, _with_short_levels(asked, load_said(target))).load
        assert (load.warmup_s, load.duration_s) == lengths


def test_a_count_of_a_file_is_not_passed_over_for_a_short_level(tmp_path: Path) -> None:
    file = tmp_path / "spec.toml"
    file.write_text('target = "embedded"\n[load]\nrequests = 9\n')
    asked = options(warmup=None, duration=None, procedure=None)
    with pytest.raises(SpecError, match="sweep_shape"):
        plan_of(resolve(str(file), _with_short_levels(asked, load_said(str(file)))), asked)


def test_the_group_keeps_the_last_plan() -> None:
    begun = _group(CLOSED, plan_of(CLOSED, options(levels=(2.0, 4.0))), None)
    again = _group(CLOSED, plan_of(CLOSED, options(most=8.0)), begun)
    assert (again.id, _as_begun(again, options())["most"]) == (begun.id, 8.0)
